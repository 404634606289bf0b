// Package watch answers those who look behind the scenes of a server: with the live feed of an
// engine, and with its records.
package watch

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/server/fault"
	"github.com/moeflux/moeflux-actor/server/models"
	"github.com/moeflux/moeflux-actor/server/visit"
	"github.com/moeflux/moeflux-actor/server/wire"
	"github.com/moeflux/moeflux-actor/tracing/live"
)

// The bounds of the live feed.
const (
	liveEvery     = 150 * time.Millisecond // from frame to frame
	MostListeners = 4
	mostLive      = 64 // requests of a frame
	// livePause is how many times as long as a frame took to make nothing is done after it, for
	// each listener: so all of them together take at most a hundredth of one processor.
	livePause = 100
	// liveRest bounds that: on a busy machine most of the time that a frame takes is waiting for a
	// processor, and a feed that rests for half a minute after it tells nothing.
	liveRest = 2 * time.Second
)

// Views answer those who look behind the scenes.
type Views struct {
	models   models.List
	underWay *visit.UnderWay
	patience time.Duration   // a write may take
	closing  context.Context // ends when the server stops

	recording sync.Mutex   // of who reads records
	listeners atomic.Int64 // to the live feed
}

// New returns the views of models. A write of theirs may take as long as patience; all end when
// closing does.
func New(models models.List, underWay *visit.UnderWay, patience time.Duration, closing context.Context) *Views {
	return &Views{models: models, underWay: underWay, patience: patience, closing: closing}
}

// Listeners returns how many listen to the live feed.
func (x *Views) Listeners() int { return int(x.listeners.Load()) }

// Recording reports whether somebody reads records.
func (x *Views) Recording() bool {
	if !x.recording.TryLock() {
		return true
	}
	x.recording.Unlock()
	return false
}

// Live answers GET /debug/live with what an engine does, as package tracing/live has it, until
// the client leaves or the server stops.
func (x *Views) Live(w http.ResponseWriter, r *http.Request) {
	m, f := x.models.Watchable(r.FormValue("model"))
	if f == nil && x.listeners.Add(1) > MostListeners {
		x.listeners.Add(-1)
		f = &fault.Fault{Status: http.StatusTooManyRequests, Type: fault.RateLimit, Code: "busy", Message: "as many listen to the live feed as may", Retry: 5 * time.Second}
	}
	if f != nil {
		visit.Refuse(w, r, f)
		return
	}
	defer x.listeners.Add(-1)
	// The deadline of the body would end the feed, and every later request on its connection.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	e := m.Watched()
	v := live.New(e.Records(), e.RecordMeta())
	if err := startView(r.Context(), v, e); err != nil {
		visit.Note(r, err)
		fault.Write(w, fault.Of(err), fault.FormOf(r))
		return
	}
	out := wire.NewStream(w, x.patience)
	out.Event("begin", v.Begin(m.Name, liveEvery))
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
		body := wire.Encode(frame)
		took := time.Since(began)
		if out.Write(append(append([]byte("event: frame\ndata: "), body...), '\n')); out.Err != nil || m.Watched() != e {
			return
		}
		wait.Reset(min(max(liveEvery, took*livePause*time.Duration(max(1, x.listeners.Load()))), liveRest))
	}
}

// startView tells a view where the experts are.
func startView(ctx context.Context, v *live.View, e models.Engine) error {
	ctx, cancel := context.WithTimeout(ctx, models.StatsTime)
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
func (x *Views) tellRequests(f *live.Frame, m *models.Served, v *live.View) {
	ids := make(map[uint64]string)
	for _, t := range x.underWay.All() {
		if t.Model != m.Name {
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
func liveOf(t *visit.Tally, v *live.View) (all []live.Request) {
	now, answers := time.Now(), t.Answers()
	for i := range answers {
		c := &answers[i]
		if c.Over {
			continue
		}
		one := live.Request{
			ID: t.Visit.ID, Choice: i, Path: t.Path, Key: t.Visit.Key.Name, Class: className(t.Call.Request.Class), State: "waiting", AgeUS: now.Sub(t.Began).Microseconds(),
			QueueUS: now.Sub(t.Began).Microseconds(), Sequence: c.Sequence, Tokens: c.Tokens, Limit: t.Call.Request.MaxTokens,
		}
		text := v.Sequence(c.Sequence)
		if c.Sequence != 0 && text != nil {
			one.State, one.QueueUS, one.Cost = "reading", max(0, text.BeganNS-text.ArrivedNS)/1e3, text.Cost
		}
		if c.Tokens > 0 {
			one.State = "writing"
		}
		if !c.Prepared.IsZero() {
			one.Prompt = readingOf(c, text)
		}
		if took := c.Last.Sub(c.First); c.Tokens > 1 && took > 0 {
			one.PerS = float64(c.Tokens-1) / took.Seconds()
		}
		all = append(all, one)
	}
	return all
}

// readingOf says how far the reading of a prompt has come.
func readingOf(c *visit.Answer, text *live.Text) *live.Prompt {
	p := &live.Prompt{Tokens: c.Prompt, Cached: c.Reused}
	if text == nil {
		return p
	}
	p.Cached = cmp.Or(c.Reused, min(int(text.From), c.Prompt))
	p.Done = min(int(text.Done), c.Prompt)
	if c.Read {
		p.Done = c.Prompt
	}
	if took := text.EndedNS - text.BeganNS; took > 0 && text.BeganNS > 0 && !c.Read {
		p.PerS = float64(text.Done-text.From) / float64(took) * 1e9
		if p.PerS > 0 {
			p.LeftUS = int64(float64(c.Prompt-p.Done) / p.PerS * 1e6)
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
