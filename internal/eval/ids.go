package eval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Prompt is ids under a name.
type Prompt struct {
	Name string
	IDs  []int32
}

// ParseIDs reads a JSON list of ids. Whether the model has them is CheckVocab's to say.
func ParseIDs(data []byte) ([]int32, error) {
	var ids []int32
	if err := json.Unmarshal(data, &ids); err != nil {
		return nil, fmt.Errorf("this is not a JSON list of token ids: %w", err)
	}
	if bytes.Contains(data, []byte("null")) { // the decoder makes 0 of it
		return nil, errors.New("this is not a JSON list of token ids: it contains null")
	}
	return ids, nil
}

// CheckVocab reports the first id outside the vocabulary.
func CheckVocab(ids []int32, vocab int) error {
	for i, id := range ids {
		if id < 0 || int(id) >= vocab {
			return fmt.Errorf("id %d at index %d is outside the vocabulary of %d", id, i, vocab)
		}
	}
	return nil
}

// ParsePrompts reads a JSON object of name to list of ids, in the order of the file.
func ParsePrompts(data []byte) ([]Prompt, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.Join(errors.New("this is not a JSON object of names and lists of token ids"), noEOF(err))
	}
	var all []Prompt
	seen := map[string]bool{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name := t.(string) // the decoder lets nothing else be a key
		if name == "" || seen[name] {
			return nil, fmt.Errorf("the name %q is empty or comes twice", name)
		}
		seen[name] = true
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, fmt.Errorf("the ids of %q: %w", name, err)
		}
		ids, err := ParseIDs(raw)
		if err != nil {
			return nil, fmt.Errorf("the ids of %q: %w", name, err)
		}
		if len(ids) == 0 {
			return nil, fmt.Errorf("the ids of %q: the list is empty", name)
		}
		all = append(all, Prompt{name, ids})
	}
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("the object does not end: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("something follows the object")
	}
	if len(all) == 0 {
		return nil, errors.New("the object is empty; it needs at least one name with a list of token ids")
	}
	return all, nil
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
