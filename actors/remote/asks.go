package remote

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/moeflux/moeflux-actor/actors/remote/frame"
	"github.com/moeflux/moeflux-actor/stages"
)

// askPatience is how long an answer of a host that is alive may take.
const askPatience = 2 * time.Second

var (
	// errDown fails asks of a host without a connection.
	errDown = errors.New("the expert host is not connected")
	// errSlow fails an ask that takes too long.
	errSlow = errors.New("the expert host has not answered in time")
)

// pending is an ask under way.
type pending struct {
	uses   []int32 // of the plan
	rows   []int   // of each
	done   []bool  // of each
	left   int
	sent   time.Time
	urgent bool        // of a step that decodes
	late   *time.Timer // tells that the answer is late; nil if nobody is told
	sums   *summed     // nil: outputs are asked for
}

// What follows keeps books with l.mu held, and tells stages without it: whoever sends a message may
// have to run the stages, and these ask.

// ask sends an ask.
func (l *link) ask(a *stages.Ask) {
	l.mu.Lock()
	up := l.up
	conn := l.conn
	if up {
		p := &pending{uses: slices.Clone(a.Uses), done: make([]bool, len(a.Uses)), left: len(a.Uses), sent: time.Now()}
		for _, u := range a.Uses {
			p.rows = append(p.rows, len(a.Plan.Uses[u].Pairs))
		}
		l.pending[a.ID] = p
		q, hidden := question(a, &l.c.cfg), l.c.cfg.Shape.Hidden
		if l.c.cfg.Sums {
			p.sums = sumsOf(a, q, hidden)
		}
		l.ours = frame.AppendAsk(l.ours[:0], a.ID, hidden, q)
		l.expect(a, p)
		l.figures.Asks++
		if a.Hedge {
			l.figures.Hedges++
		}
		l.figures.BytesOut += int64(len(l.ours))
	}
	l.mu.Unlock()
	if !up {
		l.c.cfg.Send(stages.ExpertIO, &stages.ExpertsAnswered{Ask: a.ID, Err: errDown})
		return
	}
	_, _ = conn.Write(l.ours) // an error ends the connection: serve tells
}

// share tells the host what is its own, if it is connected. If not, there is another epoch when it
// is.
func (l *link) share(s *stages.HostShare) {
	l.mu.Lock()
	up, conn := l.up, l.conn
	l.mu.Unlock()
	if up {
		_, _ = conn.Write(frame.AppendShare(nil, s.Epoch, s.Keys)) // an error ends the connection: serve tells
	}
}

// question says what an ask asks: the rows that its uses need, each once.
func question(a *stages.Ask, cfg *Config) *frame.Question {
	hidden := cfg.Shape.Hidden
	q := &frame.Question{Layer: a.Step.Layer, Group: cfg.Groups[a.Step.Layer], Epoch: a.Epoch, Urgent: a.Step.Batch.Urgent, Trace: caller(a.Step.Batch), Uses: make([]frame.Use, len(a.Uses))}
	at := make([]int32, len(a.Step.Batch.Rows)) // where a row is among the inputs, from 1; 0: not wanted
	picks := 0
	for _, u := range a.Uses {
		picks += len(a.Plan.Uses[u].Pairs)
		for _, pair := range a.Plan.Uses[u].Pairs {
			at[int(pair)/a.Plan.TopK] = 1
		}
	}
	n := int32(0)
	for row, wanted := range at {
		if wanted != 0 {
			n++
			at[row] = n
			q.Inputs = append(q.Inputs, a.Plan.Inputs[row*hidden:(row+1)*hidden]...)
		}
	}
	rows := make([]int32, 0, picks)
	for i, u := range a.Uses {
		use, from := &a.Plan.Uses[u], len(rows)
		for _, pair := range use.Pairs {
			rows = append(rows, at[int(pair)/a.Plan.TopK]-1)
		}
		q.Uses[i] = frame.Use{Expert: int(use.Expert), Rows: rows[from:]}
	}
	return q
}

// caller returns the span of the first caller of a step whose span is recorded; zero if there is
// none.
func caller(b *stages.Batch) frame.Trace {
	if b.Traced {
		for _, t := range b.Traces {
			if t.Sampled() {
				return frame.Trace{TraceID: t.TraceID, SpanID: t.SpanID, Flags: t.Flags}
			}
		}
	}
	return frame.Trace{}
}

// take passes on what a host says.
func (l *link) take(r *frame.Reader, f *frame.Frame) error {
	l.mu.Lock()
	l.figures.BytesIn += int64(len(f.Body))
	l.mu.Unlock()
	switch f.Kind {
	case frame.Pong:
		return nil
	case frame.Drain: // what is under way is answered
		l.setUp(false)
		l.c.cfg.Send(stages.ExpertIO, &stages.HostChanged{Host: l.host})
		return nil
	case frame.Failed:
		l.fail(fmt.Errorf("the expert host %s: %q", l.addr, f.Body), func(id uint64, _ *pending) bool { return id == f.ID })
		return nil
	case frame.Group:
		members, err := f.Members()
		if err == nil {
			l.c.found.tells(l, members)
		}
		return err
	case frame.Answer:
		m, err := l.answer(f)
		if m != nil {
			r.Give() // the rows pass on
			l.c.cfg.Send(stages.ExpertIO, m)
		}
		return err
	}
	return frame.ErrKind
}

func (l *link) setUp(up bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.up = up
}

// answer returns what a host has computed; nil if nobody waits for it any more.
func (l *link) answer(f *frame.Frame) (*stages.ExpertsAnswered, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pending[f.ID]
	if p == nil {
		return nil, nil
	}
	hidden := l.c.cfg.Shape.Hidden
	a, err := p.reply(f, hidden)
	if err != nil {
		return nil, err
	}
	m := &stages.ExpertsAnswered{Ask: f.ID, Summed: p.sums != nil, WaitedNS: int64(a.Waited), ReadNS: int64(a.Read), ComputedNS: int64(a.Computed)}
	rows := a.Rows
	for _, i := range a.Uses {
		if p.done[i] {
			return nil, fmt.Errorf("%w: an expert was answered twice", frame.ErrContent)
		}
		n := p.rows[i] * hidden
		m.Uses = append(m.Uses, stages.AnsweredUse{Use: p.uses[i], Rows: rows[:n:n]})
		rows, p.done[i] = rows[n:], true
		p.left--
	}
	l.figures.Uses += int64(len(a.Uses))
	l.figures.Waited += a.Waited
	l.figures.Read += a.Read
	l.figures.Computed += a.Computed
	if p.left == 0 {
		l.figures.Answered += time.Since(p.sent)
		l.arrived(p)
		delete(l.pending, f.ID)
	}
	return m, nil
}

// reply reads an answer, as outputs of picks.
func (p *pending) reply(f *frame.Frame, hidden int) (*frame.Reply, error) {
	if p.sums == nil {
		return f.Reply(hidden, p.rows)
	}
	a, err := f.Sums(hidden, len(p.uses), p.sums.rows)
	if err == nil {
		a.Rows = p.sums.outputs(a.Rows, hidden)
	}
	return a, err
}

// fail ends the asks that which names.
func (l *link) fail(err error, which func(id uint64, p *pending) bool) {
	l.mu.Lock()
	var failed []uint64
	for id, p := range l.pending {
		if which(id, p) {
			failed = append(failed, id)
			p.forget()
			delete(l.pending, id)
		}
	}
	l.figures.Failed += int64(len(failed))
	l.mu.Unlock()
	for _, id := range failed {
		l.c.cfg.Send(stages.ExpertIO, &stages.ExpertsAnswered{Ask: id, Err: err})
	}
}

// endSlow ends asks that take too long.
func (l *link) endSlow() {
	l.fail(errSlow, func(_ uint64, p *pending) bool { return time.Since(p.sent) > askPatience })
}

// down ends what depends on a connection: the host is asked no more, and asks under way have
// failed.
func (l *link) down(conn net.Conn) {
	_ = conn.Close()
	l.mu.Lock()
	up := l.up
	l.up, l.conn = false, nil
	l.mu.Unlock()
	if up {
		l.c.cfg.Send(stages.ExpertIO, &stages.HostChanged{Host: l.host})
	}
	l.fail(errDown, func(uint64, *pending) bool { return true })
	l.telling.Wait()
	l.c.found.lost(l)
}

// figuresNow returns what the host was asked, and what came of it.
func (l *link) figuresNow() stages.HostStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.figures
}

// stats returns the host's figures.
func (l *link) stats() stages.HostStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.figures
	s.Addr, s.Up = l.addr, l.up
	return s
}
