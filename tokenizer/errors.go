package tokenizer

import "fmt"

// UnsupportedError reports a part of tokenizer.json, of the config of a file of ranks or of a GGUF
// file's metadata that this package does not implement.
type UnsupportedError struct {
	Key   string // path of the key, as in "pre_tokenizer.pretokenizers[0].behavior"
	Value string // its JSON value, cut to a readable length
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("tokenizer: %s = %s is not supported; use a byte-level BPE tokenizer.json", e.Key, e.Value)
}

// UnencodableError reports a byte for which the vocabulary has no token, so that the text cannot be
// encoded in full.
type UnencodableError struct {
	Byte byte
}

func (e *UnencodableError) Error() string {
	return fmt.Sprintf("tokenizer: the vocabulary has no token for byte %#02x; the tokenizer.json is incomplete", e.Byte)
}

// TextSizeError reports a text too long for one call of Encode.
type TextSizeError struct {
	Bytes, MaxBytes int
}

func (e *TextSizeError) Error() string {
	return fmt.Sprintf("tokenizer: a text of %d bytes exceeds the limit of %d; encode it in parts", e.Bytes, e.MaxBytes)
}
