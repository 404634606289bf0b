package stagetest_test

import (
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/stagetest"
)

// TestMessageLog compares the messages of one decoded token, and of a prompt, with the logs that
// stages/doc.go points to.
func TestMessageLog(t *testing.T) {
	p := openPack(t, "qwen3_moe/bf16")
	prompt := []int32{3, 1, 4, 1, 5, 9}
	streamed := tuning{depth: 2, slots: 8, waveSlots: 4, steps: 1, chunkRows: 4, lastToken: true, nextGate: true, ahead: 1, aheadRows: 1}
	resident := streamed
	resident.resident = true
	for _, c := range []struct {
		file string
		tu   tuning
	}{{"testdata/streamed.txt", streamed}, {"testdata/resident.txt", resident}} {
		t.Run(c.file, func(t *testing.T) {
			s := p.simulate(t, c.tu, nil, faults{})
			defer s.close()
			lines := []string{
				"# The messages of a prompt of six tokens in steps of four rows, then of one decoded token. The",
				"# order is the simulator's: a message before the end of a read, and that before the device.",
				"# An engine may interleave different senders in any other way.",
			}
			s.Log(func(from, to string, m stages.Message) { lines = append(lines, stagetest.LogLine(from, to, m)) })
			eval := func(tokens []int32) *stages.ChunkEvaluated {
				s.Answers = nil
				s.Post(&stages.EvalChunk{Seq: 1, Tokens: tokens, Caller: 0})
				if err := s.Run(nil); err != nil {
					t.Fatal(err)
				}
				m := s.Answers[0].Msg.(*stages.ChunkEvaluated)
				if m.Err != nil {
					t.Fatal(m.Err)
				}
				return m
			}
			lines = append(lines, "", "== open a sequence")
			s.Post(&stages.OpenSequence{Seq: 1, Caller: 0})
			if err := s.Run(nil); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, "", "== the prompt")
			last := eval(prompt)
			lines = append(lines, "", "== one decoded token")
			eval([]int32{argmax(last.Logits)})
			if err := s.AtRest(); err != nil {
				t.Error(err)
			}
			stagetest.CompareLog(t, c.file, lines)
		})
	}
}
