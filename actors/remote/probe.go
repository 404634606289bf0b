package remote

import (
	"errors"
	"math"
	"net"
	"slices"

	"github.com/moeflux/moeflux-actor/actors/remote/frame"
)

// Probe is a question whose answer is known.
type Probe struct {
	Question *frame.Question
	Want     []float32 // as in frame.Reply, with all experts
}

// errOtherBits says that a host is of no use.
var errOtherBits = errors.New("it computes other bits than this machine; use the same version, activations and kind of device on both")

// probeAsk numbers the ask of a probe; those of expert-IO count from 1.
const probeAsk = 0

// compare has a host answer the question, and compares the bits.
func (p *Probe) compare(conn net.Conn, r *frame.Reader, hidden int) error {
	got := make([][]float32, len(p.Question.Uses))
	_, err := answer(conn, r, hidden, p.Question, func(use int32, rows []float32) { got[use] = rows })
	if err != nil {
		return err
	}
	if !slices.EqualFunc(slices.Concat(got...), p.Want, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
		return errOtherBits
	}
	return nil
}

// answer asks a host a question, and waits for the rows of all uses, which take gets. It returns
// what the host says of its time, with all that it computed.
func answer(conn net.Conn, r *frame.Reader, hidden int, q *frame.Question, take func(use int32, rows []float32)) (spent frame.Spent, err error) {
	if _, err := conn.Write(frame.AppendAsk(nil, probeAsk, hidden, q)); err != nil {
		return spent, err
	}
	var rows []int
	for i := range q.Uses {
		rows = append(rows, len(q.Uses[i].Rows))
	}
	for left := len(rows); left > 0; {
		f, err := r.Next()
		if err != nil {
			return spent, err
		}
		if f.Kind == frame.Failed {
			return spent, &RefusedError{string(f.Body)}
		}
		a, err := f.Reply(hidden, rows)
		if err != nil {
			return spent, err
		}
		r.Give() // take has the rows
		spent.Waited, spent.Read, spent.Computed = max(spent.Waited, a.Waited), max(spent.Read, a.Read), spent.Computed+a.Computed
		for _, i := range a.Uses {
			n := rows[i] * hidden
			take(i, a.Rows[:n:n])
			a.Rows = a.Rows[n:]
			left--
		}
	}
	return spent, nil
}
