package whatif

import (
	"fmt"
	"math"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// Trusted is how far the replay of the recorded settings may be from what was measured, as a share,
// for predictions to be made at all.
const Trusted = 0.05

// Replayer replays one recording with one setting after the other. It is for one goroutine.
type Replayer struct {
	rec      *record.Recording
	o        *observed
	measured Result
	replayed Result
	unknown  []string
}

// Prediction is what settings would have made of a run.
type Prediction struct {
	Settings Settings `json:"settings"`
	Measured Result   `json:"measured"` // the recorded run
	Replayed Result   `json:"replayed"` // the replay of its own settings
	Changed  Result   `json:"changed"`  // the replay of the settings
	// DecodeRate is the prediction: what the recorded run did, times what the settings changed
	// between the replays. PromptRate likewise.
	DecodeRate float64 `json:"decode_tokens_per_s"`
	PromptRate float64 `json:"prompt_tokens_per_s"`
	// Error is how far the replay of the recorded settings is from what was measured, as a share.
	Error   float64  `json:"error"`
	Unknown []string `json:"unknown,omitempty"` // what the recording does not tell
	// Unchecked is what the recording or the settings have that predictions have not been compared
	// with an engine for.
	Unchecked []string `json:"unchecked,omitempty"`
}

// New reads a recording and replays it as it was.
func New(rec *record.Recording) (*Replayer, error) {
	if err := usable(rec); err != nil {
		return nil, err
	}
	r := &Replayer{rec: rec, o: observe(rec)}
	s := newScript(rec, r.o.steps)
	if len(s.asks) == 0 {
		return nil, &UnknownError{Why: "the recording has no request that was answered"}
	}
	r.measured = measured(rec, s)
	var err error
	if r.replayed, err = r.replay(Settings{}); err != nil {
		return nil, err
	}
	r.unknown = unknowns(rec)
	return r, nil
}

// usable reports a recording that cannot be replayed.
func usable(rec *record.Recording) error {
	m := &rec.Meta
	switch {
	case m.Machine.Resident:
		return &UnknownError{Why: "all experts were in memory and the device routed by itself; there is nothing to replay"}
	case m.Engine.Slots == 0 || m.Model.Layers == 0 || m.Model.Layers != len(m.Model.Routed):
		return &UnknownError{Why: "the recording does not say how the engine was set up"}
	case len(rec.Answers) > 0:
		return &UnknownError{Why: "expert hosts computed some of the experts, and the replay has no hosts"}
	case len(rec.Steps) == 0 || len(rec.Uses) == 0 || len(rec.Submissions) == 0:
		return &UnknownError{Why: "the recording has no steps with experts and device times"}
	}
	for _, table := range []string{"steps", "segments", "uses", "picks", "reads", "submissions", "requests"} {
		if n := rec.Forgotten[table]; n > 0 {
			return &UnknownError{Why: fmt.Sprintf("the recording begins amid the run: %d %s are missing, and so is what was in memory; record the whole run with --record FILE", n, table)}
		}
	}
	return nil
}

// unknowns names what the recording does not tell, and what is taken in its place.
func unknowns(rec *record.Recording) (u []string) {
	if rec.Meta.Engine.Profile {
		u = append(u, "how often earlier runs used experts (a profile): the replay knows only which of them were read at the start, and in which order")
	}
	if rec.Cut {
		u = append(u, "how the run ended: the file was cut")
	}
	return u
}

// Measured returns what the recorded run came to, Replayed what the replay of its settings did.
func (r *Replayer) Measured() Result { return r.measured }
func (r *Replayer) Replayed() Result { return r.replayed }

// Error returns how far the replay of the recorded settings is from what was measured, as a share:
// of decoding, or of reading prompts if nothing was decoded.
func (r *Replayer) Error() float64 {
	was, is := r.measured.DecodeRate, r.replayed.DecodeRate
	if was == 0 {
		was, is = r.measured.PromptRate, r.replayed.PromptRate
	}
	if was == 0 {
		return math.Inf(1)
	}
	return math.Abs(is/was - 1)
}

// replay runs once.
func (r *Replayer) replay(s Settings) (Result, error) {
	set, err := s.apply(r.rec)
	if err != nil {
		return Result{}, err
	}
	run, err := newReplay(&r.rec.Meta, set, r.o, newScript(r.rec, r.o.steps))
	if err != nil {
		return Result{}, err
	}
	if err := run.run(); err != nil {
		return Result{}, err
	}
	return run.result()
}

// Predict is Predict of a new Replayer.
func Predict(rec *record.Recording, s Settings) (*Prediction, error) {
	r, err := New(rec)
	if err != nil {
		return nil, err
	}
	return r.Predict(s)
}

// Predict replays the recording with other settings. It refuses if the replay of its own settings
// is off by more than Trusted.
func (r *Replayer) Predict(s Settings) (*Prediction, error) {
	if r.Error() > Trusted {
		return nil, &UnknownError{What: s.String(), Why: fmt.Sprintf("the replay of the recorded settings gives %.2f tokens/s where %.2f were measured, %.1f %% off; more than %.0f %% says that the replay misses something",
			r.replayed.DecodeRate, r.measured.DecodeRate, 100*r.Error(), 100*Trusted)}
	}
	p := &Prediction{Settings: s, Measured: r.measured, Replayed: r.replayed, Error: r.Error(), Unknown: r.unknown, Unchecked: unchecked(r.rec, &s)}
	var err error
	if p.Changed, err = r.replay(s); err != nil {
		return nil, err
	}
	p.DecodeRate = scale(r.measured.DecodeRate, r.replayed.DecodeRate, p.Changed.DecodeRate)
	p.PromptRate = scale(r.measured.PromptRate, r.replayed.PromptRate, p.Changed.PromptRate)
	if s.ReadWorkers > r.o.depth && s.ReadWorkers > r.rec.Meta.Engine.ReadWorkers {
		p.Unknown = append(p.Unknown[:len(p.Unknown):len(p.Unknown)], fmt.Sprintf("the disk at more than %d reads at once: its law is extended", r.o.depth))
	}
	return p, nil
}

func scale(measured, replayed, changed float64) float64 {
	if replayed == 0 {
		return changed
	}
	return measured * changed / replayed
}
