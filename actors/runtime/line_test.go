package runtime

import (
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// notes is an invoker that notes what it is given.
type notes struct {
	got    []any
	failed []any
	do     func(any)
}

func (n *notes) InvokeSystemMessage(m any) { n.got = append(n.got, m) }
func (n *notes) InvokeUserMessage(m any) {
	n.got = append(n.got, m)
	if n.do != nil {
		n.do(m)
	}
}
func (n *notes) EscalateFailure(reason, _ any) { n.failed = append(n.failed, reason) }

func boxOn(l *line, n *notes) actor.Mailbox {
	b := l.mailboxes()()
	b.RegisterHandlers(n, nil)
	b.Start()
	return b
}

// TestLineOrder posts while a message is handled: what was posted is handled afterwards, in order,
// system messages first.
func TestLineOrder(t *testing.T) {
	l, n := new(line), new(notes)
	b := boxOn(l, n)
	n.do = func(m any) {
		if m == 1 {
			b.PostUserMessage(2)
			b.PostUserMessage(3)
			b.PostSystemMessage("system")
			if c := b.UserMessageCount(); c != 2 || len(n.got) != 1 {
				t.Errorf("%d messages in line after %v, want 2 and nothing handled within a handler", c, n.got)
			}
		}
	}
	b.PostUserMessage(1)
	if want := []any{1, "system", 2, 3}; !slices.Equal(n.got, want) {
		t.Errorf("handled %v, want %v", n.got, want)
	}
}

// TestLineSuspends lets an actor panic: its failure is reported, and while it is suspended its
// messages wait.
func TestLineSuspends(t *testing.T) {
	l, n, others := new(line), new(notes), new(notes)
	b, other := boxOn(l, n), boxOn(l, others)
	n.do = func(m any) {
		if m == "bad" {
			panic(m)
		}
	}
	b.PostUserMessage("bad")
	b.PostSystemMessage(new(actor.SuspendMailbox))
	b.PostUserMessage(1)
	b.PostUserMessage(2)
	other.PostUserMessage(3)
	if len(n.failed) != 1 || len(n.got) != 1 || len(others.got) != 1 {
		t.Fatalf("failed %v, handled %v and %v, want one each", n.failed, n.got, others.got)
	}
	b.PostSystemMessage(new(actor.ResumeMailbox))
	if want := []any{"bad", 1, 2}; !slices.Equal(n.got, want) {
		t.Errorf("handled %v, want %v", n.got, want)
	}
}

// TestLineGivesWay answers a caller by the first of two messages: on one processor the caller goes
// on before the second is handled, nearly always (Go's scheduler sometimes takes another goroutine
// first), and what it asks for comes after that.
func TestLineGivesWay(t *testing.T) {
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(1))
	const tries = 20
	first := 0
	for range tries {
		l, n := new(line), new(notes)
		b := boxOn(l, n)
		var asked atomic.Bool
		answer := make(chan bool, 1)
		var caller sync.WaitGroup
		caller.Go(func() {
			<-answer
			asked.Store(true)
			b.PostUserMessage("ask")
		})
		for range 3 {
			goruntime.Gosched() // the caller waits
		}
		n.do = func(m any) {
			switch m {
			case "result":
				b.PostUserMessage("count")
				l.answered = true
				answer <- true
			case "count":
				if asked.Load() {
					first++
				}
			}
		}
		b.PostUserMessage("result")
		caller.Wait()
		if want := []any{"result", "count", "ask"}; !slices.Equal(n.got, want) {
			t.Errorf("handled %v, want %v", n.got, want)
		}
	}
	if first < tries/2 {
		t.Errorf("%d of %d callers went before a message behind their answers", first, tries)
	}
}

// TestLineRunsOneAtATime posts from several goroutines: handlers never overlap, and each sender's
// order holds.
func TestLineRunsOneAtATime(t *testing.T) {
	const senders, each = 4, 500
	l, n := new(line), new(notes)
	var last [senders]int
	n.do = func(m any) { // unguarded: the race detector sees handlers that overlap
		v := m.(int)
		if from, i := v%senders, v/senders; i != last[from] {
			t.Errorf("sender %d: message %d, want %d", from, i, last[from])
		}
		last[v%senders]++
	}
	b := boxOn(l, n)
	var wg sync.WaitGroup
	for from := range senders {
		wg.Go(func() {
			for i := range each {
				b.PostUserMessage(i*senders + from)
			}
		})
	}
	wg.Wait()
	if len(n.got) != senders*each {
		t.Errorf("%d messages handled, want %d", len(n.got), senders*each)
	}
}
