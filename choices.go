package moeflux

import (
	"errors"
	"strings"

	"github.com/moeflux/moeflux-actor/tokenizer"
)

// Choices bounds a text to one of these, to the byte.
func Choices(texts ...string) *Constraint {
	return &Constraint{begin: func(m *Model) (automaton, error) {
		if len(texts) == 0 {
			return nil, errors.New("there is nothing to choose from")
		}
		return &choosing{text: m.text, left: texts}, nil
	}}
}

// choosing is an automaton of texts: what may still come of each.
type choosing struct {
	text *tokenizer.Tokenizer
	left []string
}

func (c *choosing) Allows(token int32) bool {
	bytes, ok := c.text.TokenBytes(token)
	if !ok || len(bytes) == 0 || c.text.IsSpecial(token) {
		return false
	}
	for _, text := range c.left {
		if strings.HasPrefix(text, string(bytes)) {
			return true
		}
	}
	return false
}

func (c *choosing) Forbid(logits []float32) {
	for i := range logits {
		if !c.Allows(int32(i)) {
			logits[i] = negInf
		}
	}
}

func (c *choosing) Advance(token int32) {
	bytes, _ := c.text.TokenBytes(token)
	var left []string
	for _, text := range c.left {
		if rest, ok := strings.CutPrefix(text, string(bytes)); ok {
			left = append(left, rest)
		}
	}
	c.left = left
}

func (c *choosing) Ends() (may, must bool) {
	must = true
	for _, text := range c.left {
		may, must = may || text == "", must && text == ""
	}
	return may, must
}
