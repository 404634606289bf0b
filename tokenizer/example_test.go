package tokenizer_test

import (
	"fmt"
	"log"

	"github.com/moeflux/moeflux-actor/tokenizer"
)

func ExampleLoadDir() {
	t, err := tokenizer.LoadDir("testdata/demo")
	if err != nil {
		log.Fatal(err)
	}
	ids, err := t.Encode("package main\n\nimport (\n", true)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ids)
	fmt.Printf("%q\n", t.Decode(ids, true))
	// Output:
	// [4093 951 2159 409 862 892]
	// "package main\n\nimport (\n"
}

func ExampleStream() {
	t, err := tokenizer.Load("testdata/qwen/tokenizer.json")
	if err != nil {
		log.Fatal(err)
	}
	ids, err := t.Encode("né 😀<|im_end|>", false)
	if err != nil {
		log.Fatal(err)
	}
	s := t.NewStream(true)
	for _, id := range ids {
		fmt.Printf("%q ", s.Push(id))
	}
	fmt.Printf("%q\n", s.Flush())
	// Output:
	// "n" "é" " " "" "😀" "" ""
}
