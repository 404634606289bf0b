package tokenizer

import (
	"math"
	"strings"
	"sync"
)

// noToken is an id that no token has.
const noToken = -1

// Flags of an id.
const (
	flagUsed    uint8 = 1 << iota // some token has it
	flagAdded                     // an added token
	flagSpecial                   // an added token that decoding may leave out
	flagSpelled                   // a vocabulary entry in the byte alphabet
)

// Tokenizer turns text into token ids and back. It never changes, so any number of goroutines may
// use it.
type Tokenizer struct {
	bytes []string // [VocabSize] bytes a token stands for; "" for an unused id
	flags []uint8  // [VocabSize]
	ids   map[string]int32

	byteIDs      [256]int32 // tokens of the single bytes; noToken if a byte has none
	merges       pairTable
	ignoreMerges bool             // a piece that is a token as a whole is not merged
	pieces       map[string]int32 // vocabulary by bytes, filled if ignoreMerges

	norm                normalizer
	rawAdded, normAdded *addedMatcher // added tokens by where they are looked for
	pre                 preTokenizer

	bos, eos      int32   // noToken if there is none
	before, after []int32 // ids put around a text with addSpecial

	encoders sync.Pool // of *encoder
}

// preTokenizer splits a text into pieces. ByteLevel stands at its end.
type preTokenizer struct {
	splits         []splitStep // each splits the pieces of the one before it
	byteLevel      bool        // ByteLevel was there
	addPrefixSpace bool        // each piece gets a space in front that has none
	useRegex       bool        // pieces are split by patternGPT2 in the end
}

// VocabSize returns the highest id plus one.
func (t *Tokenizer) VocabSize() int { return len(t.bytes) }

func (t *Tokenizer) has(id int32) bool {
	return id >= 0 && int(id) < len(t.flags) && t.flags[id]&flagUsed != 0
}

// TokenBytes returns the bytes that a token stands for, which may be part of a character; those of
// an added token are its text. The slice is the caller's. ok is false if no token has that id.
func (t *Tokenizer) TokenBytes(id int32) (b []byte, ok bool) {
	if !t.has(id) {
		return nil, false
	}
	return []byte(t.bytes[id]), true
}

// TokenID returns the id of a token: an added token by its text, one of the vocabulary by its
// spelling there, in the byte alphabet ("Ġthe" for " the").
func (t *Tokenizer) TokenID(content string) (id int32, ok bool) {
	id, ok = t.ids[content]
	return id, ok
}

// IsSpecial reports whether the id is that of a special token, which Decode may leave out.
func (t *Tokenizer) IsSpecial(id int32) bool {
	return t.has(id) && t.flags[id]&flagSpecial != 0
}

// BOS returns the token that begins a text. Only tokenizer_config.json names it, see LoadDir.
func (t *Tokenizer) BOS() (id int32, ok bool) { return max(t.bos, 0), t.bos != noToken }

// EOS returns the token that ends a text. Only tokenizer_config.json names it, see LoadDir.
func (t *Tokenizer) EOS() (id int32, ok bool) { return max(t.eos, 0), t.eos != noToken }

// Encode returns the ids of text. With addSpecial, they come with the ids that go around a text
// (often a BOS, often none): those that tokenizer_config.json asks for, else those of a template in
// tokenizer.json. Added tokens in the text, special ones too, become their ids. Invalid UTF-8 is
// treated as U+FFFD, as in Decode. The error is an *UnencodableError, a *TextSizeError, or that of
// a splitting expression.
func (t *Tokenizer) Encode(text string, addSpecial bool) ([]int32, error) {
	return t.encode(text, addSpecial, false)
}

// encode encodes a text, from which guards are taken when nothing is looked for any more.
func (t *Tokenizer) encode(text string, addSpecial, guarded bool) ([]int32, error) {
	if len(text) > math.MaxInt32 {
		return nil, &TextSizeError{Bytes: len(text), MaxBytes: math.MaxInt32}
	}
	e := t.encoders.Get().(*encoder)
	defer t.encoders.Put(e)
	defer e.release()
	e.guarded = guarded
	e.out = make([]int32, 0, len(text)/3+len(t.before)+len(t.after)+4)
	if addSpecial {
		e.out = append(e.out, t.before...)
	}
	if err := t.rawAdded.split(validText(text), e.normalize, e.token); err != nil {
		return nil, err
	}
	if addSpecial {
		e.out = append(e.out, t.after...)
	}
	return e.out, nil
}

// encoder is the state of one call of Encode. Encoders are reused for their scratch memory and
// cache.
type encoder struct {
	t       *Tokenizer
	out     []int32
	m       merger
	cache   pieceCache
	guarded bool // see Guard
}

func (e *encoder) release() {
	e.out = nil
	e.m.release()
}

func (e *encoder) token(tok *addedToken) error {
	e.out = append(e.out, tok.id)
	return nil
}

// normalize encodes text without raw added tokens.
func (e *encoder) normalize(text string) error {
	return e.t.normAdded.split(e.t.norm.apply(text), e.split, e.token)
}

// split encodes text without added tokens.
func (e *encoder) split(text string) error {
	if e.guarded {
		if text = strings.ReplaceAll(text, guard, ""); text == "" {
			return nil
		}
	}
	return e.splitFrom(0, text)
}

// splitFrom applies the splits from step on to text, which is not empty, and encodes the pieces.
func (e *encoder) splitFrom(step int, text string) error {
	if step == len(e.t.pre.splits) {
		return e.byteLevel(text)
	}
	p := &e.t.pre.splits[step]
	if p.cut != nil {
		for len(text) > 0 {
			n := p.cut(text)
			if err := e.splitFrom(step+1, text[:n]); err != nil {
				return err
			}
			text = text[n:]
		}
		return nil
	}
	pieces, err := p.split(text)
	if err != nil {
		return err
	}
	for _, piece := range pieces {
		if err := e.splitFrom(step+1, piece); err != nil {
			return err
		}
	}
	return nil
}

// byteLevel is the ByteLevel pre-tokenizer; the alphabet itself is not needed, tables go by bytes.
func (e *encoder) byteLevel(text string) error {
	if e.t.pre.addPrefixSpace && text[0] != ' ' {
		text = " " + text
	}
	if !e.t.pre.useRegex {
		return e.piece(text)
	}
	for len(text) > 0 {
		n := cutGPT2(text)
		if err := e.piece(text[:n]); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

// piece encodes one piece.
func (e *encoder) piece(piece string) error {
	t := e.t
	if len(piece) == 1 && t.byteIDs[piece[0]] != noToken {
		e.out = append(e.out, t.byteIDs[piece[0]])
		return nil
	}
	slot := e.cache.slot(piece)
	if slot != nil && slot.holds(piece) {
		e.out = append(e.out, slot.ids[:slot.tokens]...)
		return nil
	}
	if t.ignoreMerges {
		if id, ok := t.pieces[piece]; ok {
			e.out = append(e.out, id)
			return nil
		}
	}
	if len(piece) > math.MaxInt32 {
		return &TextSizeError{Bytes: len(piece), MaxBytes: math.MaxInt32}
	}
	e.m.ids = e.m.ids[:0]
	for i := 0; i < len(piece); i++ {
		id := t.byteIDs[piece[i]]
		if id == noToken {
			return &UnencodableError{Byte: piece[i]}
		}
		e.m.ids = append(e.m.ids, id)
	}
	if len(piece) <= shortPiece {
		e.m.mergeShort(&t.merges)
	} else {
		e.m.mergeLong(&t.merges)
	}
	e.out = append(e.out, e.m.ids...)
	if slot != nil {
		slot.set(piece, e.m.ids)
	}
	return nil
}
