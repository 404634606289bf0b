package remote

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/moeflux/moeflux-actor/actors/remote/frame"
)

const (
	warmAsks, surveyAsks = 2, 20
	surveyPatience       = time.Minute // with one host
)

// Survey is what a host has shown of itself and of the network to it.
type Survey struct {
	Addr string
	Err  error // why it would not be used; all else is zero then
	Room frame.Room
	// RoundTrip is how long pings took, each through both programs.
	RoundTrip []time.Duration
	// Out and In are how fast the network was, to the host and back, in bytes a second.
	Out, In []float64
	// Took is how long asks for the experts of one row took here, and Spent what the host says of
	// them, in the middle. The experts were in its memory if it has room for them.
	Took  time.Duration
	Spent frame.Spent
}

// Look surveys the hosts, one after the other, on connections of its own, and those of their groups
// if Config.Most says so. An ask is for so many experts. Patience, Send and Probe are as for New;
// Send is not called.
func Look(ctx context.Context, cfg Config, experts int) (all []Survey) {
	c := New(cfg)
	defer c.Close()
	seen := make(map[string]bool) // addresses, and what hosts call themselves
	for todo := slices.Clone(cfg.Hosts); len(todo) > 0 && len(all) < max(len(cfg.Hosts), cfg.Most); todo = todo[1:] {
		addr := todo[0]
		if seen[addr] {
			continue
		}
		seen[addr] = true
		s, group := Survey{Addr: addr}, []string(nil)
		if cfg.Check != nil {
			s.Err = cfg.Check(addr)
		}
		if s.Err == nil {
			group, s.Err = c.newLink(0, addr).survey(ctx, &s, experts, seen)
		}
		todo = append(todo, group...)
		if s.Err != errSeen {
			all = append(all, s)
		}
	}
	return all
}

// errSeen says that a host is looked at by another address.
var errSeen = errors.New("the host was looked at before")

// survey measures one host, unless it was seen, and returns its group.
func (l *link) survey(ctx context.Context, s *Survey, experts int, seen map[string]bool) (group []string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	dialling, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	conn, err := l.dial(dialling)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	r := frame.NewReader(conn)
	if err := l.greet(conn, r); err != nil {
		return nil, err
	}
	s.Room = l.room
	_ = conn.SetReadDeadline(time.Now().Add(surveyPatience))
	if group, err = l.askGroup(conn, r); err != nil {
		return nil, err
	}
	if len(group) > 0 && group[0] != l.addr {
		if seen[group[0]] {
			return nil, errSeen
		}
		seen[group[0]] = true
	}
	if s.RoundTrip, err = surveyed.roundTrips(conn, r); err != nil {
		return group, err
	}
	if s.Out, err = surveyed.rates(conn, r, there); err != nil {
		return group, err
	}
	if s.In, err = surveyed.rates(conn, r, back); err != nil {
		return group, err
	}
	return group, l.askRow(conn, r, s, experts)
}

// askGroup asks a host for its group, if that is wanted.
func (l *link) askGroup(conn net.Conn, r *frame.Reader) ([]string, error) {
	if l.c.cfg.Most == 0 {
		return nil, nil
	}
	if _, err := conn.Write(frame.AppendEmpty(nil, frame.Watch, 0)); err != nil {
		return nil, err
	}
	f, err := r.Next()
	if err != nil {
		return nil, err
	}
	return f.Members()
}

// askRow asks for the experts of one row again and again.
func (l *link) askRow(conn net.Conn, r *frame.Reader, s *Survey, experts int) error {
	hidden := l.c.cfg.Shape.Hidden
	q := &frame.Question{Urgent: true, Inputs: make([]float32, hidden)}
	if p := l.c.cfg.Probe; p != nil {
		q.Layer, q.Group = p.Question.Layer, p.Question.Group
		copy(q.Inputs, p.Question.Inputs)
	}
	for e := range experts {
		q.Uses = append(q.Uses, frame.Use{Expert: e, Rows: []int32{0}})
	}
	var took, waited, read, computed []time.Duration
	for n := range warmAsks + surveyAsks {
		began := time.Now()
		of, err := answer(conn, r, hidden, q, func(int32, []float32) {})
		if err != nil {
			return err
		}
		if n >= warmAsks {
			took = append(took, time.Since(began))
			waited, read, computed = append(waited, of.Waited), append(read, of.Read), append(computed, of.Computed)
		}
	}
	s.Took, s.Spent = middle(took), frame.Spent{Waited: middle(waited), Read: middle(read), Computed: middle(computed)}
	return nil
}

func middle[T cmp.Ordered](of []T) T {
	slices.Sort(of)
	return of[len(of)/2]
}
