package analyse

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// Why says where the time of tokens went, and why device and disk stood still meanwhile.
type Why struct {
	Model  string  `json:"model"`
	Tokens []Token `json:"tokens"`
	WallNS int64   `json:"wall_ns"` // of all tokens together; more than has passed if they ran side by side
	Causes []Share `json:"causes"`  // of WallNS
	Device Busy    `json:"device"`  // of several, at least one was busy, or all were idle
	// Devices is each of several devices, by the order of their layers.
	Devices []Busy `json:"devices,omitempty"`
	Disk    Busy   `json:"disk"`
	// Experts says what the tokens' steps found of the experts that they used.
	Experts Experts `json:"experts"`
	Missing Missing `json:"missing"`
	// Settings are those of the recorded run, by the names of flags.
	Settings map[string]string `json:"settings,omitempty"`
}

// Missing says which records a recording does not have.
type Missing struct {
	// Forgotten is how many records of each table the log had no room for any more.
	Forgotten map[string]uint64 `json:"forgotten,omitempty"`
	// Cut says that the file ends amid its records.
	Cut bool `json:"cut,omitempty"`
}

// Busy says when the device or the disk was at work, and why it was not.
type Busy struct {
	FromNS int64   `json:"from_ns"`
	ToNS   int64   `json:"to_ns"`
	BusyNS int64   `json:"busy_ns"`
	IdleNS int64   `json:"idle_ns"`
	Idle   []Share `json:"idle"` // of IdleNS: what the tokens under way spent that time on
}

// WhyTokens explains a recording, or, unless token is 0, one of its tokens.
func WhyTokens(rec *record.Recording, token int) (*Why, error) {
	x := newIndex(rec)
	all := x.tokens()
	if len(all) == 0 {
		return nil, fmt.Errorf("there is no answered request in these records")
	}
	w := &Why{Model: rec.Meta.Model.Name, Tokens: all, Settings: rec.Meta.Settings, Missing: Missing{rec.Forgotten, rec.Cut}}
	if token != 0 {
		one, err := tokenOf(all, token)
		if err != nil {
			return nil, err
		}
		w.Tokens = []Token{*one}
	}
	var pieces []Piece
	from, to := w.Tokens[0].FromNS, int64(0)
	steps := make(map[uint64]bool)
	for i := range w.Tokens {
		t := &w.Tokens[i]
		pieces = append(pieces, t.Pieces...)
		w.WallNS += t.WallNS
		from, to = min(from, t.FromNS), max(to, t.FromNS+t.WallNS)
		for _, s := range x.stepsOf[t.Request] {
			steps[s.Step.Step] = true
		}
	}
	w.Causes = shares(pieces)
	w.Device, w.Devices, w.Disk = x.deviceBusy(all, from, to), x.devicesBusy(all, from, to), x.diskBusy(all, from, to)
	w.Experts = x.experts(func(u *record.Use) bool { return steps[u.Step] })
	return w, nil
}

// Named returns the cause that took the most time; Unexplained if there was no time.
func (t *Token) Named() Cause {
	if len(t.Causes) == 0 {
		return Unexplained
	}
	return t.Causes[0].Cause
}

// Experts counts uses of experts by where the experts were.
type Experts struct {
	Used      int `json:"used"`
	Resident  int `json:"resident"`          // in memory
	Late      int `json:"late"`              // being read on a guess
	Shared    int `json:"shared"`            // being read for another step
	Away      int `json:"away"`              // computed by an expert host
	Far       int `json:"far"`               // read by the device in the host's memory
	Missing   int `json:"missing"`           // none of these: what follows says why they had not been read ahead
	Unguessed int `json:"missing_unguessed"` // nobody had guessed them
	Declined  int `json:"missing_declined"`  // the chance, or the time that was left, spoke against it
	Dropped   int `json:"missing_dropped"`   // no slot was spare for the guess
	Skipped   int `json:"missing_skipped"`   // guesses for the layer were paused
	Gone      int `json:"missing_gone"`      // read on a guess, and evicted before it was used
}

// experts counts the uses that are wanted.
func (x *index) experts(wanted func(*record.Use) bool) (e Experts) {
	x.expertsBy(func(u *record.Use, g *record.Guess) {
		if wanted(u) {
			e.count(u, g)
		}
	})
	return e
}

// expertsBy calls f with each use, and the guess that might have brought its expert; nil for none.
func (x *index) expertsBy(f func(*record.Use, *record.Guess)) {
	guesses := make(map[place][]*record.Guess)
	for i := range x.rec.Guesses {
		g := &x.rec.Guesses[i]
		guesses[place{g.Layer, g.Expert}] = append(guesses[place{g.Layer, g.Expert}], g)
	}
	for i := range x.rec.Uses {
		u := &x.rec.Uses[i]
		f(u, x.lastGuess(u, guesses[place{u.Layer, u.Expert}]))
	}
}

// lastGuess returns the last guess that might have brought an expert for a use: one that was made
// in the step or in the one before it.
func (x *index) lastGuess(u *record.Use, of []*record.Guess) *record.Guess {
	s := x.steps[u.Step]
	i, _ := slices.BinarySearchFunc(of, u.AtNS+1, func(g *record.Guess, t int64) int { return cmp.Compare(g.AtNS, t) })
	if i == 0 {
		return nil
	}
	if g := of[i-1]; g.Step == u.Step || s != nil && g.Step == s.before && s.before != 0 {
		return g
	}
	return nil
}

func (e *Experts) count(u *record.Use, g *record.Guess) {
	e.Used++
	switch u.Found {
	case record.Resident:
		e.Resident++
	case record.Late:
		e.Late++
	case record.Shared:
		e.Shared++
	case record.Away:
		e.Away++
	case record.Far:
		e.Far++
	default:
		e.Missing++
		switch {
		case g == nil:
			e.Unguessed++
		case g.Verdict == record.Declined:
			e.Declined++
		case g.Verdict == record.Dropped:
			e.Dropped++
		case g.Verdict == record.Skipped:
			e.Skipped++
		default:
			e.Gone++
		}
	}
}
