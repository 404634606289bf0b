package sequencer_test

import (
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/sequencer"
	"github.com/moeflux/moeflux-actor/stages/stagetest"
)

// TestScripts runs testdata. A config line's open=N opens the sequences 1 to N, which have got
// their states. A page takes 10 bytes of memory=.
func TestScripts(t *testing.T) {
	stagetest.RunScripts(t, "testdata/*.txt", func(t *testing.T, a *stagetest.Args) stagetest.Scripted {
		c := sequencer.New(sequencer.Config{
			Layers: a.Int("layers", 1), Vocab: a.Int("vocab", 10),
			Resident: a.Bool("resident"), Preempts: a.Bool("preempts"), PromptShare: 0.65, ChunkRows: a.Int("chunk", 8), RingDepth: a.Int("depth", 2), StepsInFlight: a.Int("steps", 1),
			MaxPositions: a.Int("context", 100), PageRows: a.Int("pagerows", 4), StateBytes: int64(a.Int("memory", 1000)), Parks: a.Bool("parks"),
			RecurrentBytes: int64(a.Int("recurrent", 0)), PageBytes: 10, Checkpoints: a.Int("checkpoints", 4), CheckpointBytes: int64(a.Int("budget", 1000)),
			Window: a.Int("window", 0), WindowRows: a.Int("windowrows", 0), MaxSequences: a.Int("sequences", 0), MaxWaiting: a.Int("waiting", 100),
		})
		for id := range stages.SeqID(a.Int("open", 0)) {
			var out stages.Outbox
			for _, m := range []stages.Message{
				&stages.OpenSequence{Seq: id + 1}, &stages.EvalChunk{Seq: id + 1, Tokens: []int32{0}}, &stages.CancelEval{Seq: id + 1, Cause: stages.ErrClosed},
				&stages.StateCopied{Op: uint64(id) + 1},
			} {
				if err := c.Step(m, &out); err != nil {
					t.Fatal(err)
				}
			}
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
