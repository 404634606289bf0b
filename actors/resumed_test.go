package actors_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// TestGenerateResumed generates after texts that begin alike: what was read is not read again, and
// the tokens are those of a sequence that reads all of it.
func TestGenerateResumed(t *testing.T) {
	for _, name := range families {
		e := open(t, actors.Config{Model: fixtures.Packed(t, name, 0), ChunkRows: rowsOfSteps(name, 16)})
		vocab := e.Model().VocabSize
		system := prompt(1, 80, vocab)
		text := system
		for turn := range 3 {
			text = append(slices.Clone(text), prompt(uint64(turn)+2, 10, vocab)...)
			alone := sequence(t, e)
			want := generated(t, alone, text, actors.GenerateOptions{MaxTokens: 5, IgnoreEOS: true})
			if err := alone.Close(); err != nil {
				t.Fatal(err)
			}
			reused := -1
			s := sequence(t, e) // another one each time: the one before is closed
			got := generated(t, s, text, actors.GenerateOptions{MaxTokens: 5, IgnoreEOS: true, Resume: true, Reused: &reused})
			if !slices.Equal(got, want) {
				t.Errorf("%s, turn %d: %v, want %v", name, turn, got, want)
			}
			if least := len(text) - 11; turn > 0 && reused < least {
				t.Errorf("%s, turn %d: %d of %d tokens were not read again, want %d at least", name, turn, reused, len(text), least)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			text = append(slices.Clone(text), got...)
			if turn == 0 {
				text = text[:len(text)-5] // as if what was thought were left out
			}
		}
		st, err := e.Stats(ctx)
		if err != nil || st.States.Resumed != 3 || st.States.Reused < 180 || st.States.Remembered < 3 {
			t.Errorf("%s: %+v, %v", name, st.States, err)
		}
		if _, err := s0(t, e, text); err == nil || !strings.Contains(err.Error(), "Earlier") && !strings.Contains(err.Error(), "earlier") {
			t.Errorf("%s: resuming with an earlier text: %v", name, err)
		}
	}
}

func s0(t *testing.T, e *actors.Engine, text []int32) (n int, err error) {
	for _, err = range sequence(t, e).Generate(ctx, text, actors.GenerateOptions{MaxTokens: 1, Resume: true, Earlier: text}) {
		n++
	}
	return n, err
}

func generated(t *testing.T, s *actors.Sequence, text []int32, o actors.GenerateOptions) (ids []int32) {
	t.Helper()
	for id, err := range s.Generate(ctx, text, o) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}
