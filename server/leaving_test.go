package server

import (
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/server/visit"
)

// slow is a device that tells of each piece of work late, and of one after the other.
type slow struct {
	gpu.Device
	late time.Duration
}

func (d slow) NewQueue() (gpu.Queue, error) {
	q, err := d.Device.NewQueue()
	if err != nil {
		return nil, err
	}
	s := &slowQueue{Queue: q, done: make(chan func(), 1024), ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		for tell := range s.done {
			time.Sleep(d.late)
			tell()
		}
	}()
	return s, nil
}

type slowQueue struct {
	gpu.Queue
	done  chan func()
	ended chan struct{}
}

func (q *slowQueue) Submit(c *gpu.Commands) (gpu.Ticket, error) {
	t, err := q.Queue.Submit(c)
	if err != nil {
		return nil, err
	}
	return slowTicket{t, q}, nil
}

func (q *slowQueue) Close() error {
	err := q.Queue.Close()
	close(q.done)
	<-q.ended
	return err
}

type slowTicket struct {
	gpu.Ticket
	q *slowQueue
}

func (t slowTicket) OnDone(f func(error)) {
	t.Ticket.OnDone(func(err error) { t.q.done <- func() { f(err) } })
}

func (t slowTicket) DeviceNS() int64 { return 0 }

// endless is a model whose texts go on for long, whatever it would say by itself.
type endless struct{ *moeflux.Model }

func (m endless) Chat(ctx context.Context, r moeflux.Request) moeflux.Events {
	return m.Model.Chat(ctx, lengthened(r))
}

func (m endless) Generate(ctx context.Context, r moeflux.Request) moeflux.Events {
	return m.Model.Generate(ctx, lengthened(r))
}

func lengthened(r moeflux.Request) moeflux.Request {
	r.MaxTokens, r.Constraint = 1000, moeflux.Regexp("[a-z]{1000}")
	return r
}

// leaving is clients that leave a server of a real engine, which is slow and has memory for one
// text.
type leaving struct {
	tb    testing.TB
	model *moeflux.Model
	s     *Server
	addr  string
	asked int
}

func newLeaving(tb testing.TB) *leaving {
	d, err := host.New(host.Config{Threads: 1})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { d.Close() })
	m := demoModel(tb, func(c *moeflux.Config) { c.Device, c.MaxSequences, c.ChunkRows = slow{d, 2 * time.Millisecond}, 1, 32 })
	x := &leaving{tb: tb, model: m}
	x.s, err = New(Options{
		Models: []Served{{Name: "demo", Model: endless{m}}},
		Keys:   []Key{{Secret: "sk-leaver-leaver", Name: "leaver", Running: 1, Queued: 8}, {Secret: "sk-other-other", Name: "another"}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	server := httptest.NewServer(x.s)
	tb.Cleanup(server.Close)
	x.addr = server.Listener.Addr().String()
	return x
}

// bodies are requests of the endpoints whose answers are texts, without their closing brace.
var bodies = map[string]string{
	"/v1/chat/completions": `{"messages":[{"role":"user","content":%q}]`,
	"/v1/completions":      `{"prompt":%q`,
	"/v1/responses":        `{"input":%q`,
	"/v1/messages":         `{"max_tokens":500,"messages":[{"role":"user","content":%q}]`,
}

// ask sends a request and does not read the answer.
func (x *leaving) ask(secret, path, prompt string, stream bool) net.Conn {
	x.tb.Helper()
	c, err := net.Dial("tcp", x.addr)
	if err != nil {
		x.tb.Fatal(err)
	}
	x.asked++ // no prompt is known from an earlier request
	body := fmt.Sprintf(bodies[path], fmt.Sprint(x.asked, " ", prompt)) + fmt.Sprintf(`,"stream":%v}`, stream)
	_, err = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nX-Api-Key: %s\r\nContent-Length: %d\r\n\r\n%s", path, secret, len(body), body)
	if err != nil {
		x.tb.Fatal(err)
	}
	return c
}

// until waits for a condition of what the engine and the server have.
func (x *leaving) until(what string, is func(*moeflux.Stats, []visit.Answer) bool) {
	x.tb.Helper()
	var stats *moeflux.Stats
	var err error
	eventually(x.tb, what, func() bool {
		if stats, err = x.model.Engine().Stats(x.tb.Context()); err != nil {
			x.tb.Fatal(err)
		}
		var calls []visit.Answer // the oldest first
		for _, t := range x.s.underWay.All() {
			calls = append(calls, t.Answers()[0])
		}
		return is(stats, calls)
	})
}

// phase is where a request is when its client leaves.
type phase struct {
	name   string
	before string // the key of a request that runs meanwhile; "": none does
	prompt string
	is     func(s *moeflux.Stats, c visit.Answer) bool // of the newest request
}

var phases = []phase{
	{"waits for the turn of its key", "sk-leaver-leaver", "x", func(_ *moeflux.Stats, c visit.Answer) bool {
		return c.Prepared.IsZero()
	}},
	{"waits for memory", "sk-other-other", "x", func(s *moeflux.Stats, _ visit.Answer) bool {
		return s.Admission.Waiting == 1
	}},
	{"reads its prompt", "", strings.Repeat("if err != nil {\n", 250), func(s *moeflux.Stats, c visit.Answer) bool {
		return s.Admission.Sequences == 1 && !c.Prepared.IsZero() && !c.Read
	}},
	{"decodes", "", "x", func(_ *moeflux.Stats, c visit.Answer) bool { return c.Tokens > 2 }},
}

// leave has a client leave in a phase, and returns how long the engine had its request after that.
func (x *leaving) leave(p *phase, path string, stream bool) time.Duration {
	x.tb.Helper()
	others := 0
	if p.before != "" {
		c := x.ask(p.before, "/v1/completions", "first", true)
		defer func() {
			c.Close()
			x.until("nobody is there", func(s *moeflux.Stats, calls []visit.Answer) bool {
				return s.Admission.Sequences == 0 && len(calls) == 0
			})
		}()
		others = 1
		x.until("another request decodes", func(_ *moeflux.Stats, calls []visit.Answer) bool { return len(calls) == 1 && calls[0].Tokens > 0 })
	}
	c := x.ask("sk-leaver-leaver", path, p.prompt, stream)
	x.until(p.name, func(s *moeflux.Stats, calls []visit.Answer) bool {
		return len(calls) == others+1 && p.is(s, calls[others])
	})
	c.Close()
	left := time.Now()
	x.until("the request is gone", func(s *moeflux.Stats, calls []visit.Answer) bool {
		return s.Admission.Sequences == others && s.Admission.Waiting == 0 && len(calls) == others
	})
	return time.Since(left)
}

// A client that leaves ends its request, streamed or not, wherever that is: the engine has nothing
// of it any more. The benchmark says how long that takes.
func TestLeaving(t *testing.T) {
	x := newLeaving(t)
	for i := range phases {
		var took []time.Duration
		for path := range bodies {
			for _, stream := range []bool{false, true} {
				took = append(took, x.leave(&phases[i], path, stream))
			}
		}
		t.Logf("while it %s: %v after the client at most", phases[i].name, slices.Max(took))
	}
}

// BenchmarkLeaving holds the time from a client's leaving to when the engine has nothing of its
// request any more below 100 ms.
func BenchmarkLeaving(b *testing.B) {
	x := newLeaving(b)
	for i := range phases {
		b.Run("phase="+strings.ReplaceAll(phases[i].name, " ", "_"), func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				took = append(took, x.leave(&phases[i], "/v1/chat/completions", len(took)%2 == 0))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1e3, "ms-median")
			b.ReportMetric(float64(took[len(took)-1].Microseconds())/1e3, "ms-most")
			if worst := took[len(took)-1]; worst > 100*time.Millisecond {
				b.Errorf("%v", worst)
			}
		})
	}
}
