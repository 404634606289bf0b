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
	if _, err := conn.Write(frame.AppendAsk(nil, probeAsk, hidden, p.Question)); err != nil {
		return err
	}
	var rows []int
	for i := range p.Question.Uses {
		rows = append(rows, len(p.Question.Uses[i].Rows))
	}
	got := make([][]float32, len(rows))
	for left := len(rows); left > 0; {
		f, err := r.Next()
		if err != nil {
			return err
		}
		if f.Kind == frame.Failed {
			return &RefusedError{string(f.Body)}
		}
		a, err := f.Reply(hidden, rows)
		if err != nil {
			return err
		}
		r.Give() // got has the rows
		for _, i := range a.Uses {
			got[i], a.Rows = a.Rows[:rows[i]*hidden], a.Rows[rows[i]*hidden:]
			left--
		}
	}
	if !slices.EqualFunc(slices.Concat(got...), p.Want, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
		return errOtherBits
	}
	return nil
}
