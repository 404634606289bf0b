package actors_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages"
)

// windowPage is how many positions a page has.
const windowPage = 64

// TestWindowRewind cuts texts of models with windows at positions of all kinds, goes on with other
// tokens and cuts again: where all is kept that the next row needs it works, and logits have the
// bits of a text that was never cut; elsewhere it is refused, with what a checkpoint can do, and
// nothing changes.
func TestWindowRewind(t *testing.T) {
	for i, name := range []string{fixtures.GptOssBF16, fixtures.MiMoV2FlashBF16, fixtures.Step35BF16} {
		for k, kv := range kvFormats {
			if testenv.Rounds(0, 0, 1) == 0 && i%len(kvFormats) != k {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s", name, kv), func(t *testing.T) { rewindWindows(t, name, kv) })
		}
	}
}

func rewindWindows(t *testing.T, name string, kv actors.KVFormat) {
	cfg := actors.Config{Model: fixtures.Packed(t, name, 0), Device: device(t, 2), KV: kv, ChunkRows: 50}
	e, base := open(t, cfg), open(t, cfg)
	a, vocab := e.Model().Attention(model.WindowAttention), e.Model().VocabSize
	kept := (a.Window-1+windowPage-1)/windowPage*windowPage + windowPage // in whole pages
	rng := rand.New(rand.NewPCG(7, 11))
	s, fresh := sequence(t, e), sequence(t, base)
	text := prompt(1, 2*kept, vocab)
	eval(t, s, text...)
	written, cuts, refused := 0, 0, 0 // pages that were begun
	for round := range testenv.Rounds(15, 30, 600) {
		more := prompt(rng.Uint64(), 1+rng.IntN(40)*rng.IntN(5), vocab)
		if len(text)+len(more) > e.Info().Context { // begin another one
			if err := s.Reset(ctx); err != nil {
				t.Fatal(err)
			}
			text, written = text[:0], 0
		}
		text = append(text, more...)
		got := eval(t, s, more...)
		written = max(written, (len(text)+windowPage-1)/windowPage)
		if err := fresh.Reset(ctx); err != nil {
			t.Fatal(err)
		}
		if want := eval(t, fresh, text...); !slices.Equal(got, want) {
			t.Fatalf("round %d: logits of %d positions differ from those of a text that was never cut", round, len(text))
		}
		pos := max(1, len(text)-rng.IntN(2*kept))
		if rng.IntN(4) == 0 {
			pos = max(1, written*windowPage-kept+a.Window-2+rng.IntN(3)) // the border
		}
		if pos >= len(text) {
			continue
		}
		err := s.Truncate(ctx, pos)
		var cannot *stages.CannotTruncateLinear
		switch reach := max(0, pos-a.Window+1) >= written*windowPage-kept; {
		case reach && err == nil:
			text, cuts = text[:pos], cuts+1
		case !reach && errors.As(err, &cannot) && cannot.Pos == pos && cannot.PosMax == len(text) && cannot.Nearest == 0:
			refused++
		default:
			t.Fatalf("round %d: %d of %d positions, %d pages: it can be cut: %v; %v", round, pos, len(text), written, reach, err)
		}
		if s.Len() != len(text) {
			t.Fatalf("round %d: %d positions, want %d", round, s.Len(), len(text))
		}
	}
	if cuts < 3 || refused < 3 {
		t.Errorf("%d cuts, and %d were refused: the test shows little", cuts, refused)
	}
}

// TestWindowRewindAfter cuts texts whose states came from elsewhere, of which a window is there and
// no more: checkpoints, saved, forked and parked ones.
func TestWindowRewindAfter(t *testing.T) {
	const name, n = fixtures.GptOssBF16, 300
	cfg := actors.Config{Model: fixtures.Packed(t, name, 0), Device: device(t, 2), ParkedMemory: 1 << 30}
	e := open(t, cfg)
	text := prompt(9, n+40, e.Model().VocabSize)
	want := eval(t, sequence(t, e), text...)
	for what, move := range map[string]func(s *actors.Sequence) (*actors.Sequence, error){
		"checkpoint": func(s *actors.Sequence) (*actors.Sequence, error) {
			if err := s.Checkpoint(ctx, n); err != nil {
				return nil, err
			}
			eval(t, s, prompt(1, 80, e.Model().VocabSize)...)
			return s, s.RestoreTo(ctx, n)
		},
		"saved": func(s *actors.Sequence) (*actors.Sequence, error) {
			other := sequence(t, e)
			return other, load(other, save(t, s, actors.SaveOptions{}), actors.LoadOptions{})
		},
		"forked": func(s *actors.Sequence) (*actors.Sequence, error) { return s.Fork(ctx) },
		"parked": func(s *actors.Sequence) (*actors.Sequence, error) { return s, s.Park(ctx) },
	} {
		s := sequence(t, e)
		eval(t, s, text[:n]...)
		s, err := move(s)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		var cannot *stages.CannotTruncateLinear
		if err := s.Truncate(ctx, n-1); !errors.As(err, &cannot) {
			t.Errorf("%s: cut before what is there: %v", what, err)
		}
		eval(t, s, 1, 2, 3)
		if err := s.Truncate(ctx, n); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if got := eval(t, s, text[n:]...); !slices.Equal(got, want) {
			t.Errorf("%s: logits differ", what)
		}
		if at, err := s.Rewind(ctx, len(text)-5); err != nil || at != len(text)-5 {
			t.Errorf("%s: rewound to %d, %v", what, at, err)
		}
		if got := eval(t, s, text[len(text)-5:]...); !slices.Equal(got, want) {
			t.Errorf("%s: logits after a rewind differ", what)
		}
	}
}

// A text that departs from what its sequence has goes on where the two agree, without a checkpoint.
func TestWindowResume(t *testing.T) {
	e := open(t, actors.Config{Model: fixtures.Packed(t, fixtures.GptOssBF16, 0), Device: device(t, 2)})
	s, text := sequence(t, e), prompt(3, 300, e.Model().VocabSize)
	eval(t, s, text...)
	other := append(slices.Clone(text[:280]), prompt(4, 30, e.Model().VocabSize)...)
	n, err := s.Resume(ctx, other)
	if err != nil || n < 280 || n >= len(other) || !slices.Equal(other[:n], append(slices.Clone(text), 0)[:n]) {
		t.Fatalf("%d positions are known, %v", n, err)
	}
	if got, want := eval(t, s, other[n:]...), eval(t, sequence(t, e), other...); !slices.Equal(got, want) {
		t.Error("logits differ")
	}
}
