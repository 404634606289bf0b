package server

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/tracing/live"
)

// The bounds of the live feed.
const (
	liveEvery     = 150 * time.Millisecond // from frame to frame
	liveListeners = 4
	mostLive      = 64 // requests of a frame
	// livePause is how many times as long as a frame took to make nothing is done after it, for
	// each listener: so all of them together take at most a hundredth of one processor.
	livePause = 100
)

// views answer those who look behind the scenes.
type views struct {
	models   modelList
	underWay *underWay
	patience time.Duration   // a write may take
	closing  context.Context // ends when the server stops

	recording sync.Mutex   // of who reads records
	listeners atomic.Int64 // to the live feed
}

func newViews(models modelList, underWay *underWay, patience time.Duration, closing context.Context) *views {
	return &views{models: models, underWay: underWay, patience: patience, closing: closing}
}

// Listeners returns how many listen to the live feed.
func (x *views) Listeners() int { return int(x.listeners.Load()) }

// Recording reports whether somebody reads records.
func (x *views) Recording() bool {
	if !x.recording.TryLock() {
		return true
	}
	x.recording.Unlock()
	return false
}

// live answers GET /debug/live with what an engine does, as package tracing/live has it, until
// the client leaves or the server stops.
func (x *views) live(w http.ResponseWriter, r *http.Request) {
	m, f := x.models.watchable(r.FormValue("model"))
	if f == nil && x.listeners.Add(1) > liveListeners {
		x.listeners.Add(-1)
		f = &fault{Status: http.StatusTooManyRequests, Type: rateLimit, Code: "busy", Message: "as many listen to the live feed as may", Retry: 5 * time.Second}
	}
	if f != nil {
		refuse(w, r, f)
		return
	}
	defer x.listeners.Add(-1)
	// The deadline of the body would end the feed, and every later request on its connection.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	e := m.engine()
	v := live.New(e.Records(), e.RecordMeta())
	if err := startView(r.Context(), v, e); err != nil {
		note(r, err)
		writeFault(w, faultOf(err), formOf(r))
		return
	}
	out := newSSE(w, x.patience)
	out.event("begin", v.Begin(m.Name, liveEvery))
	for wait := time.NewTimer(0); ; {
		select {
		case <-wait.C:
		case <-r.Context().Done():
			return
		case <-x.closing.Done():
			return
		}
		began := time.Now()
		frame := v.Frame()
		x.tellRequests(frame, m, v)
		body := encode(frame)
		took := time.Since(began)
		if out.write(append(append([]byte("event: frame\ndata: "), body...), '\n')); out.err != nil || m.engine() != e {
			return
		}
		wait.Reset(max(liveEvery, took*livePause*time.Duration(max(1, x.listeners.Load()))))
	}
}

// startView tells a view where the experts are.
func startView(ctx context.Context, v *live.View, e Engine) error {
	ctx, cancel := context.WithTimeout(ctx, statsTime)
	defer cancel()
	stats, err := e.Stats(ctx)
	if err != nil {
		return err
	}
	experts := e.RecordMeta().Model.Experts
	var where []live.Cell
	var picks []int64
	for i := range stats.Layers {
		l := &stats.Layers[i]
		for k := range experts {
			cell, n := live.OnDisk, int64(0)
			if k < len(l.Places) {
				cell = map[moeflux.Place]live.Cell{moeflux.OnDisk: live.OnDisk, moeflux.BeingRead: live.Reading, moeflux.InSlot: live.InSlot}[l.Places[k]]
			}
			if k < len(l.Uses) {
				n = l.Uses[k]
			}
			where, picks = append(where, cell), append(picks, n)
		}
	}
	v.Start(where, picks)
	return nil
}

// tellRequests writes the requests under way into a frame, and whose the tokens are.
func (x *views) tellRequests(f *live.Frame, m *Served, v *live.View) {
	ids := make(map[uint64]string)
	for _, t := range x.underWay.all() {
		if t.model != m.Name {
			continue
		}
		for _, one := range liveOf(t, v) {
			if ids[one.Sequence] = one.ID; one.Sequence == 0 {
				delete(ids, 0)
			}
			if len(f.Requests) == mostLive {
				f.More++
				continue
			}
			f.Requests = append(f.Requests, one)
		}
	}
	for i := range f.Tokens {
		f.Tokens[i].ID = ids[f.Tokens[i].Sequence]
	}
}

// liveOf returns the answers of a call that have not ended, with what the engine knows of them.
func liveOf(t *tally, v *live.View) (all []live.Request) {
	now, answers := time.Now(), t.answers()
	for i := range answers {
		c := &answers[i]
		if c.over {
			continue
		}
		one := live.Request{
			ID: t.visit.id, Choice: i, Path: t.path, Key: t.visit.key.Name, Class: className(t.call.request.Class), State: "waiting", AgeUS: now.Sub(t.began).Microseconds(),
			QueueUS: now.Sub(t.began).Microseconds(), Sequence: c.sequence, Tokens: c.tokens, Limit: t.call.request.MaxTokens,
		}
		text := v.Sequence(c.sequence)
		if c.sequence != 0 && text != nil {
			one.State, one.QueueUS, one.Cost = "reading", max(0, text.BeganNS-text.ArrivedNS)/1e3, text.Cost
		}
		if c.tokens > 0 {
			one.State = "writing"
		}
		if !c.prepared.IsZero() {
			one.Prompt = readingOf(c, text)
		}
		if took := c.last.Sub(c.first); c.tokens > 1 && took > 0 {
			one.PerS = float64(c.tokens-1) / took.Seconds()
		}
		all = append(all, one)
	}
	return all
}

// readingOf says how far the reading of a prompt has come.
func readingOf(c *choiceTally, text *live.Text) *live.Prompt {
	p := &live.Prompt{Tokens: c.prompt, Cached: c.reused}
	if text == nil {
		return p
	}
	p.Cached = cmp.Or(c.reused, min(int(text.From), c.prompt))
	p.Done = min(int(text.Done), c.prompt)
	if c.read {
		p.Done = c.prompt
	}
	if took := text.EndedNS - text.BeganNS; took > 0 && text.BeganNS > 0 && !c.read {
		p.PerS = float64(text.Done-text.From) / float64(took) * 1e9
		if p.PerS > 0 {
			p.LeftUS = int64(float64(c.prompt-p.Done) / p.PerS * 1e6)
		}
	}
	return p
}

func className(c moeflux.Class) string {
	switch c {
	case moeflux.Background:
		return "background"
	case moeflux.Interactive:
		return "interactive"
	}
	return "normal"
}
