package stagetest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/expertio"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// cheat is a stage that does one thing more after each message.
type cheat struct {
	stages.Core
	after func(in stages.Message, out *stages.Outbox) error
}

func (c *cheat) Step(in stages.Message, out *stages.Outbox) error {
	if err := c.Core.Step(in, out); err != nil {
		return err
	}
	return c.after(in, out)
}

// countingCheat is an expert-IO that cheats, or counts a byte too many.
type countingCheat struct {
	*expertio.Core
	cheat cheat
	more  int64
}

func (c *countingCheat) Step(in stages.Message, out *stages.Outbox) error {
	return c.cheat.Step(in, out)
}

func (c *countingCheat) Costs() (total, nobody stages.Cost) {
	total, nobody = c.Core.Costs()
	total.DiskBytes += c.more
	return total, nobody
}

// accounting is a core with books, as the simulator wants of a sequencer.
type accounting interface {
	stages.Core
	Accounts() (stages.Account, stages.Cost)
}

// accountingCheat is a sequencer that cheats.
type accountingCheat struct {
	accounting
	cheat cheat
}

func (c *accountingCheat) Step(in stages.Message, out *stages.Outbox) error {
	return c.cheat.Step(in, out)
}

// TestNotice breaks a rule in one stage, and wants the simulator to say so: each check is there,
// and what it finds ends the run.
func TestNotice(t *testing.T) {
	p := openPack(t, fixtures.Qwen3MoEBF16)
	planted := errors.New("planted")
	again := func(kind stages.Message) func(stages.Message, *stages.Outbox) error {
		return func(_ stages.Message, out *stages.Outbox) error {
			for _, s := range out.Sends {
				if s.Msg.MessageKind() == kind.MessageKind() {
					out.Sends = append(out.Sends, s)
					break
				}
			}
			return nil
		}
	}
	nothing := func(stages.Message, *stages.Outbox) error { return nil }
	for _, c := range []struct {
		name  string
		stage stages.StageID
		after func(in stages.Message, out *stages.Outbox) error
		more  int64  // bytes that expert-IO counts too many
		want  string // in the error
	}{
		{"a core fails", stages.Router, func(stages.Message, *stages.Outbox) error { return planted }, 0, "planted"},
		{"a slot comes home twice", stages.Combine, again(new(stages.SlotsReleased)), 0, "come home, but are not out"},
		{"a layer is retired twice", stages.Combine, again(new(stages.LayerRetired)), 0, "is retired out of order"},
		{"a slot is given back while a wave has it", stages.Dispatch, func(in stages.Message, out *stages.Outbox) error {
			if m, ok := in.(*stages.WaveResident); ok && len(m.Slots) > 0 {
				out.Frees = append(out.Frees, m.Slots[0])
			}
			return nil
		}, 0, "is given back while"},
		{"a slot is read into while a wave has it", stages.Dispatch, func(in stages.Message, out *stages.Outbox) error {
			if m, ok := in.(*stages.WaveResident); ok && len(m.Slots) > 0 {
				out.Reads = append(out.Reads, stages.ReadGroup{Step: m.Step, Reads: []stages.Read{{Slot: m.Slots[0]}}})
			}
			return nil
		}, 0, "is read into while"},
		{"a caller is answered twice", stages.Sequencer, func(_ stages.Message, out *stages.Outbox) error {
			out.Answers = append(out.Answers, out.Answers...)
			return nil
		}, 0, "is answered more often than it asked"},
		{"a use is noted that is not", stages.ExpertIO, func(in stages.Message, out *stages.Outbox) error {
			if in.MessageKind() == new(stages.LayerRouted).MessageKind() {
				out.Log.Uses.Add(record.Use{Step: 1, Expert: 1, Found: record.Resident})
			}
			return nil
		}, 0, "record"},
		{"a byte is counted too many", stages.ExpertIO, nothing, 1, "expert-IO counts"},
		{"nothing", stages.ExpertIO, nothing, 0, ""},
	} {
		f := faults{core: func(id stages.StageID, core stages.Core) stages.Core {
			mine := cheat{core, nothing}
			if id == c.stage {
				mine.after = c.after
			}
			switch {
			case id == stages.ExpertIO:
				return &countingCheat{core.(*expertio.Core), mine, c.more}
			case id == c.stage && id != stages.Sequencer:
				return &mine
			case id == c.stage:
				return &accountingCheat{core.(accounting), mine}
			}
			return core
		}}
		s := p.simulate(t, tuning{depth: 2, slots: 8, waveSlots: 8, steps: 1, chunkRows: 16}, nil, f)
		_, _, err := s.play([]script{{prompt: []int32{1, 2, 3, 4}, decode: 2, want: stages.LastLogits}})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want one with %q", c.name, err, c.want)
		}
		s.close()
	}
}
