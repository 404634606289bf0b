package remote

import (
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/moeflux/moeflux-actor/actors/remote/frame"
)

// measuring is how closely a network is measured. A rate is measured by pieces that follow each
// other: from the end of the first to that of the last, so that round trips and the beginning of a
// connection do not count. Pieces are doubled until that takes long enough.
type measuring struct {
	warmPings, pings int // round trips that do not count, and that do
	pingTime         time.Duration
	leastPiece       int // bytes
	rateTime         time.Duration
	rounds           int // of pieces that took long enough
}

// ratePieces is how many pieces follow each other.
const ratePieces = 5

var (
	// surveyed is for forecasts.
	surveyed = measuring{warmPings: 5, pings: 100, pingTime: time.Second, leastPiece: 64 << 10, rateTime: 50 * time.Millisecond, rounds: 5}
	// greeted is for each new connection, before the first ask. It takes some milliseconds, and a
	// fifth of a second at 1 MB/s.
	greeted = measuring{warmPings: 2, pings: 3, pingTime: time.Second, leastPiece: 16 << 10, rateTime: 2 * time.Millisecond, rounds: 1}
)

// there and back are the ways of a piece: how many bytes a Ping carries, and how many its Pong.
func there(piece int) (padding, answer int) { return piece, 0 }
func back(piece int) (padding, answer int)  { return 0, piece }

// network is what a connection has shown of the network. A rate is in bytes a second.
type network struct {
	roundTrip time.Duration
	out, in   float64
}

// network measures a connection.
func (m *measuring) network(conn net.Conn, r *frame.Reader) (n network, err error) {
	trips, err := m.roundTrips(conn, r)
	if err != nil {
		return n, err
	}
	out, err := m.rates(conn, r, there)
	if err != nil {
		return n, err
	}
	in, err := m.rates(conn, r, back)
	if err != nil {
		return n, err
	}
	return network{middle(trips), middle(out), middle(in)}, nil
}

// rowNS returns how long so many bytes there and back take, but for the delay.
func (n *network) rowNS(out, in int) float64 {
	return 1e9 * (float64(out)/n.out + float64(in)/n.in)
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
func (m *measuring) roundTrips(conn net.Conn, r *frame.Reader) (all []time.Duration, err error) {
	first := time.Now()
	for n := 0; n < m.warmPings+m.pings && (n < 2*m.warmPings || time.Since(first) < m.pingTime); n++ {
		began := time.Now()
		if _, err := conn.Write(frame.AppendEmpty(nil, frame.Ping, 0)); err != nil {
			return nil, err
		}
		if err := pong(r); err != nil {
			return nil, err
		}
		if n >= m.warmPings {
			all = append(all, time.Since(began))
		}
	}
	return all, nil
}

// rates measures pieces that go one way.
func (m *measuring) rates(conn net.Conn, r *frame.Reader, way func(piece int) (padding, answer int)) (all []float64, err error) {
	for piece := m.leastPiece; len(all) < m.rounds; {
		padding, answer := way(piece)
		took, err := burst(conn, r, frame.AppendPing(nil, 0, padding, answer))
		if err != nil {
			return nil, err
		}
		if took < m.rateTime && 2*piece <= frame.MostPadding {
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
