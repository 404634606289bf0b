package tokenizer

import "unicode/utf8"

// The vocabulary of a byte-level tokenizer is spelled in an alphabet of 256 printable characters,
// one for each byte: 0x21-0x7e, 0xa1-0xac and 0xae-0xff stand for themselves, the other 68 bytes
// are U+0100 and up in ascending order.

// alphabetSize is one more than the largest character of the alphabet.
const alphabetSize = 0x100 + 68

// byteToChar is the alphabet by byte.
var byteToChar = makeAlphabet()

// charToByte is the inverse: the byte of a character below alphabetSize, or -1.
var charToByte = invertAlphabet(byteToChar)

func makeAlphabet() (chars [256]rune) {
	next := rune(0x100)
	for b := range chars {
		if b >= 0x21 && b <= 0x7e || b >= 0xa1 && b <= 0xac || b >= 0xae {
			chars[b] = rune(b)
			continue
		}
		chars[b] = next
		next++
	}
	return chars
}

func invertAlphabet(chars [256]rune) (bytes [alphabetSize]int16) {
	for i := range bytes {
		bytes[i] = -1
	}
	for b, c := range chars {
		bytes[c] = int16(b)
	}
	return bytes
}

// appendSpelled appends the bytes that a vocabulary entry stands for. An entry with any character
// outside the alphabet stands for its own UTF-8: some vocabularies hold their special tokens that
// way. ok says which case it was.
func appendSpelled(dst []byte, entry string) (out []byte, ok bool) {
	start := len(dst)
	for i := 0; i < len(entry); {
		r, n := rune(entry[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(entry[i:])
		}
		if r >= alphabetSize || charToByte[r] < 0 {
			return append(dst[:start], entry...), false
		}
		dst = append(dst, byte(charToByte[r]))
		i += n
	}
	return dst, true
}
