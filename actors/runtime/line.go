package runtime

import (
	goruntime "runtime"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// line runs the actors of one engine's stages, one message at a time, in order of arrival. The
// goroutine that posts a message runs the line, unless another one is doing so already. For
// example, the device's goroutine brings the scores of a layer, runs router, expert-IO and dispatch
// itself, and goes on with the commands that they submitted: no thread sleeps or wakes between two
// operations of a token. Handlers never block, and the messages of a whole layer take a few
// microseconds, so posting is cheap (docs/experiments.md compares the alternatives).
//
// Stages of one engine never run at the same time, so what they share (stages.Spent) needs no lock.
type line struct {
	mu      sync.Mutex // guards the rest, and the mailboxes' counts
	users   fifo
	systems fifo // go first
	running bool // a goroutine is running the line

	// handled is when the last message was handled, on the engine's clock, and so when the next one
	// is taken; 0: a run of the line has just begun, or something else came between. Only the
	// goroutine that runs the line uses it.
	handled int64
	// answered is whether callers have been answered by the message that is being handled. Only the
	// goroutine that runs the line uses it.
	answered bool
}

// post is a message in its mailbox.
type post struct {
	box    *mailbox
	msg    any
	system bool
}

// fifo is a queue of posts without a bound; it keeps its memory.
type fifo struct {
	posts []post
	first int
}

func (f *fifo) len() int { return len(f.posts) - f.first }

func (f *fifo) push(p post) { f.posts = append(f.posts, p) }

func (f *fifo) pop() (p post, ok bool) {
	if f.first == len(f.posts) {
		return p, false
	}
	p = f.posts[f.first]
	f.posts[f.first] = post{}
	f.first++
	switch {
	case f.first == len(f.posts):
		f.posts, f.first = f.posts[:0], 0
	// a fifo that never runs empty must not grow for ever
	case f.first >= 64 && 2*f.first >= len(f.posts):
		n := copy(f.posts, f.posts[f.first:])
		clear(f.posts[n:])
		f.posts, f.first = f.posts[:n], 0
	}
	return p, true
}

// mailboxes makes the mailbox of an actor that the line runs.
func (l *line) mailboxes() actor.MailboxProducer {
	return func() actor.Mailbox { return &mailbox{line: l} }
}

// post puts a message in line. Unless another goroutine runs the line, it runs the line until it is
// empty.
func (l *line) post(p post) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.system {
		l.systems.push(p)
	} else {
		p.box.waiting++
		l.users.push(p)
	}
	if l.running {
		return
	}
	l.running, l.handled = true, 0
	for p, ok := l.next(); ok; p, ok = l.next() {
		l.mu.Unlock()
		p.box.deliver(p)
		l.mu.Lock()
		l.giveWay()
	}
	l.running = false
}

// giveWay lets callers that have just been answered go on before messages that wait: the next step
// needs what they ask for. Go runs the last goroutine that another one has woken on the same
// processor as that one, and lets an idle processor have it only after a nap of some 70 µs. The
// caller holds l.mu.
func (l *line) giveWay() {
	if l.answered && l.users.len()+l.systems.len() > 0 {
		l.mu.Unlock()
		goruntime.Gosched()
		l.mu.Lock()
		l.handled = 0
	}
	l.answered = false
}

// next removes and returns the next message. The caller holds l.mu.
func (l *line) next() (post, bool) {
	if p, ok := l.systems.pop(); ok {
		return p, true
	}
	p, ok := l.users.pop()
	if ok {
		p.box.waiting--
	}
	return p, ok
}

// mailbox is a protoactor mailbox on a line. Unlike the library's mailboxes, which make a closure
// for each wake-up, it allocates nothing for a message. It does not unpack batches.
type mailbox struct {
	line      *line
	invoker   actor.MessageInvoker
	waiting   int    // user messages in line
	suspended bool   // the actor has panicked and gets system messages only
	held      []post // for a suspended actor, in order
}

var _ actor.Mailbox = (*mailbox)(nil)

// PostUserMessage puts a message in line.
func (b *mailbox) PostUserMessage(m any) { b.line.post(post{box: b, msg: m}) }

// PostSystemMessage puts a message of the actor system in line, ahead of all user messages.
func (b *mailbox) PostSystemMessage(m any) { b.line.post(post{box: b, msg: m, system: true}) }

// RegisterHandlers sets the handler of messages. The dispatcher is not used.
func (b *mailbox) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	b.invoker = invoker
}

// Start does nothing: posting a message runs the line.
func (b *mailbox) Start() {}

// UserMessageCount returns how many messages are in line.
func (b *mailbox) UserMessageCount() int {
	b.line.mu.Lock()
	defer b.line.mu.Unlock()
	return b.waiting
}

// deliver handles one message. A panic of the actor goes to its supervisor.
func (b *mailbox) deliver(p post) {
	defer func() {
		if r := recover(); r != nil {
			b.invoker.EscalateFailure(r, p.msg)
		}
	}()
	switch p.msg.(type) {
	case *actor.SuspendMailbox:
		b.suspended = true
	case *actor.ResumeMailbox:
		b.suspended = false
		held := b.held
		b.held = nil
		for _, h := range held {
			b.deliver(h)
		}
	default:
		switch {
		case p.system:
			b.invoker.InvokeSystemMessage(p.msg)
		case b.suspended:
			b.held = append(b.held, p)
		default:
			b.invoker.InvokeUserMessage(p.msg)
		}
	}
}
