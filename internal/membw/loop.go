package membw

// loop is one way to read memory. Each of its functions returns Σ w[i] modulo 2^64; len(w) is a
// multiple of 128.
type loop struct {
	name string
	sum  func(w []uint64) uint64
}

var portable = loop{"portable", sum}

// sum keeps eight loads in flight that do not depend on each other.
func sum(w []uint64) uint64 {
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
