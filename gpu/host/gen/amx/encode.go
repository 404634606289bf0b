package main

import (
	"fmt"
	"strings"
)

// reg is a general register by its number in encodings; its name is that of Go's assembler.
type reg int

var regNames = []string{"AX", "CX", "DX", "BX", "SP", "BP", "SI", "DI", "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15"}

func (r reg) String() string { return regNames[r] }

// The registers that the functions use.
const (
	ax reg = iota
	cx
	dx
	bx
	_ // the stack's
	_ // the frame's
	si
	di
	r8
	r9
	r10
	r11
	r12
	r13
	r14
	r15
)

// tile is a tile register.
type tile int

func (t tile) String() string { return fmt.Sprintf("tmm%d", int(t)) }

// Prefixes that a VEX prefix stands for.
const (
	noPrefix = iota
	prefix66
	prefixF3
	prefixF2
)

// vex returns an instruction of the map 0F 38 with 128 bits and W = 0. source is the register in
// the prefix, r, x and b are the highest bits of those after it.
func vex(prefix int, opcode byte, source tile, r, x, b reg, rest ...byte) []byte {
	second := byte(0xe2) ^ byte(r>>3)<<7 ^ byte(x>>3)<<6 ^ byte(b>>3)<<5
	third := (^byte(source)&15)<<3 | byte(prefix)
	return append([]byte{0xc4, second, third, opcode}, rest...)
}

// loadConfig is LDTILECFG from memory at p.
func loadConfig(p reg) ([]byte, string) {
	return vex(noPrefix, 0x49, 0, 0, 0, p, byte(p&7)), fmt.Sprintf("ldtilecfg (%v)", p)
}

func release() ([]byte, string) { return vex(noPrefix, 0x49, 0, 0, 0, 0, 0xc0), "tilerelease" }

func zero(t tile) ([]byte, string) {
	return vex(prefixF2, 0x49, 0, 0, 0, 0, 0xc0|byte(t)<<3), fmt.Sprintf("tilezero %v", t)
}

// load is TILELOADD of rows stride bytes apart, the first at p.
func load(t tile, p, stride reg) ([]byte, string) {
	return memory(prefixF2, t, p, stride), fmt.Sprintf("tileloadd (%v)(%v*1), %v", p, stride, t)
}

// store is TILESTORED.
func store(t tile, p, stride reg) ([]byte, string) {
	return memory(prefixF3, t, p, stride), fmt.Sprintf("tilestored %v, (%v)(%v*1)", t, p, stride)
}

func memory(prefix int, t tile, p, stride reg) []byte {
	return vex(prefix, 0x4b, 0, 0, stride, p, byte(t)<<3|4, byte(stride&7)<<3|byte(p&7))
}

// dot is TDPBSUD: sum += a·b, a being signed bytes, b unsigned ones.
func dot(sum, a, b tile) ([]byte, string) {
	return vex(prefixF3, 0x5e, b, 0, 0, 0, 0xc0|byte(sum)<<3|byte(a)), fmt.Sprintf("tdpbsud %v, %v, %v", b, a, sum)
}

// directives are the bytes of an instruction as Go's assembler takes them.
func directives(code []byte) string {
	parts := make([]string, len(code))
	for i, b := range code {
		parts[i] = fmt.Sprintf("BYTE $%#02x", b)
	}
	return strings.Join(parts, "; ")
}
