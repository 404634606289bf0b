package tokenizer

import (
	"unicode/utf8"
)

// Decode returns the text of ids: their bytes one after the other, added tokens literally. Bytes
// that are not UTF-8 become U+FFFD, one for each longest beginning of a character (so three bytes
// of a cut four-byte character give one) and one for each byte that begins none. With skipSpecial,
// special tokens are left out. Ids without a token are left out too, as in the reference: a model
// may have more rows of logits than the tokenizer has tokens.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string {
	var buf []byte
	for _, id := range ids {
		buf = append(buf, t.visible(id, skipSpecial)...)
	}
	if utf8.Valid(buf) {
		return string(buf)
	}
	out, _ := appendValid(make([]byte, 0, len(buf)+16), buf, true)
	return string(out)
}

// visible returns the bytes of a token that decoding shows.
func (t *Tokenizer) visible(id int32, skipSpecial bool) string {
	if !t.has(id) || skipSpecial && t.flags[id]&flagSpecial != 0 {
		return ""
	}
	return t.bytes[id]
}

// appendValid appends src to dst with invalid parts replaced. Unless last, it stops before an
// unfinished character at the end of src; rest is what it left, at most three bytes.
func appendValid(dst, src []byte, last bool) (out, rest []byte) {
	for len(src) > 0 {
		r, n := utf8.DecodeRune(src)
		if r != utf8.RuneError || n > 1 {
			dst = append(dst, src[:n]...)
			src = src[n:]
			continue
		}
		if !last && !utf8.FullRune(src) {
			break
		}
		dst = append(dst, "\uFFFD"...)
		src = src[badLen(src):]
	}
	return dst, src
}

// badLen returns how many bytes of an invalid src one U+FFFD replaces: the longest beginning of a
// character, or one byte.
func badLen(src []byte) int {
	for n := min(3, len(src)); n > 1; n-- {
		if !utf8.FullRune(src[:n]) {
			return n
		}
	}
	return 1
}

// Stream decodes ids as they come. The texts that Push returns and that of Flush, put together, are
// Decode of all ids. A Stream is for one goroutine; a Tokenizer may have any number of them.
type Stream struct {
	t           *Tokenizer
	skipSpecial bool
	pending     []byte // the beginning of a character, at most three bytes between calls
}

// NewStream returns a Stream at the beginning of a text. skipSpecial is that of Decode.
func (t *Tokenizer) NewStream(skipSpecial bool) *Stream {
	return &Stream{t: t, skipSpecial: skipSpecial}
}

// Push takes the next id and returns the text that is certain now; it holds back the beginning of
// an unfinished character. An id that no token has gives no text and changes nothing, as in Decode.
func (s *Stream) Push(id int32) string {
	s.pending = append(s.pending, s.t.visible(id, s.skipSpecial)...)
	out, rest := appendValid(nil, s.pending, false)
	s.pending = s.pending[:copy(s.pending, rest)]
	return string(out)
}

// Flush ends the text: it returns U+FFFD for a character that was not finished, else nothing. The
// Stream then is at the beginning of a new text.
func (s *Stream) Flush() string {
	out, _ := appendValid(nil, s.pending, true)
	s.pending = s.pending[:0]
	return string(out)
}
