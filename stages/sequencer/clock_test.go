package sequencer_test

import (
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/sequencer"
)

// TestClock holds that messages of no step move the clock of accounts: the end of a copy that a
// chunk has waited for, and the cancellation of one that waits for memory.
func TestClock(t *testing.T) {
	c := sequencer.New(sequencer.Config{
		Layers: 1, Vocab: 10, ChunkRows: 8, RingDepth: 2, StepsInFlight: 1, PromptShare: 0.65, MaxPositions: 100, PageRows: 4,
		StateBytes: 1000, RecurrentBytes: 10, PageBytes: 10, MaxSequences: 1, MaxWaiting: 1,
	})
	accounts := make(map[stages.SeqID]stages.Account)
	step := func(ns int64, m stages.Message) {
		t.Helper()
		var out stages.Outbox
		m.Stamp(ns)
		if err := c.Step(m, &out); err != nil {
			t.Fatal(err)
		}
		for _, a := range out.Answers {
			if r, ok := a.Msg.(*stages.ChunkEvaluated); ok {
				accounts[r.Seq] = r.Account
			}
		}
	}
	step(1, &stages.OpenSequence{Seq: 1})
	step(2, &stages.OpenSequence{Seq: 2})
	step(100, &stages.EvalChunk{Seq: 1, Tokens: []int32{1}}) // waits for an empty state
	step(200, &stages.EvalChunk{Seq: 2, Tokens: []int32{1}}) // waits for memory
	step(350, &stages.CancelEval{Seq: 2, Cause: stages.ErrClosed})
	step(400, &stages.CancelEval{Seq: 1, Cause: stages.ErrClosed})
	step(500, &stages.StateCopied{Op: 1})
	for seq, want := range map[stages.SeqID]int64{1: 400, 2: 150} {
		if a := accounts[seq]; a.QueueNS != want || a.TotalNS != want {
			t.Errorf("sequence %d waited for %d ns of %d, want %d of both", seq, a.QueueNS, a.TotalNS, want)
		}
	}
}
