package sequencer

import (
	"fmt"
	"math"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/schedule"
)

// Config sizes the stage. All fields are required.
type Config struct {
	Layers        int // of the model
	MoELayers     int // of those, with routed experts
	Hidden        int // floats of one hidden state
	Vocab         int
	TopK          int
	ChunkRows     int // most rows of one step
	RingDepth     int // most layers begun and not retired
	StepsInFlight int // most steps in the pipeline
	MaxPositions  int // most positions of one sequence
	PageRows      int // positions of one key-value page
	// Resident means that the device routes by itself: router and expert-IO take no part in steps,
	// several layers begin together, and each step's end is read.
	Resident bool

	// RecurrentBytes is the size of one state's part that every layer changes in place, so that a
	// step that has begun cannot be taken back. 0 means none: keys and values after a sequence's
	// length are simply overwritten.
	RecurrentBytes int64
	PageBytes      int64
	// StateBytes is the most for all pages in use, and for the recurrent states of sequences, of
	// drafts, and of states that callers read.
	StateBytes int64
	// Checkpoints is the most of one sequence, as long as nobody says otherwise. Its newest and
	// that at position 0 count, but are kept in any case.
	Checkpoints int
	// CheckpointBytes is the most for all that is kept: recurrent states, and pages that nobody
	// else holds.
	CheckpointBytes int64
}

// Core is the stage.
type Core struct {
	cfg   Config
	seqs  map[stages.SeqID]*sequence
	lanes []*step // [StepsInFlight]; nil is free
	turn  int     // the lane whose next layer is considered first

	schedule schedule.Schedule[*request] // requests that are in no step
	lastStep stages.StepID
	ringUsed int // layers begun and not retired

	pages ledger
	// checkpoints and what is remembered, in the order of keeping
	kept      []*frozen
	exchanged map[stages.StateID]*frozen // states that callers read or fill
	recurrent int                        // of kept, those with a recurrent state
	// of exchanged, drafts in the place of their sequence's state
	lent int
	uses uint64 // of kept states so far

	ops         map[uint64]*operation // under way in dispatch
	lastOp      uint64
	lastFrozen  stages.StateID
	lastUnknown int32

	draining bool            // nothing new is taken
	drains   []stages.Caller // wait for the last chunk and the last step to end

	steps, rows, failed                  int64
	remembered, evicted, resumed, reused int64

	spareSteps    []*step
	spareBatches  []*stages.Batch // oldest first
	spareRequests []*request
}

var _ stages.Core = (*Core)(nil)

// New returns the stage with no sequence.
func New(cfg Config) *Core {
	return &Core{
		cfg: cfg, schedule: schedule.New[*request](cfg.ChunkRows), seqs: make(map[stages.SeqID]*sequence), lanes: make([]*step, cfg.StepsInFlight), pages: ledger{rows: cfg.PageRows},
		exchanged: make(map[stages.StateID]*frozen), ops: make(map[uint64]*operation),
	}
}

// Step handles one message.
func (c *Core) Step(in stages.Message, out *stages.Outbox) error {
	if err := c.handle(in, out); err != nil {
		return err
	}
	c.form(out)
	c.beginLayers(out)
	c.endDrain(out)
	return nil
}

func (c *Core) handle(in stages.Message, out *stages.Outbox) error {
	switch m := in.(type) {
	case *stages.EvalChunk:
		c.evalChunk(m, out)
	case *stages.CancelEval:
		c.cancelEval(m, out)
	case *stages.OpenSequence:
		c.openSequence(m, out)
	case *stages.ResetSequence:
		c.resetSequence(m, out)
	case *stages.CloseSequence:
		c.closeSequence(m, out)
	case *stages.TruncateSequence:
		c.truncateSequence(m, out)
	case *stages.KeepCheckpoint:
		c.keepCheckpoint(m, out)
	case *stages.RestoreCheckpoint:
		c.restoreCheckpoint(m, out)
	case *stages.ForgetCheckpoint:
		c.forgetCheckpoint(m, out)
	case *stages.CapCheckpoints:
		c.capCheckpoints(m, out)
	case *stages.ResumeSequence:
		c.resumeSequence(m, out)
	case *stages.ForgetTexts:
		c.forgetAll(0, out)
		c.answer(m.Caller, &stages.SequenceDone{Kind: stages.Forgotten}, out)
	case *stages.DescribeSequence:
		c.describeSequence(m, out)
	case *stages.FreezeSequence:
		c.freezeSequence(m, out)
	case *stages.DraftState:
		c.draftState(m, out)
	case *stages.AdoptState:
		c.adoptState(m, out)
	case *stages.ReleaseState:
		c.releaseState(m, out)
	case *stages.StateCopied:
		return c.stateCopied(m, out)
	case *stages.LingerOver:
		c.schedule.WaitOver(m.Round)
	case *stages.Drain:
		c.startDrain(m, out)
	case *stages.CollectStats:
		c.collectStats(m, out)
	case *stages.LayerSubmitted:
		return c.layerSubmitted(m, out)
	case *stages.LayerRetired:
		return c.layerRetired(m, out)
	case *stages.LogitsReady:
		return c.logitsReady(m, out)
	case *stages.StepFailed:
		c.stepFailed(m, out)
	case *stages.StepDrained:
		return c.stepDrained(m, out)
	default:
		return fmt.Errorf("sequencer: unexpected message %T", in)
	}
	return nil
}

func (c *Core) collectStats(m *stages.CollectStats, out *stages.Outbox) {
	s := m.Stats
	s.Steps, s.Rows, s.FailedSteps = c.steps, c.rows, c.failed
	s.PagesUsed, s.PagesMax = c.pages.used(), c.mostPages()
	s.States = stages.StateStats{
		Kept: len(c.kept), KeptBytes: c.keptBytes(), KeptMax: c.cfg.CheckpointBytes, Remembered: c.remembered, Evicted: c.evicted,
		Resumed: c.resumed, Reused: c.reused,
	}
	out.Send(stages.Router, m)
}

// mostPages returns how many pages StateBytes has room for without any recurrent state.
func (c *Core) mostPages() int {
	return int(min(c.cfg.StateBytes/max(c.cfg.PageBytes, 1), math.MaxInt32))
}

// startDrain refuses new work and, unless it may finish, cancels what runs.
func (c *Core) startDrain(m *stages.Drain, out *stages.Outbox) {
	c.draining = true
	c.drains = append(c.drains, m.Caller)
	if m.Finish {
		return
	}
	for _, s := range c.seqs {
		if s.req != nil {
			c.cancel(s.req, stages.ErrClosed, out)
		}
	}
}

// endDrain answers Drain if no chunk and no step is left.
func (c *Core) endDrain(out *stages.Outbox) {
	if len(c.drains) == 0 {
		return
	}
	for _, s := range c.lanes {
		if s != nil {
			return
		}
	}
	for _, s := range c.seqs {
		if s.req != nil { // not in a step yet
			return
		}
	}
	for _, caller := range c.drains {
		out.Answer(caller, &stages.Drained{})
	}
	c.drains = nil
}
