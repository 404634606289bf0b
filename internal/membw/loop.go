package membw

// loop is one way to read memory. sum returns the sum modulo 2^64 of the words that it loads, which
// are every step-th; len(w) is a multiple of 128.
type loop struct {
	name string
	step int
	sum  func(w []uint64) uint64
}

// lineWords are the words of the shortest line that memory delivers to a cache, of 64 bytes.
const lineWords = 8

// portable returns the loops of builds and processors without wide loads. They load one word of
// each line. Memory delivers all of a line, so this takes as long as reading everything with wide
// loads. Reading everything eight bytes at a time takes longer: the loads and additions fill the
// core's window of instructions in flight before enough lines are on their way.
func portable() []loop {
	return []loop{
		{"portable, 1 stream of lines", lineWords, lines1},
		{"portable, 2 streams of lines", lineWords, lines2},
	}
}

func lines1(w []uint64) uint64 {
	var s0, s1, s2, s3 uint64
	for ; len(w) >= 4*lineWords; w = w[4*lineWords:] {
		s0 += w[0]
		s1 += w[lineWords]
		s2 += w[2*lineWords]
		s3 += w[3*lineWords]
	}
	return s0 + s1 + s2 + s3
}

// lines2 reads the halves side by side.
func lines2(w []uint64) uint64 {
	var s0, s1, s2, s3 uint64
	n := len(w) / 2
	a, b := w[:n], w[n:]
	for len(a) >= 2*lineWords && len(b) >= 2*lineWords {
		s0 += a[0]
		s1 += b[0]
		s2 += a[lineWords]
		s3 += b[lineWords]
		a, b = a[2*lineWords:], b[2*lineWords:]
	}
	return s0 + s1 + s2 + s3
}
