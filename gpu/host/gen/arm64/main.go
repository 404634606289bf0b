// Command arm64 writes the assembly of package host for arm64, from the Advanced SIMD instructions
// with the dot product of bytes (ARMv8.2):
//
//	go run ./arm64 -out ../neon_arm64.s -stubs ../neon_arm64.go
//
// Go's assembler lacks most vector instructions, so they are written as words, each with its name
// as a comment; loads, stores and everything scalar is written as Go's assembler wants it.
package main

import (
	"flag"
	"log"
	"os"
	"strings"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("arm64: ")
	out := flag.String("out", "", "file of the assembly")
	stubs := flag.String("stubs", "", "file of the declarations")
	flag.Parse()
	if *out == "" || *stubs == "" || flag.NArg() > 0 {
		log.Fatal("want -out FILE -stubs FILE")
	}
	a := newAssembly("go run ./arm64 " + strings.Join(os.Args[1:], " "))
	generate(a)
	for file, text := range map[string][]byte{*out: a.code.Bytes(), *stubs: a.stubs.Bytes()} {
		if err := os.WriteFile(file, text, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

func generate(a *assembly) {
	for _, bits := range []int{2, 4, 8} {
		for n := 1; n <= maxTile; n++ {
			mulInt8(a, bits, n)
			mulFloat(a, bits, n)
		}
	}
	quantise(a)
	for _, bits := range []int{2, 4, 8} {
		arrange(a, bits)
	}
	arrangeScales(a)
	unpack(a)
	plain(a, "oneBF16NEON", "returns row·x for a row of bf16 and blocks of 64 inputs, at least 1.", true, 1)
	plain(a, "lastNEON", "returns q·x for blocks of 64 inputs, at least 1.", false, 1)
	plain(a, "twoNEON", "is lastNEON for two rows of X.", false, 2)
	vectors(a)
}
