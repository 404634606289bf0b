package remote

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/moeflux/moeflux-actor/actors/remote/frame"
)

const (
	warmPings, surveyPings = 5, 100 // round trips that do not count, and that do
	pingTime               = time.Second

	// A rate is measured by pieces that follow each other: from the end of the first to that of the
	// last, so that round trips and the beginning of a connection do not count. Pieces are doubled
	// until that takes rateTime.
	ratePieces, leastPiece = 5, 64 << 10
	rateTime               = 50 * time.Millisecond
	rateRounds             = 5

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
	if s.RoundTrip, err = roundTrips(conn, r); err != nil {
		return err
	}
	if s.Out, err = rates(conn, r, func(piece int) (padding, back int) { return piece, 0 }); err != nil {
		return err
	}
	if s.In, err = rates(conn, r, func(piece int) (padding, back int) { return 0, piece }); err != nil {
		return err
	}
	return l.askRow(conn, r, s, experts)
}

// pong reads the next frame, which must be a Pong.
func pong(r *frame.Reader) error {
	f, err := r.Next()
	if err == nil && f.Kind != frame.Pong {
		err = fmt.Errorf("%w; or it is about to end", frame.ErrKind)
	}
	return err
}

// roundTrips measures pings one after the other, fewer if the network is slow.
func roundTrips(conn net.Conn, r *frame.Reader) (all []time.Duration, err error) {
	first := time.Now()
	for n := 0; n < warmPings+surveyPings && (n < 2*warmPings || time.Since(first) < pingTime); n++ {
		began := time.Now()
		if _, err := conn.Write(frame.AppendEmpty(nil, frame.Ping, 0)); err != nil {
			return nil, err
		}
		if err := pong(r); err != nil {
			return nil, err
		}
		if n >= warmPings {
			all = append(all, time.Since(began))
		}
	}
	return all, nil
}

// rates measures pieces that go one way.
func rates(conn net.Conn, r *frame.Reader, way func(piece int) (padding, back int)) (all []float64, err error) {
	for piece := leastPiece; len(all) < rateRounds; {
		padding, back := way(piece)
		took, err := burst(conn, r, frame.AppendPing(nil, 0, padding, back))
		if err != nil {
			return nil, err
		}
		if took < rateTime && 2*piece <= frame.MostPadding {
			piece *= 2
			continue
		}
		all = append(all, float64((ratePieces-1)*piece)/took.Seconds())
	}
	return all, nil
}

// burst sends pings that follow each other, and returns how long it takes from the first Pong to
// the last. A Pong is taken when it comes, though pings are being written.
func burst(conn net.Conn, r *frame.Reader, ping []byte) (time.Duration, error) {
	var writing sync.WaitGroup
	defer writing.Wait()
	writing.Go(func() {
		for range ratePieces {
			_, _ = conn.Write(ping) // an error ends the connection: reading tells
		}
	})
	var first time.Time
	for n := range ratePieces {
		if err := pong(r); err != nil {
			return 0, err
		}
		if n == 0 {
			first = time.Now()
		}
	}
	return max(time.Since(first), time.Microsecond), nil
}

// askRow asks for the experts of one row again and again.
func (l *link) askRow(conn net.Conn, r *frame.Reader, s *Survey, experts int) error {
	hidden := l.c.cfg.Shape.Hidden
	q := &frame.Question{Urgent: true, Inputs: make([]float32, hidden)}
	if p := l.c.cfg.Probe; p != nil {
		q.Layer = p.Question.Layer
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

func middle(of []time.Duration) time.Duration {
	slices.Sort(of)
	return of[len(of)/2]
}
