// Command arm64 writes the assembly of package host for arm64. It uses Advanced SIMD instructions
// with the dot product of bytes (ARMv8.2):
//
//	go run ./arm64 -out ../neon_arm64.s -stubs ../neon_arm64.go -tables ../tables_neon_arm64.go
//
// Go's assembler lacks most vector instructions, so they are written as words with their names as
// comments. Loads, stores and scalar instructions are written for Go's assembler.
package main

import (
	"flag"
	"log"
	"os"
	"strings"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("arm64: ")
	out := flag.String("out", "", "file of the assembly")
	stubs := flag.String("stubs", "", "file of the declarations")
	tables := flag.String("tables", "", "file of the tables of products")
	flag.Parse()
	if *out == "" || *stubs == "" || *tables == "" || flag.NArg() > 0 {
		log.Fatal("usage: arm64 -out FILE -stubs FILE -tables FILE")
	}
	a := newAssembly("go run ./arm64 " + strings.Join(os.Args[1:], " "))
	generate(a)
	for file, text := range map[string][]byte{*out: a.code.Bytes(), *stubs: a.stubs.Bytes()} {
		if err := os.WriteFile(file, text, 0o644); err != nil {
			log.Fatal(err)
		}
	}
	base.WriteTables(base.NEON, *tables)
}

// generate writes all functions.
func generate(a *assembly) {
	exponential(a)
	writers := map[string]func(f base.Func){}
	for kind, write := range map[string]func(a *assembly, f base.Func){
		"product": product, "quantise": quantise, "arrange": arrange, "arrangeScales": arrangeScales,
		"unpack16": unpack, "plain": plain,
		"dot": dot, "norm": norm, "combine": combine, "conv": conv, "rope": rope, "ropePairs": ropePairs, "dequantise": dequantise,
		"widen8": widen8, "transpose8": transpose8, "transpose": transpose, "multiply": multiply, "softmax": softmax,
		"delta": delta, "touch": touch, "dotCodes": dotCodes,
	} {
		writers[kind] = func(f base.Func) {
			a.text(f)
			write(a, f)
		}
	}
	for kind, e := range elementwises {
		writers[kind] = func(f base.Func) {
			a.text(f)
			e.write(a)
		}
	}
	base.Write(base.NEON, "", writers)
}
