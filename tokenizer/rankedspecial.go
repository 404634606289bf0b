package tokenizer

import "fmt"

// maxSpecial is the most special tokens that follow the ranks of any class.
const maxSpecial = reservedTokens

// reservedTokens is how many special tokens follow the vocabulary of a tiktoken.model, named or
// not.
const reservedTokens = 256

// reservedAfter returns the named special tokens and those without a name, up to reservedTokens
// from base on.
func reservedAfter(named []*addedToken, base int32) ([]*addedToken, error) {
	taken := map[int32]bool{}
	for _, tok := range named {
		taken[tok.id] = true
	}
	all := append([]*addedToken{}, named...)
	for id := base; id < base+reservedTokens; id++ {
		if !taken[id] {
			all = append(all, &addedToken{id: id, content: fmt.Sprintf("<|reserved_token_%d|>", id), special: true})
		}
	}
	return all, nil
}

// hunyuanExtras is how many tokens without a meaning of their own end the list of Hunyuan-A13B.
const hunyuanExtras = 205

// hunyuanSpecial returns the special tokens that the code of Hunyuan-A13B's tokenizer has. It looks
// for them in text that is in normal form already. The config may repeat them and names no other.
func hunyuanSpecial(named []*addedToken, base int32) ([]*addedToken, error) {
	names := []string{"<|endoftext|>", "<|startoftext|>", "<|bos|>", "<|eos|>", "<|pad|>"}
	for i := range hunyuanExtras {
		names = append(names, fmt.Sprintf("<|extra_%d|>", i))
	}
	var all []*addedToken
	for i, name := range names {
		all = append(all, &addedToken{id: base + int32(i), content: name, normalized: true, special: true})
	}
	for _, tok := range named {
		if i := tok.id - base; i < 0 || int(i) >= len(names) || names[i] != tok.content {
			return nil, fmt.Errorf("tokenizer: %s.added_tokens_decoder: %q with id %d is not a token of HYTokenizer beside %d ranks; fetch %s and %s again",
				configName, excerpt(tok.content), tok.id, base, hunyuanName, configName)
		}
	}
	return all, nil
}

// giveWay takes entries of the vocabulary that are spelled like special tokens out of what TokenID
// finds, as Encode does.
func (t *Tokenizer) giveWay(special []*addedToken) {
	for _, tok := range special {
		if id, ok := t.ids[tok.content]; ok && id != tok.id {
			delete(t.ids, tok.content)
		}
	}
}
