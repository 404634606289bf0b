package host

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/moeflux/moeflux-actor/internal/numcmp"
)

// TestDotCodes checks products of queries and keys in 8 bits, the largest ones too, against sums of
// whole numbers: all variants give the bits of the definition, write nothing beside them, and leave
// lines that there are not alone.
func TestDotCodes(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	eachVectors(t, func(t *testing.T, v *vectors) {
		for _, c := range []struct{ rows, group, groups int }{{1, 16, 1}, {2, 128, 1}, {3, 64, 9}, {4, 32, 3}, {7, 256, 1}, {9, 48, 2}, {13, 16, 4}} {
			for _, most := range []bool{false, true} {
				t.Run(fmt.Sprintf("%+v/most=%v", c, most), func(t *testing.T) { dotCodesOnce(t, rng, v, c.rows, c.group, c.groups, most) })
			}
		}
	})
}

func dotCodesOnce(t *testing.T, rng *rand.Rand, v *vectors, rows, group, groups int, most bool) {
	code := func() byte {
		if most {
			return byte(int8(127 - 254*rng.IntN(2)))
		}
		return byte(int8(rng.IntN(255) - 127))
	}
	dim := group * groups
	stride := 4 * dim
	q, k, scales := make([]byte, rows*stride), make([]byte, dim*attnBlock), normals(rng, groups*attnBlock)
	for i := range k {
		k[i] = code()
	}
	s := normals(rng, rows*groups)
	for r := range rows {
		for g := range groups {
			sum := int32(0)
			for i := range group {
				q[r*stride+g*group+i] = code()
				sum += int32(int8(q[r*stride+g*group+i]))
			}
			binary.LittleEndian.PutUint32(q[r*stride+dim+8*g:], math.Float32bits(s[r*groups+g]))
			binary.LittleEndian.PutUint32(q[r*stride+dim+8*g+4:], uint32(-128*sum))
		}
	}
	got, want := make([]float32, rows*attnBlock+1), make([]float32, rows*attnBlock+1)
	got[rows*attnBlock], want[rows*attnBlock] = -7, -7
	for i := range want[:rows*attnBlock] {
		r, j := i/attnBlock, i%attnBlock
		for g := range groups {
			sum := 0
			for ch := g * group; ch < (g+1)*group; ch++ {
				sum += int(int8(q[r*stride+ch])) * int(int8(k[ch/4*4*attnBlock+4*j+ch%4]))
			}
			want[i] += float32(float32(float32(sum)*s[r*groups+g]) * scales[g*attnBlock+j])
		}
	}
	lines := new(aheadLines)
	v.dotCodes(got[:rows*attnBlock:rows*attnBlock], q, k, scales, stride, group, groups, rows, (*byte)(unsafe.Pointer(lines)))
	if err := numcmp.Equal(got, want); err != nil {
		t.Error(err)
	}
	if *lines != (aheadLines{}) {
		t.Errorf("lines to fetch became %v", *lines)
	}
}

// TestDotCodesAhead checks that lines are fetched in order and no further than the last place.
func TestDotCodesAhead(t *testing.T) {
	const rows, group = 5, 64
	q, k, mem := make([]byte, rows*4*group), make([]byte, group*attnBlock), make([]byte, 1<<16)
	eachVectors(t, func(t *testing.T, v *vectors) {
		if v.multiplyAhead == nil {
			return
		}
		scores, scales := make([]float32, rows*attnBlock), make([]float32, attnBlock)
		first := unsafe.Pointer(&mem[0])
		for _, n := range []int{64, 640, len(mem) - aheadBytes} {
			lines := &aheadLines{first, unsafe.Pointer(&mem[n])}
			v.dotCodes(scores, q, k, scales, 4*group, group, 1, rows, (*byte)(unsafe.Pointer(lines)))
			if at := uintptr(lines.next) - uintptr(first); at == 0 || at > uintptr(n) || n < 1000 && at != uintptr(n) || at%32 != 0 || lines.last != unsafe.Pointer(&mem[n]) {
				t.Errorf("of %d bytes to fetch %d are", n, at)
			}
		}
	})
}

// TestRoundQuery checks the numbers of a query's groups: of any, of zeros, and of what is not
// finite.
func TestRoundQuery(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for _, name := range Variants() {
		k := variant(name)
		for _, group := range []int{16, 48, 64, 256} {
			x := normals(rng, 4*group)
			clear(x[group : 2*group])
			x[2*group] = float32(math.Inf(1))
			for i := range x[3*group:] { // whole numbers, whose sum is the largest
				x[3*group+i] = 127
			}
			record := make([]float32, len(x))
			k.roundQuery(record, x, group)
			mem := bytesIn(record)
			for g := range 4 {
				sum := 0
				for _, q := range mem[g*group : (g+1)*group] {
					sum += int(int8(q))
				}
				if g == 2 {
					sum = 0
				}
				s := math.Float32frombits(binary.LittleEndian.Uint32(mem[len(x)+8*g:]))
				if start := int32(binary.LittleEndian.Uint32(mem[len(x)+8*g+4:])); int(start) != -128*sum {
					t.Errorf("%s: group %d of %d begins with %d, want %d", name, g, group, start, -128*sum)
				}
				if math.IsNaN(float64(s)) != (g == 2) || (s == 0) != (g == 1) || g == 3 && (s != 1 || sum != 127*group) {
					t.Errorf("%s: group %d of %d has scale %v and sum %d", name, g, group, s, sum)
				}
			}
		}
	}
}
