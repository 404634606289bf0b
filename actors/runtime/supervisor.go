package runtime

import (
	"fmt"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// BrokenError reports an engine that has stopped because of a bug: a stage panicked, or found one
// of its invariants broken. Only Close is of use then.
type BrokenError struct {
	Stage string
	Err   error
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("moeflux: the engine has stopped, %s failed: %v; please report this", e.Stage, e.Err)
}
func (e *BrokenError) Unwrap() error { return e.Err }

// StoppedError reports an engine that was stopped from outside: its actor system was shut down, or
// one of its actors was stopped. Only Close is of use then.
type StoppedError struct {
	Actor string // the actor that was stopped; "" if the actor system was shut down
}

func (e *StoppedError) Error() string {
	if e.Actor == "" {
		return "moeflux: the engine has stopped: its actor system was shut down"
	}
	return fmt.Sprintf("moeflux: the engine has stopped: its %s actor was stopped from outside", e.Actor)
}

// parent is the supervisor. It spawns the stages and stops all of them when one fails.
type parent struct {
	r        *Runtime
	children []child
	started  chan struct{}
	stopped  chan struct{}
	stopping atomic.Bool // by the engine itself
}

type child struct {
	name    string
	actor   actor.Actor
	mailbox actor.MailboxProducer
	pid     **actor.PID // set when spawned
}

// Receive handles one message of the mailbox.
func (p *parent) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		for _, c := range p.children {
			*c.pid = ctx.SpawnPrefix(actor.PropsFromProducer(func() actor.Actor { return c.actor },
				actor.WithMailbox(c.mailbox)), c.name)
		}
		close(p.started)
	case *actor.Terminated:
		if !p.stopping.Load() { // the other stages cannot go on without it
			p.r.breakDown(&StoppedError{Actor: p.name(m.Who)})
			for _, c := range ctx.Children() {
				ctx.Stop(c)
			}
		}
	case *actor.Stopping:
		if !p.stopping.Load() {
			p.r.breakDown(&StoppedError{Actor: "supervisor"})
		}
	case *actor.Stopped:
		close(p.stopped)
	default:
		p.r.unknown(ctx, "supervisor")
	}
}

// HandleFailure stops the engine. The actor system calls it when a child has panicked.
func (p *parent) HandleFailure(_ *actor.ActorSystem, s actor.Supervisor, failed *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	err, ok := reason.(error)
	if !ok {
		err = fmt.Errorf("panic: %v", reason)
	}
	p.r.breakDown(&BrokenError{Stage: p.name(failed), Err: err})
	s.StopChildren(s.Children()...)
}

// name returns the name of a child.
func (p *parent) name(pid *actor.PID) string {
	for _, c := range p.children {
		if (*c.pid).Equal(pid) {
			return c.name
		}
	}
	return pid.Id
}
