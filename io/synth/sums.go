package synth

import (
	"hash/crc32"
	"sync"

	"github.com/moeflux/moeflux-actor/io/expertfile"
)

// recordSums computes the checksums of an image's records. Bytes come in any order, in chunks that
// may cut records.
type recordSums struct {
	record int64

	mu    sync.Mutex
	parts map[int64]sumPart // by offset
}

// sumPart is the checksum of a part of a record.
type sumPart struct {
	sum uint32
	n   int64 // bytes
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// add takes the image's bytes from offset on.
func (s *recordSums) add(p []byte, offset int64) {
	for len(p) > 0 {
		n := min(int64(len(p)), s.record-offset%s.record)
		part := sumPart{crc32.Checksum(p[:n], castagnoli), n}
		s.mu.Lock()
		s.parts[offset] = part
		s.mu.Unlock()
		p = p[n:]
		offset += n
	}
}

// sums returns the checksum of each record. All bytes must have been added.
func (s *recordSums) sums(records int) []uint32 {
	out := make([]uint32, records)
	for at := int64(0); at < int64(records)*s.record; {
		part := s.parts[at]
		r := at / s.record
		if at%s.record == 0 {
			out[r] = part.sum
		} else {
			out[r] = joined(out[r], part)
		}
		at += part.n
	}
	return out
}

// joined returns the checksum of bytes with checksum a, followed by those of b. A CRC is linear, so
// a is advanced by the length of b.
func joined(a uint32, b sumPart) uint32 {
	shift, square := uint32(1)<<31, uint32(1)<<23 // 1 and x^8, where bit 31 is x^0
	for n := b.n; n > 0; n >>= 1 {
		if n&1 != 0 {
			shift = timesMod(shift, square)
		}
		square = timesMod(square, square)
	}
	return timesMod(a, shift) ^ b.sum
}

// timesMod multiplies polynomials modulo the Castagnoli polynomial. Bit 31 is x^0.
func timesMod(a, b uint32) uint32 {
	var p uint32
	for m := uint32(1) << 31; m != 0; m >>= 1 {
		if a&m != 0 {
			p ^= b
		}
		carry := b & 1
		b >>= 1
		if carry != 0 {
			b ^= crc32.Castagnoli
		}
	}
	return p
}

// recordSums returns the content of the file of the records' checksums. All expert files must have
// been written.
func (m *Model) recordSums(experts []*image) []byte {
	all := expertfile.Sums{}
	for i, layer := range m.layers() {
		all[layer] = experts[i].sums.sums(experts[i].blocks)
	}
	return all.Encode(m.layout.Bytes)
}
