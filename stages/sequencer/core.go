package sequencer

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/pages"
	"github.com/moeflux/moeflux-actor/stages/prefix"
	"github.com/moeflux/moeflux-actor/stages/schedule"
)

// Config sizes the stage. It is flat because each field is a number of its own, from the model, the
// device or actors.Config. Most are required.
type Config struct {
	Layers        int // of the model
	Vocab         int
	ChunkRows     int // most rows of one step
	RingDepth     int // most layers begun and not retired of a part of the device; of steps of one kind, if Preempts
	StepsInFlight int // most steps of one kind (schedule.Kind) in the pipeline
	// PromptShare is the share of time that prompts get while a sequence decodes, above 0 and at
	// most 1. At 1 decode steps go only between prompt steps.
	PromptShare  float64
	MaxPositions int // most positions of one sequence
	PageRows     int // positions of one key-value page
	// Preempts means that the device runs decode steps amid prompt steps.
	Preempts bool
	// Resident means that the device routes by itself: router and expert-IO take no part in steps,
	// several layers begin together, and each step's end is read.
	Resident bool
	// Borders say which part of a device of several computes which layers. Those that begin
	// together are one part's.
	Borders stages.Borders
	// LayerTimes means that the device tells of each layer of several that begin together.
	LayerTimes bool

	// RecurrentBytes is the size of one state's part that every layer changes in place, so that a
	// step that has begun cannot be taken back. 0 means none: keys and values after a sequence's
	// length are simply overwritten.
	RecurrentBytes int64
	// Window is how many positions a row of layers with a window attends to, and WindowRows how
	// many such layers keep at least, in whole pages. They are 0 where there are no such layers, or
	// others have a recurrent state: then a sequence goes back to frozen states alone.
	Window, WindowRows int
	PageBytes          int64
	// StateBytes is the most for all pages in use, and for the recurrent states of sequences, of
	// drafts, and of states that callers read.
	StateBytes int64
	// Checkpoints is the most of one sequence, as long as nobody says otherwise. Its newest and
	// that at position 0 count, but are kept in any case.
	Checkpoints int
	// Parks means that the shell has a parking store with room for states.
	Parks bool
	// CheckpointBytes is the most for all that is kept: recurrent states, and pages that nobody
	// else holds.
	CheckpointBytes int64
	// MaxSequences is the most sequences that have memory at once. 0 means that memory alone is the
	// bound.
	MaxSequences int
	// MaxWaiting is the most requests that wait for memory, besides those of texts that have some.
	// With 0 they are told at once that there is none.
	MaxWaiting int
}

// Core is the stage.
//
// Each of its fields is the state of one concern, of which a file or a package has the methods; the
// core itself only hands messages on.
type Core struct {
	cfg      Config
	seqs     map[stages.SeqID]*sequence
	schedule schedule.Schedule[*request] // requests that are in no step
	flight   flight
	spare    spare
	count    counts
	accounts accounts

	book     *pages.Book
	search   search
	exchange exchange
	ops      operations
	asks     asks
	parking  parking
	stints   stints
	notes    notes

	draining bool            // nothing new is taken
	drains   []stages.Caller // wait for the last chunk and the last step to end
}

// counts are figures for CollectStats.
type counts struct{ steps, rows, failed, resumed int64 }

var _ stages.Core = (*Core)(nil)

// New returns the stage with no sequence.
func New(cfg Config) *Core {
	book := pages.New(pages.Sizes{
		PageRows: cfg.PageRows, PageBytes: cfg.PageBytes, RecurrentBytes: cfg.RecurrentBytes,
		StateBytes: cfg.StateBytes, CheckpointBytes: cfg.CheckpointBytes,
	})
	c := &Core{
		cfg: cfg, seqs: make(map[stages.SeqID]*sequence), flight: flight{lanes: make([]*step, cfg.StepsInFlight+1), ring: make([][schedule.Kinds]int, len(cfg.Borders)+1)}, book: book,
		schedule: schedule.New[*request](schedule.Config{
			Rows: cfg.ChunkRows, Steps: cfg.StepsInFlight, Layers: cfg.Layers, Share: cfg.PromptShare, Preempts: cfg.Preempts, Parts: len(cfg.Borders) + 1,
		}),
		search:   search{book: book, kept: make(map[*pages.State]*prefix.Holder[known]), trees: make(map[string]*prefix.Tree[known]), whole: cfg.RecurrentBytes > 0, rows: cfg.PageRows},
		exchange: exchange{open: make(map[stages.StateID]*exchanged)},
		ops:      operations{under: make(map[uint64]*operation)},
		asks:     newAsks(cfg.MaxWaiting),
		parking:  parking{away: make(map[stages.ParkID]*away)},
	}
	book.Watch(c.search.forget)
	return c
}

// Step handles one message.
func (c *Core) Step(in stages.Message, out *stages.Outbox) error {
	c.notes.begin(out)
	c.accounts.tick(in)
	c.schedule.Now(c.accounts.now)
	if err := c.handle(in, out); err != nil {
		return err
	}
	c.handOver(out)
	c.letIn(out)
	c.dropGone(out)
	c.form()
	c.beginLayers(out)
	c.standing()
	out.Linger.Round, out.Linger.AtNS = c.schedule.Timer()
	c.endDrain(out)
	return nil
}

func (c *Core) handle(in stages.Message, out *stages.Outbox) error {
	switch in.(type) {
	case *stages.EvalChunk, *stages.LayerSubmitted, *stages.LayerRetired, *stages.LogitsReady: // most messages give nothing back
	default:
		c.asks.stirred = true
	}
	if c.deferred(in, out) {
		return nil
	}
	switch m := in.(type) {
	case *stages.EvalChunk:
		c.evalChunk(m, out)
	case *stages.CancelEval:
		c.cancelEval(m, out)
	case *stages.Withdraw:
		c.withdraw(m, out)
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
		c.book.ForgetOf(0)
		c.answer(m.Caller, &stages.SequenceDone{Kind: stages.Forgotten}, out)
	case *stages.DescribeSequence:
		c.describeSequence(m, out)
	case *stages.FreezeSequence:
		c.freezeSequence(m, out)
	case *stages.FreezeText:
		c.freezeText(m, out)
	case *stages.DraftState:
		c.draftState(m, out)
	case *stages.AdoptState:
		c.adoptState(m, out)
	case *stages.ReleaseState:
		c.releaseState(m, out)
	case *stages.ParkSequence:
		c.parkSequence(m, out)
	case *stages.StateParked:
		return c.stateParked(m, out)
	case *stages.StateReturned:
		return c.stateReturned(m, out)
	case *stages.StateCopied:
		return c.stateCopied(m, out)
	case *stages.LingerOver:
		c.schedule.WaitOver(m.Round)
	case *stages.StintOver:
		c.stints.due = 0
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
	s.Steps, s.Rows, s.FailedSteps = c.count.steps, c.count.rows, c.count.failed
	requests, late := c.Accounts()
	s.Accounts.Requests.Add(&requests)
	s.Accounts.Nobody.Add(&late)
	s.PagesUsed, s.PagesMax = c.book.Used(), c.book.Most()
	s.States = c.book.Stats()
	s.States.Resumed, s.States.Reused = c.count.resumed, c.accounts.ended.Reused
	s.States.Parked, s.States.Parkings, s.States.Returns = len(c.parking.away), c.parking.out, c.parking.back
	s.Admission = c.admissionStats()
	out.Send(stages.Router, m)
}

// startDrain refuses new work and, unless it may finish, cancels what runs.
func (c *Core) startDrain(m *stages.Drain, out *stages.Outbox) {
	c.draining = true
	c.drains = append(c.drains, m.Caller)
	c.refuseAll(out)
	for _, s := range c.inOrder() {
		c.giveUpWaiting(s, stages.ErrClosed, out)
	}
	if m.Finish {
		return
	}
	for _, s := range c.inOrder() {
		if s.req != nil {
			c.cancel(s.req, stages.ErrClosed, out)
		}
	}
}

// endDrain answers Drain if no chunk and no step is left.
func (c *Core) endDrain(out *stages.Outbox) {
	if len(c.drains) == 0 || !c.flight.empty() {
		return
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
