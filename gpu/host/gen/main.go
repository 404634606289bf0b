// Command gen writes the assembly of package host, one family of loops for one instruction set a
// run:
//
//	go run . -family panels -isa avx512 -pkg host -out ../panels_avx512_amd64.s -stubs ../panels_avx512_amd64.go
//
// It is a module of its own, so that the engine does not depend on the assembler it is written
// with.
package main

import (
	"flag"
	"log"
	"slices"

	. "github.com/mmcloughlin/avo/build"
)

// families are the kinds of loops: each writes all its functions.
var families = map[string]func(g *generator){
	"panels":  (*generator).panels,
	"plain":   (*generator).plains,
	"vectors": (*generator).vectors,
}

func main() {
	family := flag.String("family", "", "panels, plain or vectors")
	isa := flag.String("isa", "", "avx512 or avx2")
	flag.Parse()
	var g *generator
	switch *isa {
	case "avx512":
		g = &generator{suffix: "AVX512", lanes: 16}
	case "avx2":
		g = &generator{suffix: "AVX2", lanes: 8}
	default:
		log.Fatalf("gen: -isa is %q, want avx512 or avx2", *isa)
	}
	write, ok := families[*family]
	if !ok {
		var names []string
		for name := range families {
			names = append(names, name)
		}
		slices.Sort(names)
		log.Fatalf("gen: -family is %q, want one of %v", *family, names)
	}
	ConstraintExpr("amd64,!noasm")
	write(g)
	Generate()
}
