package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/server/access"
	"github.com/moeflux/moeflux-actor/server/watch"
	"github.com/moeflux/moeflux-actor/tracing/live"
)

// listener hears a live feed, and knows the cells that it has told so far.
type listener struct {
	t     testing.TB
	in    *bufio.Scanner
	begin live.Begin
	cells []byte
	heat  []byte
	stop  func()
}

func listen(t *testing.T, url string) *listener {
	t.Helper()
	return listenTo(t, url)
}

func listenTo(t testing.TB, url string) *listener {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", url+"/debug/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); resp.Body.Close() })
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatal(resp.Status, resp.Header)
	}
	l := &listener{t: t, in: bufio.NewScanner(resp.Body), stop: cancel}
	l.in.Buffer(nil, 8<<20)
	name, data := l.event()
	if name != "begin" || json.Unmarshal([]byte(data), &l.begin) != nil {
		t.Fatalf("the first event is %s %s", name, data)
	}
	return l
}

// event returns the next event; an empty name says that there is none.
func (l *listener) event() (name, data string) {
	for l.in.Scan() {
		line := l.in.Text()
		if n, ok := strings.CutPrefix(line, "event: "); ok {
			name = n
		}
		if d, ok := strings.CutPrefix(line, "data: "); ok {
			data = d
		}
		if line == "" && name != "" {
			return name, data
		}
	}
	return "", ""
}

// frame returns the next frame, and applies its cells.
func (l *listener) frame() *live.Frame {
	l.t.Helper()
	name, data := l.event()
	f := new(live.Frame)
	if err := json.Unmarshal([]byte(data), f); err != nil || name != "frame" {
		l.t.Fatalf("%s %s: %v", name, data, err)
	}
	c := f.Experts
	if c == nil {
		return f
	}
	if c.Full {
		l.cells, l.heat = slices.Clone(c.Cells), slices.Clone(c.Heat)
	}
	for i, k := range c.Index {
		l.cells[k], l.heat[k] = c.Cells[i], c.Heat[i]
	}
	return f
}

// A listener's picture becomes that of the engine: where each expert is, who is served, what each
// token took, on a model whose experts stream.
func TestDebugLive(t *testing.T) {
	m := demoModel(t)
	srv := watched(t, m, func(o *Options) {
		o.Keys = []access.Key{{Secret: "sk-first-first", Name: "me", Class: moeflux.Interactive}}
	})
	web := httptest.NewServer(srv)
	t.Cleanup(web.Close) // after the listeners have left
	const key = "sk-first-first"
	// The feed begins amid the engine's life.
	post(t, web.URL+"/v1/completions", `{"prompt":"package main","max_tokens":8}`, "X-Api-Key", key)
	before := m.Engine().Records().Requests.Total()
	l := listen(t, web.URL)
	if b := &l.begin; b.Model != "demo" || b.Layers != len(m.Engine().Model().Layers) || b.Experts != m.Engine().Model().NumExperts || b.Resident || len(b.Stages) != 5 || len(b.Causes) < 10 {
		t.Errorf("the beginning is %+v", b)
	}
	if f := l.frame(); f.Experts == nil || !f.Experts.Full || len(l.cells) != l.begin.Layers*l.begin.Experts || f.Experts.InSlot == 0 {
		t.Fatalf("the first frame has %d cells", len(l.cells))
	}
	ended := make(chan struct{})
	var wrote atomic.Bool // a request has been seen that writes, and what it has cost
	go func() {
		defer close(ended)
		// Frames come rarely on a busy machine, so one request may pass between two of them.
		for n := 0; n < 50 && !wrote.Load(); n++ {
			post(t, web.URL+"/v1/completions", fmt.Sprintf(`{"prompt":%q,"max_tokens":200,"logit_bias":{"0":-100}}`, strings.Repeat("func main() { return nil }\n", 60)), "X-Api-Key", key)
		}
	}()
	told, seen, states := 0, map[uint64]live.Token{}, map[string]bool{}
	var busy live.Pipeline
	look := func(f *live.Frame) {
		told += len(f.Tokens) + f.Skipped
		for _, token := range f.Tokens {
			seen[token.Request] = token
		}
		for _, r := range f.Requests {
			states[r.State] = true
			if r.Key != "me" || r.Class != "interactive" || r.Limit != 200 || r.Path != "/v1/completions" || r.Prompt != nil && r.Prompt.Tokens < 200 {
				t.Errorf("a request is %+v, prompt %+v", r, r.Prompt)
			}
			if r.State != "writing" {
				continue
			}
			if r.Tokens == 0 || r.Sequence == 0 || r.Prompt == nil {
				t.Fatalf("a request that writes is %+v", r)
			}
			// The server asks the engine's records first, so they may be behind its own figures.
			if r.Prompt.Done == r.Prompt.Tokens && r.Cost.Hit+r.Cost.Missed > 0 {
				wrote.Store(true)
			}
		}
		// On a busy machine one submission may last for longer than a frame, in which no stage does
		// anything then.
		if f.Pipeline.RowsPerS > 0 && f.Pipeline.Device.Busy > busy.Device.Busy {
			busy = f.Pipeline
		}
	}
	for over := false; !over; {
		select {
		case <-ended:
			over = true
		default:
		}
		look(l.frame())
	}
	for range 3 { // what was still on its way
		look(l.frame())
	}
	if !wrote.Load() || len(states) > 3 {
		t.Errorf("the states of requests were %v", states)
	}
	if answers := int(m.Engine().Records().Requests.Total() - before); told != answers || len(seen) == 0 {
		t.Errorf("%d answers were told of, and there were %d; %d were explained", told, answers, len(seen))
	}
	checkTokens(t, m, l, seen)
	checkPipeline(t, l, &busy)
	// When all is quiet the picture is the engine's own.
	eventually(t, "the cells are the engine's", func() bool {
		l.frame()
		stats, err := m.Engine().Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i, layer := range stats.Layers {
			for e, p := range layer.Places {
				if got := live.Cell(l.cells[i*l.begin.Experts+e]) & live.Where; (p == moeflux.InSlot) != (got == live.InSlot) {
					return false
				}
			}
		}
		return true
	})
	hot := 0
	for _, h := range l.heat {
		if h > 0 {
			hot++
		}
	}
	if hot == 0 || slices.Max(l.heat) < 200 {
		t.Errorf("%d experts are warm, the most at %d", hot, slices.Max(l.heat))
	}
}

// checkTokens compares what was told of tokens with the engine's own records.
func checkTokens(t *testing.T, m *moeflux.Model, l *listener, seen map[uint64]live.Token) {
	t.Helper()
	rec, err := m.Engine().Recording(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for i := range rec.Requests {
		r := &rec.Requests[i]
		token, ok := seen[r.Request]
		if !ok {
			continue
		}
		compared++
		if token.Sequence != r.Seq || token.Position != r.Pos || token.Rows != r.Rows || token.FromUS+token.WallUS > r.EndedNS/1e3+1 || token.FromUS+token.WallUS < r.EndedNS/1e3-1 || token.FromUS > r.ArrivedNS/1e3 {
			t.Errorf("token %+v is of request %+v", token, r)
		}
		sum := 0.0
		for _, c := range token.Causes {
			sum += c.Share
		}
		if sum < .99 || sum > 1.01 {
			t.Errorf("the causes add up to %v: %+v", sum, token.Causes)
		}
		at, drawn := int64(0), int64(0)
		for k := 0; k+3 < len(token.Path); k += 4 {
			from, to, cause, layer := token.Path[k], token.Path[k+1], token.Path[k+2], token.Path[k+3]
			if from < at || to < from || to > token.WallUS+1 || cause < 0 || int(cause) >= len(l.begin.Causes) || layer < -1 || int(layer) > l.begin.Layers {
				t.Fatalf("the path is %v", token.Path)
			}
			at, drawn = to, drawn+to-from
		}
		if drawn < token.WallUS*8/10 || len(token.Path) > 4*2000 {
			t.Errorf("of %d us the path has %d, in %d pieces", token.WallUS, drawn, len(token.Path)/4)
		}
		if len(token.Bars)%4 != 0 || len(token.Bars) == 0 || len(token.Bars) > 4*4000 {
			t.Errorf("there are %d numbers of bars", len(token.Bars))
		}
	}
	if compared == 0 {
		t.Error("no token could be compared")
	}
}

// checkPipeline looks at a frame of when the engine was at work.
func checkPipeline(t *testing.T, l *listener, p *live.Pipeline) {
	t.Helper()
	sum := p.Device.Busy
	for _, s := range p.Device.Idle {
		sum += s.Share
	}
	stages, most := 0.0, 0.0 // stages are at work at once
	for _, s := range p.Stages {
		stages, most = stages+s.Busy, max(most, s.Busy)
	}
	if p.Device.Busy <= 0 || sum < .99 || sum > 1.01 || stages <= 0 || most > 1.01 || len(p.Stages) != 5 || p.RowsPerS <= 0 || p.Slots == 0 || p.SlotsUsed == 0 {
		t.Errorf("the pipeline is %+v", p)
	}
}

// A feed ends with the server, and there are not more of them than may be.
func TestDebugLiveEnds(t *testing.T) {
	srv := watched(t, demoModel(t))
	web := httptest.NewServer(srv)
	t.Cleanup(web.Close) // after the listeners have left
	var all []*listener
	for range watch.MostListeners {
		all = append(all, listen(t, web.URL))
	}
	if status, body := get(t, web.URL+"/debug/live"); status != http.StatusTooManyRequests {
		t.Errorf("one more: %d %s", status, body)
	}
	all[0].stop()
	eventually(t, "a place is free", func() bool { return srv.views.Listeners() < watch.MostListeners })
	listen(t, web.URL)
	srv.Drain(t.Context())
	for name := "frame"; name != ""; {
		name, _ = all[1].event()
	}
	eventually(t, "nobody listens", func() bool { return srv.views.Listeners() == 0 })
}

// A feed outlasts the time that a client may take to send a body.
func TestDebugLiveGoesOn(t *testing.T) {
	const patience = 300 * time.Millisecond
	web := httptest.NewServer(watched(t, demoModel(t), func(o *Options) { o.Patience = patience }))
	t.Cleanup(web.Close) // after the listeners have left
	l := listen(t, web.URL)
	for end := time.Now().Add(3 * patience); time.Now().Before(end); {
		l.frame()
	}
}
