package main

import "testing"

// TestDotBytes compares encodings with those of GNU's assembler, of
//
//	{vex} vpdpbusd ymmD, ymmA, ymmB
func TestDotBytes(t *testing.T) {
	for _, c := range []struct {
		dst, a, b int
		want      [5]byte
	}{
		{0, 10, 12, [5]byte{0xc4, 0xc2, 0x2d, 0x50, 0xc4}},
		{3, 2, 1, [5]byte{0xc4, 0xe2, 0x6d, 0x50, 0xd9}},
		{8, 0, 15, [5]byte{0xc4, 0x42, 0x7d, 0x50, 0xc7}},
		{15, 15, 7, [5]byte{0xc4, 0x62, 0x05, 0x50, 0xff}},
	} {
		if got, err := dotBytes(c.dst, c.a, c.b); err != nil || got != c.want {
			t.Errorf("vpdpbusd ymm%d, ymm%d, ymm%d is % x, %v; want % x", c.dst, c.a, c.b, got, err, c.want)
		}
	}
	if _, err := dotBytes(16, 0, 0); err == nil {
		t.Error("there are 16 registers")
	}
}
