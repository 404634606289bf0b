// Command gen writes the assembly of package host. Each run writes one family of functions for one
// instruction set:
//
//	go run . -family panels -isa avx512 -pkg host -out ../panels_avx512_amd64.s -stubs ../panels_avx512_amd64.go
//
// It is a module of its own, so that the engine does not depend on avo.
package main

import (
	"flag"
	"fmt"
	"log"
	"slices"

	. "github.com/mmcloughlin/avo/build"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
)

func main() {
	family := flag.String("family", "", fmt.Sprintf("one of %v", base.Families()))
	isa := flag.String("isa", "", "avx512, avx2 or avxvnni")
	tables := flag.String("tables", "", "file of the tables of products, if it is to be written")
	flag.Parse()
	sets := []base.ISA{base.AVX512, base.AVX2, base.VNNI}
	i := slices.IndexFunc(sets, func(s base.ISA) bool { return s.Name == *isa })
	if i < 0 || !slices.Contains(base.Families(), *family) {
		log.Fatal("usage: gen -family NAME -isa NAME -pkg host -out FILE -stubs FILE [-tables FILE]")
	}
	ConstraintExpr("amd64,!noasm")
	g := &generator{isa: sets[i]}
	if *family == "blocks" && g.wide() {
		g.isa.Lanes, g.wideCodes = base.AVX2.Lanes, true
	}
	g.write(*family)
	Generate()
	if g.isa.Dots {
		encodeDots(flag.Lookup("out").Value.String())
	}
	if *tables != "" {
		base.WriteTables(sets[i], *tables)
	}
}
