package membw

// loop is one way to read memory. sum returns Σ w[i] modulo 2^64; len(w) is a multiple of 128.
type loop struct {
	name string
	sum  func(w []uint64) uint64
}

// portable returns the loops that every processor runs.
func portable() []loop {
	return []loop{{"portable, 1 stream", sumx1}, {"portable, 4 streams", sumx4}}
}

// sumx1 keeps eight independent loads in flight.
func sumx1(w []uint64) uint64 {
	var s0, s1, s2, s3, s4, s5, s6, s7 uint64
	for ; len(w) >= 8; w = w[8:] {
		s0 += w[0]
		s1 += w[1]
		s2 += w[2]
		s3 += w[3]
		s4 += w[4]
		s5 += w[5]
		s6 += w[6]
		s7 += w[7]
	}
	return s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7
}

// sumx4 reads the four quarters side by side.
func sumx4(w []uint64) uint64 {
	n := len(w) / 4
	a, b, c, d := w[:n], w[n:2*n], w[2*n:3*n], w[3*n:]
	var s0, s1, s2, s3, s4, s5, s6, s7 uint64
	for len(a) >= 2 && len(b) >= 2 && len(c) >= 2 && len(d) >= 2 {
		s0 += a[0]
		s1 += b[0]
		s2 += c[0]
		s3 += d[0]
		s4 += a[1]
		s5 += b[1]
		s6 += c[1]
		s7 += d[1]
		a, b, c, d = a[2:], b[2:], c[2:], d[2:]
	}
	return s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7
}
