package actors_test

import (
	"bytes"
	"context"
	"fmt"
	"log"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/demo"
	"github.com/moeflux/moeflux-actor/tokenizer"
)

// A service opens one engine and gives each conversation a sequence. The model here is the built-in
// demo; yours is the directory that "moeflux-actor convert" wrote.
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
	defer engine.Close(context.Background())

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

// A conversation outlives its sequence, and its process: the state is written to a file, or
// anywhere else, and loaded into another sequence of the same model, which goes on as if nothing
// had been. Texts that begin as one that was remembered are not read again from the beginning.
func ExampleSequence_Save() {
	ctx := context.Background()
	dir, err := demo.Dir(ctx, cacheDir, nil)
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
	defer engine.Close(context.Background())

	text := []int32{5, 6, 7, 8}
	seq, err := engine.NewSequence(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := seq.EvalChunk(ctx, actors.Chunk{Tokens: text, Remember: true}); err != nil {
		log.Fatal(err)
	}
	var file bytes.Buffer
	if _, err := seq.Save(ctx, &file, actors.SaveOptions{}); err != nil {
		log.Fatal(err)
	}
	if err := seq.Close(); err != nil {
		log.Fatal(err)
	}

	other, err := engine.NewSequence(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer other.Close()
	if err := other.Load(ctx, bytes.NewReader(file.Bytes()), int64(file.Len()), actors.LoadOptions{}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(other.Len(), "positions loaded")
	reused, err := other.Resume(ctx, append(text, 9, 10))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reused, "tokens need not be read")
	// Output:
	// 4 positions loaded
	// 4 tokens need not be read
}
