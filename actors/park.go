package actors

import (
	"context"

	"github.com/moeflux/moeflux-actor/actors/parking"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/dispatch"
)

// Park moves the sequence's state out of the memory for states (Config.StateMemory), to host memory
// (Config.ParkedMemory) or to a file (Config.StateDir), for a text that will rest for a while. The
// sequence stays what it is: whatever needs its state has it brought back first, with the same
// bits. Checkpoints stay where they are. If there is no room the error is a *stages.ParkFullError,
// or what the file system says, and the state stays; if something needs the state meanwhile it is
// stages.ErrBusy. A state that cannot be read again leaves the sequence poisoned, with a
// *stages.ParkedError.
func (s *Sequence) Park(ctx context.Context) error {
	_, err := s.change(ctx, func(to stages.Caller) stages.Message { return &stages.ParkSequence{Seq: s.id, Caller: to} })
	return err
}

// openParking opens the store of parked states.
func (e *Engine) openParking(ctx context.Context, cfg Config) (err error) {
	e.parking, err = parking.Open(ctx, parking.Config{
		Shape: dispatch.PackedShape(e.model, cfg.kv()), Memory: cfg.ParkedMemory, Dir: cfg.StateDir, Log: e.log,
		Image: func(memory any) parking.Image {
			r := e.rowsOf(context.Background(), &stages.StateReady{Memory: memory})
			r.image.Packed = true
			return r
		},
		Answer: func(m stages.Message) { e.rt.Send(stages.Sequencer, m) },
	})
	return err
}
