package actors_test

import (
	"context"
	"fmt"
	"log"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/demo"
	"github.com/moeflux/moeflux-actor/tokenizer"
)

// A service opens one engine and gives each conversation a sequence. The model here is the built-in demo; yours is the
// directory that "moeflux-actor convert" wrote.
func Example() {
	ctx := context.Background()
	dir, err := demo.Dir(ctx, cacheDir, nil)
	if err != nil {
		log.Fatal(err)
	}
	text, err := tokenizer.LoadDir(dir)
	if err != nil {
		log.Fatal(err)
	}
	device, err := host.New(host.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer device.Close()
	engine, err := actors.Open(ctx, actors.Config{Model: dir, Device: device})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()

	seq, err := engine.NewSequence(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer seq.Close()
	prompt, err := text.Encode("if err != nil {\n", true)
	if err != nil {
		log.Fatal(err)
	}
	out := text.NewStream(true)
	for token, err := range seq.Generate(ctx, prompt, actors.GenerateOptions{MaxTokens: 5}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(out.Push(token))
	}
	fmt.Println(out.Flush())
	// Output: return nil, err
}
