package tokenizer

import "hash/maphash"

// Sizes of the piece cache: 2^14 entries of one cache line each make 1 MiB. Longer pieces and
// pieces of more tokens are rare and are merged each time.
const (
	cacheSlots    = 1 << 14
	cachedBytes   = 30
	cachedTokens  = 8
	cacheSlotMask = cacheSlots - 1
)

// pieceCache remembers the tokens of short pieces. Each piece has one slot, which a newer piece
// takes from an older one, so the cache needs no lists and does not grow. It belongs to one encoder
// and is not for concurrent use.
type pieceCache struct {
	seed  maphash.Seed
	slots []cacheSlot // [cacheSlots], made at the first use
}

type cacheSlot struct {
	bytes, tokens uint8 // bytes is 0 in an empty slot
	piece         [cachedBytes]byte
	ids           [cachedTokens]int32
}

// slot returns the place of a piece, nil if it is too long to be kept.
func (c *pieceCache) slot(piece string) *cacheSlot {
	if len(piece) > cachedBytes {
		return nil
	}
	if c.slots == nil {
		c.seed = maphash.MakeSeed()
		c.slots = make([]cacheSlot, cacheSlots)
	}
	return &c.slots[maphash.String(c.seed, piece)&cacheSlotMask]
}

// holds reports whether the slot is that of this piece. Pieces are never empty.
func (s *cacheSlot) holds(piece string) bool {
	return string(s.piece[:s.bytes]) == piece
}

// set makes the slot that of a piece, unless it has too many tokens.
func (s *cacheSlot) set(piece string, ids []int32) {
	if len(ids) > cachedTokens {
		return
	}
	s.bytes, s.tokens = uint8(copy(s.piece[:], piece)), uint8(copy(s.ids[:], ids))
}
