package actors_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// seen is what a test saw of an engine from outside of the records: what each core was given, and
// what the device was.
type seen struct {
	mu        sync.Mutex
	messages  []seenMessage
	submitted []seenWork
}

// seenMessage is a message that a core was given, in the order of all cores.
type seenMessage struct {
	rec      record.Handled // without times
	from, to time.Time      // that the core had it
	sent     int64
	chunk    *record.Request // of an EvalChunk: what its request asks for
	begins   []seenLayer     // layers that the sequencer began
	answers  []seenAnswer    // to chunks
}

type seenLayer struct {
	step  uint64
	layer int
}

type seenAnswer struct {
	seq  uint64
	pos  int
	rows int
	ok   bool
	cost stages.Cost
}

// seenWork is a submission.
type seenWork struct {
	rec    record.Submission // without times and rows
	at     time.Time
	ticket int64 // DeviceNS
}

// watched is a core that a test looks at.
type watched struct {
	stages.Core
	id stages.StageID
	s  *seen
}

func (w *watched) Step(in stages.Message, out *stages.Outbox) error {
	m := seenMessage{rec: record.Handled{Layer: -1, Wave: -1, Stage: uint8(w.id), Message: uint8(in.MessageKind())}, sent: in.Stamped()}
	if h := in.Head(); h != nil && h.ID > 0 {
		m.rec.Step, m.rec.Layer = uint64(h.ID), int32(h.Layer)
	}
	switch in := in.(type) {
	case *stages.EvalChunk:
		m.chunk = &record.Request{Request: in.Request, Seq: uint64(in.Seq), ArrivedNS: in.SentNS, Rows: int32(len(in.Tokens))}
	case *stages.BeginLayer:
		m.rec.More = int32(in.More)
	case *stages.LayerSubmitted:
		m.rec.More = int32(in.More)
	case *stages.LayerRetired:
		m.rec.More = int32(in.More)
	case *stages.WaveResident:
		m.rec.Wave = int32(in.Wave)
	case *stages.SlotsReleased:
		m.rec.Wave = int32(in.Wave)
	case *stages.WaveSubmitted:
		m.rec.More = int32(in.More)
		if in.Plan != nil || len(in.Slots) > 0 {
			m.rec.Wave = int32(in.Wave)
		}
	}
	m.from = time.Now()
	err := w.Core.Step(in, out)
	m.to = time.Now()
	for _, s := range out.Sends {
		if b, ok := s.Msg.(*stages.BeginLayer); ok && s.To == stages.Dispatch {
			m.begins = append(m.begins, seenLayer{uint64(b.ID), b.Layer})
		}
	}
	for _, a := range out.Answers {
		if a, ok := a.Msg.(*stages.ChunkEvaluated); ok {
			m.answers = append(m.answers, seenAnswer{uint64(a.Seq), a.Pos, a.Rows, a.Err == nil, a.Account.Cost})
		}
	}
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if m.sent != 0 { // else nobody sent it: the last figures are collected after the end
		w.s.messages = append(w.s.messages, m)
	}
	return err
}

// seenDevice is a host device whose submissions a test looks at.
type seenDevice struct {
	*host.Device
	s *seen
}

func (d *seenDevice) NewQueue() (gpu.Queue, error) {
	q, err := d.Device.NewQueue()
	if err != nil {
		return nil, err
	}
	return &seenQueue{q, q.(gpu.Watched), d.s}, nil
}

type seenQueue struct {
	gpu.Queue
	gpu.Watched
	s *seen
}

func (q *seenQueue) Submit(c *gpu.Commands) (gpu.Ticket, error) {
	w := seenWork{at: time.Now()}
	w.rec.Part = partOf(c)
	if c.Urgent {
		w.rec.Urgent = 1
	}
	t, err := q.Queue.Submit(c)
	if err != nil {
		return nil, err
	}
	q.s.mu.Lock()
	defer q.s.mu.Unlock()
	q.s.submitted = append(q.s.submitted, w)
	return &seenTicket{t, q.s, len(q.s.submitted) - 1}, nil
}

type seenTicket struct {
	gpu.Ticket
	s  *seen
	at int
}

func (t *seenTicket) OnDone(f func(error)) {
	t.Ticket.OnDone(func(err error) {
		t.s.mu.Lock()
		t.s.submitted[t.at].ticket = t.Ticket.DeviceNS()
		t.s.mu.Unlock()
		f(err)
	})
}

// partOf tells from its operations what commands are.
func partOf(c *gpu.Commands) record.Part {
	has := map[string]int{}
	for _, op := range c.Ops() {
		has[fmt.Sprintf("%T", op)]++
	}
	switch {
	case has["*gpu.Gather"] > 0, len(has) == 1 && has["*gpu.Download"] > 0: // picks alone, where nobody wants logits
		return record.Head
	case has["*gpu.Experts"] > 0 && has["*gpu.Route"] > 0:
		return record.Layers
	case has["*gpu.Experts"] > 0 || has["*gpu.Combine"] > 0:
		return record.Experts
	case has["*gpu.Route"] > 0:
		return record.Mix
	case has["*gpu.SwiGLU"] > 0:
		return record.SharedExpert
	case has["*gpu.MatMul"] > 0:
		return record.Ahead
	}
	return record.State
}

// watchedEngine opens an engine that the test looks at, runs a text of two prompts and some tokens
// on it, and returns what it saw together with the records. Both are of a closed engine.
func watchedEngine(t *testing.T, cfg actors.Config) (*seen, *record.Recording, *actors.Stats) {
	t.Helper()
	s := new(seen)
	cfg.Device = &seenDevice{device(t, 2), s}
	actors.WrapCores(&cfg, func(id stages.StageID, c stages.Core) stages.Core { return &watched{c, id, s} })
	e, err := actors.Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	var texts sync.WaitGroup
	for i := range 2 {
		texts.Go(func() {
			seq, err := e.NewSequence(context.Background())
			if err != nil {
				t.Error(err)
				return
			}
			defer seq.Close()
			if _, err := greedy(seq, []int32{3, 1, 4, 1, 5, 9, 2, 6}[:4+4*i], 12); err != nil {
				t.Error(err)
			}
		})
	}
	texts.Wait()
	if err := e.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	r, err := e.Recording(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	stats, _ := e.Stats(context.Background())
	return s, r, stats
}

// recordedEngines are the ways of running a model that make different records.
func recordedEngines(t *testing.T) map[string]actors.Config {
	q4 := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	return map[string]actors.Config{
		"resident": {Model: q4, ExpertIO: actors.ExpertIOMmap, ChunkRows: 4},
		"mapped":   {Model: q4, ExpertIO: actors.ExpertIOMmap, Resident: actors.ResidentOff, ChunkRows: 4},
		"streamed": {Model: fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0), ExpertIO: actors.ExpertIODirect, ExpertMemory: 9 * pageSlot, WaveSlots: 3, ChunkRows: 4},
	}
}

// The records say which messages each stage had, in their order and at their times: no other, and
// none is missing.
func TestRecordsOfMessages(t *testing.T) {
	for name, cfg := range recordedEngines(t) {
		t.Run(name, func(t *testing.T) {
			s, r, _ := watchedEngine(t, cfg)
			if len(r.Handled) != len(s.messages) || len(r.Handled) < 200 {
				t.Fatalf("%d messages are recorded, the cores had %d", len(r.Handled), len(s.messages))
			}
			var before int64
			for i, m := range s.messages {
				got := r.Handled[i]
				times := [3]int64{got.SentNS, got.BeganNS, got.EndedNS}
				got.SentNS, got.BeganNS, got.EndedNS = 0, 0, 0
				if got != m.rec {
					t.Fatalf("message %d is recorded as %+v, the core had %+v", i, got, m.rec)
				}
				from, to := int64(m.from.Sub(r.Meta.Epoch)), int64(m.to.Sub(r.Meta.Epoch))
				if times[0] != m.sent || times[0] <= 0 || times[0] > times[1] || times[1] > from || to > times[2] || times[1] < before {
					t.Fatalf("message %d (%s) was sent, taken, done at %v, after %d; the core had it from %d to %d, sent at %d",
						i, r.Meta.Messages[got.Message], times, before, from, to, m.sent)
				}
				before = times[2]
			}
		})
	}
}

// The records say what the device was given, when, and how long it took.
func TestRecordsOfSubmissions(t *testing.T) {
	for name, cfg := range recordedEngines(t) {
		t.Run(name, func(t *testing.T) {
			s, r, _ := watchedEngine(t, cfg)
			for _, urgent := range []uint8{0, 1} { // each kind in its own order
				var want []seenWork
				for _, w := range s.submitted {
					if w.rec.Urgent == urgent {
						want = append(want, w)
					}
				}
				got := slices.DeleteFunc(slices.Clone(r.Submissions), func(s record.Submission) bool { return s.Urgent != urgent })
				if len(got) != len(want) || len(got) < 10 {
					t.Fatalf("urgent %d: %d submissions are recorded, the device had %d", urgent, len(got), len(want))
				}
				for i, w := range want {
					g := got[i]
					if g.Part != w.rec.Part {
						t.Fatalf("urgent %d: submission %d is recorded as %+v, its operations are of part %d", urgent, i, g, w.rec.Part)
					}
					if at := int64(w.at.Sub(r.Meta.Epoch)); g.SubmittedNS <= 0 || g.SubmittedNS > at || g.BeganNS < g.SubmittedNS || g.EndedNS < g.BeganNS {
						t.Fatalf("urgent %d: submission %d is recorded as %+v, it was made at %d", urgent, i, g, at)
					}
					// The shared expert's ticket is only asked about with the wave's.
					if w.ticket != 0 && g.DeviceNS != w.ticket || g.DeviceNS == 0 || g.DeviceNS > g.EndedNS-g.BeganNS {
						t.Fatalf("urgent %d: submission %d is recorded as %+v, its ticket says %d ns", urgent, i, g, w.ticket)
					}
				}
			}
		})
	}
}

// Level passes on how full a core is.
func (w *watched) Level(l *record.Level) {
	if of, ok := w.Core.(stages.Leveled); ok {
		of.Level(l)
	}
}
