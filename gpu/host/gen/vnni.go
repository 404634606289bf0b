package main

import (
	"fmt"
	"log"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// dotLine is VPDPBUSD of 32 bytes as avo writes it.
var dotLine = regexp.MustCompile(`(?m)^\tVPDPBUSD +Y(\d+), Y(\d+), Y(\d+)$`)

// encodeDots replaces VPDPBUSD of 32 bytes in a file of assembly by the bytes of its form with a
// VEX prefix, which is AVX-VNNI: Go's assembler knows that of AVX-512 alone.
func encodeDots(file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	text = dotLine.ReplaceAllFunc(text, func(line []byte) []byte {
		var r [3]int // as Go orders them: signed bytes, bytes without a sign, sums
		for i, s := range dotLine.FindSubmatch(line)[1:] {
			r[i], _ = strconv.Atoi(string(s))
		}
		b, err := dotBytes(r[2], r[1], r[0])
		if err != nil {
			log.Fatal(err)
		}
		return fmt.Appendf(nil, "\tLONG $0x%02x%02x%02x%02x; BYTE $0x%02x // vpdpbusd ymm%d, ymm%d, ymm%d", b[3], b[2], b[1], b[0], b[4], r[2], r[1], r[0])
	})
	out := strings.ReplaceAll(string(text), "AVX512VL, AVX512VNNI", "AVXVNNI")
	if strings.Contains(out, "AVX512") || strings.Contains(out, "VPDPBUSD") {
		log.Fatalf("gen: %s still needs AVX-512", file)
	}
	if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
		log.Fatal(err)
	}
}

// dotBytes encodes vpdpbusd dst, a, b: VEX.256.66.0F38.W0 50 /r.
func dotBytes(dst, a, b int) (code [5]byte, err error) {
	if max(dst, a, b) > 15 {
		return code, fmt.Errorf("gen: vpdpbusd ymm%d, ymm%d, ymm%d is out of the reach of VEX", dst, a, b)
	}
	r, x, base := byte(dst>>3^1)<<7, byte(1<<6), byte(b>>3^1)<<5
	return [5]byte{0xc4, r | x | base | 2, byte(^a&15)<<3 | 1<<2 | 1, 0x50, 0xc0 | byte(dst&7)<<3 | byte(b&7)}, nil
}
