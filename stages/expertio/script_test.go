package expertio_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/stages/expertio"
	"github.com/moeflux/moeflux-actor/stages/stagetest"
)

// TestScripts runs testdata.
func TestScripts(t *testing.T) {
	stagetest.RunScripts(t, "testdata/*.txt", func(t *testing.T, a *stagetest.Args) stagetest.Scripted {
		c, err := expertio.New(expertio.Config{
			Layers: a.Int("layers", 2), Experts: a.Int("experts", 8), First: a.Int("first", 0), ExpertBytes: 100, Slots: a.Int("slots", 4),
			WaveSlots: a.Int("wave", 2), RingDepth: a.Int("depth", 2), Reads: a.Int("reads", 0), Mapped: a.Bool("mapped"),
			Chances: chances(t, a.String("chances", ""), a.Int("layers", 2)*a.Int("experts", 8)),
		})
		if err != nil {
			t.Fatal(err)
		}
		// rest shows whether the core holds anything of a step that is over.
		rest := func(command string, _ *stagetest.Args) ([]string, error) {
			if err := c.AtRest(); err != nil {
				return []string{err.Error()}, nil
			}
			return []string{command + ": nothing is held"}, nil
		}
		return stagetest.Scripted{Core: c, Do: rest}
	})
}

// chances parses what earlier runs make of the first experts; of the others they know nothing. No
// text is no knowledge at all.
func chances(t *testing.T, text string, n int) []float64 {
	if text == "" {
		return nil
	}
	all := make([]float64, n)
	for i, part := range strings.Split(text, ",") {
		p, err := strconv.ParseFloat(part, 64)
		if err != nil {
			t.Fatal(err)
		}
		all[i] = p
	}
	return all
}

func TestTooFewSlots(t *testing.T) {
	if _, err := expertio.New(expertio.Config{Layers: 1, Experts: 8, Slots: 3, WaveSlots: 4, RingDepth: 1}); err == nil {
		t.Error("a pool of 3 slots serves waves of 4 experts")
	}
}

func TestChancesOfAnotherModel(t *testing.T) {
	cfg := expertio.Config{Layers: 2, Experts: 8, Slots: 4, WaveSlots: 4, RingDepth: 1, Chances: make([]float64, 8)}
	if _, err := expertio.New(cfg); err == nil {
		t.Error("chances of 8 experts are taken for those of 16")
	}
}
