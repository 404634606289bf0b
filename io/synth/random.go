package synth

import (
	"encoding/binary"
	"hash/fnv"
	"math"
)

// golden is the odd number nearest to 2^64 divided by the golden ratio, the usual increment of a
// splitmix64 generator.
const golden = 0x9E3779B97F4A7C15

// mix is the output function of splitmix64: a bijection whose every output bit depends on every
// input bit.
func mix(z uint64) uint64 {
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
	z = (z ^ (z >> 27)) * 0x94D049BB133111EB
	return z ^ (z >> 31)
}

// key identifies a sequence of random 64-bit words. They can be computed in any order, so the
// output does not depend on how goroutines share the work.
type key uint64

// newKey returns the sequence called name under a seed.
func newKey(seed uint64, name string) key {
	h := fnv.New64a()
	h.Write([]byte(name))
	return key(mix(h.Sum64() ^ mix(seed+golden)))
}

// sub returns the i-th sequence below k.
func (k key) sub(i int) key { return key(mix(uint64(k) ^ mix(uint64(i)*golden+1))) }

// fill writes the sequence's words to dst, whose length is a multiple of 8.
func (k key) fill(dst []byte) {
	s := uint64(k)
	for len(dst) >= 8 {
		s += golden
		binary.LittleEndian.PutUint64(dst, mix(s))
		dst = dst[8:]
	}
}

// stream reads a sequence from its start.
type stream struct{ s uint64 }

func (k key) stream() *stream { return &stream{uint64(k)} }

func (r *stream) next() uint64 {
	r.s += golden
	return mix(r.s)
}

// float returns a number in [0, 1).
func (r *stream) float() float64 { return float64(r.next()>>11) / (1 << 53) }

// norm returns a normally distributed number.
func (r *stream) norm() float64 {
	return math.Sqrt(-2*math.Log(1-r.float())) * math.Cos(2*math.Pi*r.float())
}

// intn returns a number in [0, n). The bias of the remainder is below n/2^64.
func (r *stream) intn(n int) int { return int(r.next() % uint64(n)) }

// perm returns the numbers 0 to n-1 in a random order.
func (r *stream) perm(n int) []int {
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	shuffle(r, p)
	return p
}

func shuffle[T any](r *stream, x []T) {
	for i := len(x) - 1; i > 0; i-- {
		j := r.intn(i + 1)
		x[i], x[j] = x[j], x[i]
	}
}
