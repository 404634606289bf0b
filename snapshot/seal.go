package snapshot

import (
	"encoding/binary"
	"encoding/hex"

	"github.com/moeflux/moeflux-actor/model"
)

// Fingerprint tells models of the same shape apart. The caller decides what it is made from; zero
// means unknown.
type Fingerprint [32]byte

// String returns the fingerprint in hexadecimal digits.
func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }

// Seal is what follows the body in files of this program. Other programs stop reading before it.
type Seal struct {
	Fingerprint Fingerprint
	// Tokens are the token ids at positions 0, 1, …: of all positions, or none if they are not
	// known.
	Tokens []int32
	// Note is what the program that wrote the file keeps with the state, such as the messages of
	// a conversation; nil for nothing. It has at most MaxNote bytes.
	Note []byte
}

// MaxNote is the most bytes of a seal's note.
const MaxNote = 64 << 20

// The seal's layout, in bytes from its beginning. After the fixed part come a byte per layer with
// its kind, the tokens, in version 2 the length of the note and the note, the length of the seal,
// and the checksums of the seal up to there. A seal without a note is of version 1.
const (
	sealMagic   = 0x4D464C53 // MFLS
	sealVersion = 1
	sealNoted   = 2

	sealAtVersion     = 4
	sealAtBody        = 8  // u64: bytes of header and body
	sealAtSums        = 16 // their checksums
	sealAtPositions   = 24 // u64
	sealAtFingerprint = 32
	sealAtLayers      = 64 // u32
	sealAtTokens      = 68 // u32: how many
	sealFixed         = 72
	noteBytes         = 4 // of the note's length
	sealTail          = 4 + sumsBytes
)

// Kinds of layers in a seal: of latent attention with an indexer, of attention with a window, and
// of full attention with an indexer. The others are their mixers.
const (
	kindIndexed = byte(model.LatentAttention) + 1 + iota
	kindWindow
	kindIndexedFull
)

// kinds returns the layers as a seal lists them.
func (s *Shape) kinds() []byte {
	out := make([]byte, len(s.Layers))
	for i, m := range s.Layers {
		out[i] = byte(m)
		if m == model.WindowAttention {
			out[i] = kindWindow
		}
		if s.Indexers != nil && s.Indexers[i] {
			out[i] = kindIndexed
			if m == model.FullAttention {
				out[i] = kindIndexedFull
			}
		}
	}
	return out
}

// ofKinds returns the layers that a seal lists, and which of them have indexers; nil if none has.
func ofKinds(kinds []byte) (layers []model.Mixer, indexers []bool) {
	for i, k := range kinds {
		if k == kindIndexed || k == kindIndexedFull {
			if indexers == nil {
				indexers = make([]bool, len(kinds))
			}
			indexers[i] = true
			if k = byte(model.LatentAttention); kinds[i] == kindIndexedFull {
				k = byte(model.FullAttention)
			}
		}
		m := model.Mixer(k)
		if k == kindWindow {
			m = model.WindowAttention
		}
		layers = append(layers, m)
	}
	return layers, indexers
}

// bytes returns the size of a seal for a number of layers.
func (s *Seal) bytes(layers int) int64 {
	return sealBytes(s.version(), layers, len(s.Tokens)) + int64(len(s.Note))
}

// sealBytes returns the size of a seal without its note.
func sealBytes(version, layers, tokens int) int64 {
	n := sealFixed + int64(layers) + 4*int64(tokens) + sealTail
	if version == sealNoted {
		n += noteBytes
	}
	return n
}

func (s *Seal) version() int {
	if s.Note != nil {
		return sealNoted
	}
	return sealVersion
}

// sealed is a seal as it is in a file.
type sealed struct {
	Seal
	body      int64
	sums      sums
	positions int64
	kinds     []byte // see Shape.kinds
}

// append appends the seal's bytes.
func (s *sealed) append(dst []byte) []byte {
	start := len(dst)
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, sealMagic)
	dst = le.AppendUint32(dst, uint32(s.version()))
	dst = le.AppendUint64(dst, uint64(s.body))
	dst = s.sums.appendTo(dst)
	dst = le.AppendUint64(dst, uint64(s.positions))
	dst = append(dst, s.Fingerprint[:]...)
	dst = le.AppendUint32(dst, uint32(len(s.kinds)))
	dst = le.AppendUint32(dst, uint32(len(s.Tokens)))
	dst = append(dst, s.kinds...)
	for _, t := range s.Tokens {
		dst = le.AppendUint32(dst, uint32(t))
	}
	if s.Note != nil {
		dst = append(le.AppendUint32(dst, uint32(len(s.Note))), s.Note...)
	}
	dst = le.AppendUint32(dst, uint32(len(dst)-start+sealTail))
	var own sums
	own.add(dst[start:])
	return own.appendTo(dst)
}

// sealBegins reports whether a seal begins at at.
func (in *input) sealBegins(at int64) (bool, error) {
	var head [4]byte
	if in.size-at < int64(len(head)) {
		return false, nil
	}
	err := in.readAt(head[:], at, -1, "seal")
	return binary.LittleEndian.Uint32(head[:]) == sealMagic, err
}

// readSeal reads the seal that begins at at and must end where the file does. It checks the seal's
// own checksum and its numbers.
func (in *input) readSeal(at int64) (*sealed, error) {
	const field = "seal"
	var head [sealFixed]byte
	if err := in.readAt(head[:], at, -1, field); err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	layers, tokens := int64(le.Uint32(head[sealAtLayers:])), int64(le.Uint32(head[sealAtTokens:]))
	if layers > maxLayers {
		return nil, wrong(ErrSeal, "seal layers", layers, maxLayers)
	}
	if tokens > maxLen {
		return nil, wrong(ErrSeal, "seal tokens", tokens, maxLen)
	}
	least := sealBytes(int(le.Uint32(head[sealAtVersion:])), int(layers), int(tokens))
	most := least
	if le.Uint32(head[sealAtVersion:]) == sealNoted {
		most += MaxNote
	}
	n := in.size - at
	switch {
	case n < least:
		return nil, wrong(ErrTruncated, field, n, least)
	case n > most:
		return nil, wrong(ErrTrailing, field, n, most)
	}
	raw := make([]byte, n)
	if err := in.readAt(raw, at, -1, field); err != nil {
		return nil, err
	}
	var own sums
	own.add(raw[:n-sumsBytes])
	if want := readSums(raw[n-sumsBytes:]); own != want {
		return nil, wrong(ErrSeal, "seal checksum", own.value(), want.value())
	}
	return parseSeal(raw, int(layers), int(tokens))
}

// parseSeal takes apart a seal whose checksum is right.
func parseSeal(raw []byte, layers, tokens int) (*sealed, error) {
	le := binary.LittleEndian
	version := int(le.Uint32(raw[sealAtVersion:]))
	if version != sealVersion && version != sealNoted {
		return nil, wrong(ErrVersion, "seal version", int64(version), sealNoted)
	}
	s := &sealed{body: int64(le.Uint64(raw[sealAtBody:])), sums: readSums(raw[sealAtSums:]), positions: int64(le.Uint64(raw[sealAtPositions:]))}
	s.Fingerprint = Fingerprint(raw[sealAtFingerprint:])
	if err := checkLen(s.positions, "seal positions", -1); err != nil {
		return nil, err
	}
	if tokens != 0 && int64(tokens) != s.positions {
		return nil, wrong(ErrSeal, "seal tokens", int64(tokens), s.positions)
	}
	s.kinds = raw[sealFixed:][:layers]
	for i, k := range s.kinds {
		if k > kindIndexedFull {
			return nil, &Error{Kind: ErrSeal, Field: "kind", Layer: i, Got: int64(k), Want: int64(kindIndexedFull)}
		}
	}
	if tokens > 0 {
		s.Tokens = make([]int32, tokens)
		for i := range s.Tokens {
			s.Tokens[i] = int32(le.Uint32(raw[sealFixed+layers+4*i:]))
		}
	}
	if version == sealNoted {
		note := raw[sealFixed+layers+4*tokens : len(raw)-sealTail]
		if n := int64(le.Uint32(note)); n != int64(len(note)-noteBytes) {
			return nil, wrong(ErrSeal, "seal note", n, int64(len(note)-noteBytes))
		}
		s.Note = note[noteBytes:]
	}
	return s, nil
}

// findSeal looks for a seal at the end of the file. It returns nil if there is none.
func (in *input) findSeal() (*sealed, error) {
	var tail [sealTail]byte
	if in.size < sealFixed+sealTail {
		return nil, nil
	}
	if err := in.readAt(tail[:], in.size-sealTail, -1, "seal"); err != nil {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n < sealFixed+sealTail || n > in.size {
		return nil, nil
	}
	if ok, err := in.sealBegins(in.size - n); !ok || err != nil {
		return nil, err
	}
	return in.readSeal(in.size - n)
}
