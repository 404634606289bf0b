package stagetest

import (
	"fmt"
	"reflect"

	"github.com/moeflux/moeflux-actor/stages"
)

// watchedAnswers counts, for each caller, requests that are not answered yet.
type watchedAnswers map[stages.Caller]int

// asked notes what a caller sends.
func (w watchedAnswers) asked(m stages.Message) {
	if _, ok := m.(stages.Request); !ok {
		return
	}
	if f := reflect.ValueOf(m).Elem().FieldByName("Caller"); f.IsValid() && !f.IsNil() {
		w[f.Interface()]++
	}
}

// answered checks that somebody waits for an answer.
func (w watchedAnswers) answered(a stages.Answer) error {
	if w[a.To]--; w[a.To] < 0 {
		return fmt.Errorf("%v is answered more often than it asked: %T", a.To, a.Msg)
	}
	return nil
}

func (w watchedAnswers) atRest() error {
	for c, n := range w {
		if n > 0 {
			return fmt.Errorf("%d requests of %v were never answered", n, c)
		}
	}
	return nil
}
