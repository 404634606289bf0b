// Package tokenizer turns text into token ids and back, as a Hugging Face tokenizer.json, Kimi's
// tiktoken.model, Hunyuan's hy.tiktoken or the metadata of a GGUF file says. It owns byte-level BPE
// tokenizers, the kind that the families of the engine ship: added tokens, normalizer,
// pre-tokenizer, merges, special tokens around a text, decoding, and the search for stop strings.
// Chat templates belong to package chat.
//
// A Tokenizer is made by Parse, Load or LoadDir and never changes afterwards. A Stream decodes ids
// one by one as a model produces them, a StopStream cuts that text at a stop string. What
// tokenizer.json asks for and this package does not implement is refused by an *UnsupportedError.
//
// Encoding goes: cut out the added tokens that match the raw text, normalise what lies between, cut
// out the added tokens that match normalised text, split the rest into pieces, merge the bytes of
// each piece by rank. Truncation and padding of tokenizer.json are for batches and are not applied.
//
// The splitting expressions in use (knownPatterns) are written by hand, in linear time; any other
// goes through a backtracking matcher, whose time is up to the expression.
//
// A tiktoken.model or hy.tiktoken holds tokens by rank and no more. Two neighbours merge if their
// bytes together are a token, the lowest rank first; a piece that is a token as a whole is that
// token. The rest is in the code of the tokenizer_class that tokenizer_config.json names, and
// Kimi's special tokens are in that file.
package tokenizer
