package stagetest_test

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/snapshot"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/dispatch"
)

var errStore = errors.New("the parking store is broken")

// parkedStates is a parking store.
type parkedStates map[stages.ParkID][]byte

// do does what the sequencer asks for.
func (s parkedStates) do(m *model.Config, p stages.Park) error {
	raw, there := s[p.ID]
	if there == (p.Do == stages.ParkWrite) {
		return fmt.Errorf("parked state %d: operation %d, it is there: %v", p.ID, p.Do, there)
	}
	switch p.Do {
	case stages.ParkWrite:
		var b bytes.Buffer
		_, err := snapshot.Write(&b, snapshot.ShapeOf(m), p.Memory.(*dispatch.Image), snapshot.WriteOptions{Positions: len(p.Tokens)})
		s[p.ID] = b.Bytes()
		return err
	case stages.ParkRead:
		f, err := snapshot.Open(bytes.NewReader(raw), int64(len(raw)), snapshot.ShapeOf(m), snapshot.ReadOptions{Accept: snapshot.Plain})
		if err == nil && f.Positions() != len(p.Tokens) {
			err = fmt.Errorf("parked state %d has %d positions, want %d", p.ID, f.Positions(), len(p.Tokens))
		}
		if err != nil {
			return err
		}
		return f.Fill(p.Memory.(*dispatch.Image))
	}
	delete(s, p.ID)
	return nil
}

// park has a sequence parked, as an engine does that needs memory.
func (x *editors) park(id stages.SeqID) {
	x.counts["park"]++
	x.Post(&stages.ParkSequence{Seq: id, Caller: "keeper"})
}

// keeper counts what became of that.
func (x *editors) keeper(d *stages.SequenceDone) error {
	switch {
	case d.Err == nil:
		x.counts["parked"]++
	case errors.Is(d.Err, stages.ErrBusy):
		x.counts["busy when it was to be parked"]++
	case errors.Is(d.Err, errStore):
		x.counts["parking that failed"]++
	case errors.Is(d.Err, stages.ErrUnknownSequence) || errors.Is(d.Err, stages.ErrClosed) || d.Poison != nil:
	default:
		return fmt.Errorf("parking: %w", d.Err)
	}
	return nil
}
