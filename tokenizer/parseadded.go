package tokenizer

import (
	"encoding/json"
	"fmt"
	"slices"
)

// parseAdded reads added_tokens and the further ones of cfg, and makes the matchers.
func (t *Tokenizer) parseAdded(raw []byte, cfg *config, idLimit int) error {
	var list []json.RawMessage
	if raw != nil {
		if err := json.Unmarshal(raw, &list); err != nil {
			return fmt.Errorf("tokenizer: added_tokens: %w", err)
		}
	}
	var added []*addedToken
	seen := map[string]*addedToken{}
	for i, item := range list {
		o := newObject(fmt.Sprintf("added_tokens[%d]", i), item)
		id := int32(noToken)
		o.into("id", &id)
		tok := readAddedToken(o, id)
		if err := o.end(); err != nil {
			return err
		}
		if old := seen[tok.content]; old != nil {
			if *old != *tok {
				return fmt.Errorf("tokenizer: added_tokens[%d]: %q was there before and differs", i, excerpt(tok.content))
			}
			continue
		}
		seen[tok.content] = tok
		if err := t.addToken(tok, idLimit); err != nil {
			return err
		}
		added = append(added, tok)
	}
	if cfg != nil {
		for _, tok := range cfg.added {
			if id, ok := t.ids[tok.content]; ok && id == tok.id && t.flags[id]&flagAdded != 0 {
				continue // tokenizer.json says what it is
			}
			if err := t.addToken(tok, idLimit); err != nil {
				return fmt.Errorf("tokenizer_config.json: added_tokens_decoder: %w", err)
			}
			added = append(added, tok)
		}
	}
	t.setMatchers(added)
	return nil
}

// readAddedToken takes the keys of an added token. Most files give them all; the defaults are those
// of the reference.
func readAddedToken(o *object, id int32) *addedToken {
	special := o.flag("special", false)
	return &addedToken{
		id: id, content: o.text("content"),
		singleWord: o.flag("single_word", false), lstrip: o.flag("lstrip", false), rstrip: o.flag("rstrip", false),
		normalized: o.flag("normalized", !special), special: special,
	}
}

// addToken enters an added token into the tables. It may be in the vocabulary already, with the
// same id.
func (t *Tokenizer) addToken(tok *addedToken, idLimit int) error {
	if tok.content == "" {
		return fmt.Errorf("tokenizer: the added token with id %d has no content", tok.id)
	}
	if err := checkID(tok.content, tok.id, idLimit); err != nil {
		return err
	}
	if id, ok := t.ids[tok.content]; ok && id != tok.id {
		return fmt.Errorf("tokenizer: added token %q has id %d, the vocabulary says %d", excerpt(tok.content), tok.id, id)
	} else if !ok && t.has(tok.id) {
		return fmt.Errorf("tokenizer: added token %q has id %d, which another token has", excerpt(tok.content), tok.id)
	}
	if n := int(tok.id) + 1; n > len(t.bytes) {
		t.bytes = append(t.bytes, make([]string, n-len(t.bytes))...)
		t.flags = append(t.flags, make([]uint8, n-len(t.flags))...)
	}
	t.ids[tok.content], t.bytes[tok.id] = tok.id, tok.content
	t.flags[tok.id] |= flagUsed | flagAdded
	if tok.special {
		t.flags[tok.id] |= flagSpecial
	}
	return nil
}

// setMatchers sorts the added tokens by the text they are searched for in, raw or normalised. Of
// two with the same text a special one wins, then the earlier.
func (t *Tokenizer) setMatchers(added []*addedToken) {
	slices.SortStableFunc(added, func(a, b *addedToken) int {
		switch {
		case a.special == b.special:
			return 0
		case a.special:
			return -1
		}
		return 1
	})
	var raw, normalized []addedPattern
	for _, tok := range added {
		if tok.normalized {
			normalized = append(normalized, addedPattern{t.norm.apply(tok.content), tok})
		} else {
			raw = append(raw, addedPattern{tok.content, tok})
		}
	}
	t.rawAdded, t.normAdded = newAddedMatcher(raw), newAddedMatcher(normalized)
}
