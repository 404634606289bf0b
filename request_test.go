package moeflux

import (
	"errors"
	"testing"
)

// Numbers that no model can do anything with are errors that name the field.
func TestRequestNumbers(t *testing.T) {
	for field, r := range map[string]Request{
		"MaxTokens": {MaxTokens: -1}, "TopLogProbs": {TopLogProbs: -1}, "Weight": {Weight: -1},
	} {
		for _, kind := range []sessionKind{sessionText, sessionChat} {
			if err, ok := errors.AsType[*RequestError](r.check(kind)); !ok || err.Field != field {
				t.Errorf("%+v: %v", r, err)
			}
		}
	}
	for weight, right := range map[int]bool{0: true, 1: true, MaxWeight: true, MaxWeight + 1: false} {
		r := Request{Weight: weight}
		if err := r.check(sessionText); (err == nil) != right {
			t.Errorf("weight %d: %v", weight, err)
		}
	}
}
