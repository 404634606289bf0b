package remote

import (
	"cmp"
	"context"
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

// Look surveys the hosts, one after the other, on connections of its own. An ask is for so many
// experts. Patience, Send and Probe are as for New; Send is not called.
func Look(ctx context.Context, cfg Config, experts int) []Survey {
	c := New(cfg)
	defer c.Close()
	all := make([]Survey, len(c.links))
	for i, l := range c.links {
		all[i].Addr = l.addr
		all[i].Err = l.survey(ctx, &all[i], experts)
	}
	return all
}

// survey measures one host.
func (l *link) survey(ctx context.Context, s *Survey, experts int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	dialling, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	conn, err := l.dial(dialling)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	r := frame.NewReader(conn)
	if err := l.greet(conn, r); err != nil {
		return err
	}
	s.Room = l.room
	_ = conn.SetReadDeadline(time.Now().Add(surveyPatience))
	if s.RoundTrip, err = surveyed.roundTrips(conn, r); err != nil {
		return err
	}
	if s.Out, err = surveyed.rates(conn, r, there); err != nil {
		return err
	}
	if s.In, err = surveyed.rates(conn, r, back); err != nil {
		return err
	}
	return l.askRow(conn, r, s, experts)
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
