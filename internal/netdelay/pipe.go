package netdelay

import (
	"net"
	"slices"
	"time"
)

const (
	// pieceBytes is the most that is handed on at once. The first byte of a piece waits for the
	// last one, so large pieces make a slow link slower.
	pieceBytes = 16 << 10
	// pieces bounds what is under way in one direction, as a window does.
	pieces = 1024
)

// piece is bytes and the moment at which they arrive at the other end.
type piece struct {
	bytes []byte
	due   time.Time
}

// pipe is one direction of a connection.
type pipe struct {
	link Link
	free time.Time // when the link has sent all that came
	ch   chan piece
	gone chan struct{} // closed when nobody takes anything any more
}

func newPipe(link Link) *pipe {
	return &pipe{link: link, ch: make(chan piece, pieces), gone: make(chan struct{})}
}

// due returns when n bytes that came at a time arrive, if nothing else is done in between.
func (p *pipe) due(came time.Time, n int) time.Time {
	if p.free.Before(came) {
		p.free = came
	}
	if p.link.Rate > 0 {
		p.free = p.free.Add(time.Duration(int64(n) * 8 * int64(time.Second) / p.link.Rate))
	}
	return p.free.Add(p.link.Delay)
}

// collect takes what comes until there is no more.
func (p *pipe) collect(from net.Conn) {
	defer close(p.ch)
	for {
		b := make([]byte, pieceBytes)
		n, err := from.Read(b)
		if n > 0 {
			select {
			case p.ch <- piece{b[:n], p.due(time.Now(), n)}:
			case <-p.gone:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// deliver hands on what came, when it is due.
func (p *pipe) deliver(to net.Conn) {
	defer close(p.gone)
	s := newSleeper()
	defer s.end()
	for next := range p.ch {
		s.until(next.due)
		if _, err := to.Write(next.bytes); err != nil {
			return
		}
	}
}

// middle returns the median.
func middle(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
