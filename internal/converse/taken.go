package converse

import (
	"context"
	"strings"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/figures"
)

// Taken is what a request has brought, shown as it came.
type Taken struct {
	Show Display
	Now  func() time.Time
	// Read is called when the prompt has been read, before the first token comes.
	Read func(context.Context) error

	Clock  figures.Clock
	Prompt moeflux.Prompt
	Reused int // tokens of it that were not read
	Tokens []moeflux.Token
	Text   strings.Builder // as the model wrote it
	End    *moeflux.End    // nil if an error ended it
}

// Take takes the events of a request as they come. After an error it has what came before.
func (t *Taken) Take(ctx context.Context, events moeflux.Events) error {
	err := t.take(ctx, events)
	if endErr := t.Show.End(); err == nil { // the part that came is shown even after an error
		err = endErr
	}
	return err
}

func (t *Taken) take(ctx context.Context, events moeflux.Events) error {
	for e, err := range events {
		if err != nil {
			return err
		}
		switch {
		case e.Prompt != nil:
			t.Prompt, t.Clock.PromptStart = *e.Prompt, t.Now()
		case e.Read != nil:
			t.Reused, t.Clock.PromptEnd = e.Read.Reused, t.Now()
			if err := t.Read(ctx); err != nil {
				return err
			}
		case e.Token != nil:
			t.Clock.Token(t.Now())
			t.Tokens = append(t.Tokens, *e.Token)
		case e.End != nil:
			t.End = e.End
		}
		t.Text.WriteString(e.Raw)
		if err := t.Show.Write(&e); err != nil {
			return err
		}
	}
	return nil
}

// NewIDs returns the ids of the new tokens.
func (t *Taken) NewIDs() []int32 {
	ids := make([]int32, len(t.Tokens))
	for i := range t.Tokens {
		ids[i] = t.Tokens[i].ID
	}
	return ids
}
