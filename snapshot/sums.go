package snapshot

import (
	"encoding/binary"
	"hash/crc32"
)

// sums are two checksums of one stream. Their polynomials have no common factor, so together they
// are a 64-bit CRC, and processors have instructions for both.
type sums struct{ castagnoli, ieee uint32 }

// sumsBytes is the size of both in a file.
const sumsBytes = 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (s *sums) add(p []byte) {
	s.castagnoli = crc32.Update(s.castagnoli, castagnoli, p)
	s.ieee = crc32.Update(s.ieee, crc32.IEEETable, p)
}

// value is both as one number, CRC-32C in the upper half.
func (s sums) value() int64 { return int64(uint64(s.castagnoli)<<32 | uint64(s.ieee)) }

// appendTo appends CRC-32C and CRC-32.
func (s sums) appendTo(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, s.castagnoli)
	return binary.LittleEndian.AppendUint32(dst, s.ieee)
}

// readSums reads what appendTo wrote.
func readSums(p []byte) sums {
	return sums{binary.LittleEndian.Uint32(p), binary.LittleEndian.Uint32(p[4:])}
}
