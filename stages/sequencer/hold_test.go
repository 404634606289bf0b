package sequencer_test

import (
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/sequencer"
)

// holding is a sequencer of one layer on a device that preempts, with a prompt under way.
type holding struct {
	t       *testing.T
	c       *sequencer.Core
	now     int64
	steps   []stages.Step // that have begun
	answers []stages.Answer
	linger  stages.Linger
}

func newHolding(t *testing.T) *holding {
	h := &holding{t: t, c: sequencer.New(sequencer.Config{
		Layers: 1, Vocab: 10, ChunkRows: 4, RingDepth: 2, StepsInFlight: 1, PromptShare: 0.5, Preempts: true, MaxPositions: 100, PageRows: 4,
		StateBytes: 1000, PageBytes: 10, MaxWaiting: 1,
	})}
	for id := range uint64(2) { // which get their states
		seq := stages.SeqID(id + 1)
		h.step(1, &stages.OpenSequence{Seq: seq})
		h.decode(seq)
		h.step(0, &stages.CancelEval{Seq: seq, Request: uint64(seq), Cause: stages.ErrClosed})
		h.step(0, &stages.StateCopied{Op: id + 1})
	}
	h.answered(2)
	for range 10 { // what a token takes alone
		h.decode(1)
		h.compute(0, 1000)
		h.answered(1)
	}
	h.step(0, &stages.EvalChunk{Seq: 2, Tokens: make([]int32, 8), Logits: stages.NoLogits})
	return h
}

// step gives the core a message after some time.
func (h *holding) step(ns int64, m stages.Message) {
	h.t.Helper()
	var out stages.Outbox
	h.now += ns
	out.NowNS = h.now
	m.Stamp(h.now)
	if err := h.c.Step(m, &out); err != nil {
		h.t.Fatal(err)
	}
	for _, s := range out.Sends {
		if b, ok := s.Msg.(*stages.BeginLayer); ok && s.To == stages.Dispatch {
			h.steps = append(h.steps, b.Step)
		}
	}
	for _, a := range out.Answers {
		if _, ok := a.Msg.(*stages.ChunkEvaluated); ok {
			h.answers = append(h.answers, a)
		}
	}
	if out.Linger.Round != 0 {
		h.linger = out.Linger
	}
}

func (h *holding) decode(seq stages.SeqID) {
	h.t.Helper()
	h.step(0, &stages.EvalChunk{Seq: seq, Tokens: []int32{1}, Logits: stages.NoLogits, Request: uint64(seq)})
}

// compute ends a step's layer after some time.
func (h *holding) compute(i int, ns int64) {
	h.t.Helper()
	s := h.steps[i]
	h.steps = append(h.steps[:i:i], h.steps[i+1:]...)
	h.step(0, &stages.LayerSubmitted{Step: s})
	h.step(ns, &stages.LayerRetired{Step: s})
}

// answered compares how many chunks have been answered since the last call.
func (h *holding) answered(want int) {
	h.t.Helper()
	if len(h.answers) != want {
		h.t.Fatalf("at %d: %d answers, want %d", h.now, len(h.answers), want)
	}
	h.answers = nil
}

// hold decodes a token beside the prompt until it is computed and held.
func (h *holding) hold() {
	h.t.Helper()
	h.decode(1)
	if len(h.steps) != 2 {
		h.t.Fatalf("%d steps have begun, want the prompt's and the token's", len(h.steps))
	}
	h.compute(1, 1000)
	h.answered(0)
}

// TestHeldSteps holds that a token that is computed beside a prompt is answered when it is due, and
// at once when somebody leaves, nothing new is taken, or the prompt is done.
func TestHeldSteps(t *testing.T) {
	gone := &stages.CancelEval{Seq: 1, Request: 1, Cause: stages.ErrClosed}
	for name, end := range map[string]func(h *holding){
		"its time is over":   func(h *holding) { h.step(1000, &stages.LingerOver{Round: h.linger.Round}) },
		"its timer is early": func(h *holding) { h.step(10, &stages.LingerOver{Round: h.linger.Round}) },
		"time has passed":    func(h *holding) { h.step(1000, &stages.LingerOver{}) },
		"its caller goes":    func(h *holding) { h.step(10, gone) },
		"the engine drains":  func(h *holding) { h.step(10, &stages.Drain{Finish: true}) },
		"the prompt's caller goes, and its step is over": func(h *holding) {
			h.step(10, &stages.CancelEval{Seq: 2, Cause: stages.ErrClosed})
			h.answered(0)
			h.compute(0, 10)
			h.answers = h.answers[1:] // the prompt's
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHolding(t)
			h.hold()
			if want := h.now + 1000; h.linger.AtNS != want {
				t.Errorf("a timer at %d, want %d", h.linger.AtNS, want)
			}
			h.step(500, &stages.LingerOver{}) // something happens
			h.answered(0)
			end(h)
			h.answered(1)
		})
	}
}
