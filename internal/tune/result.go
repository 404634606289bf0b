package tune

import (
	"fmt"
	"math"
	"slices"

	"github.com/moeflux/moeflux-actor/internal/bench"
	"github.com/moeflux/moeflux-actor/internal/tuned"
)

// Result is what tune found out.
type Result struct {
	Model   string  `json:"model"` // the directory
	Texts   Texts   `json:"texts"`
	Seconds Seconds `json:"seconds"`
	Replay  Replay  `json:"replay"`
	Findings
	Interrupted bool `json:"interrupted"`
	Kept        Kept `json:"kept"`
	// Command is what to run with.
	Command string `json:"command"`
}

// Texts are what each run reads and writes.
type Texts struct {
	Prompts      string `json:"prompts"` // chain for a model of synth, else random
	PromptTokens int    `json:"prompt_tokens"`
	GenTokens    int    `json:"gen_tokens"`
	WarmupTokens int    `json:"warmup_tokens"` // decoded before
}

// Seconds is how long tune took.
type Seconds struct {
	Given float64 `json:"given"`
	Took  float64 `json:"took"`
}

// Replay is what was predicted from a recorded run.
type Replay struct {
	Settings int     `json:"settings"` // that were predicted
	Error    float64 `json:"error"`    // of the replay of the defaults, as a share
	Why      string  `json:"why"`      // nothing was predicted; "" if something was
}

// Findings is what measuring came to.
type Findings struct {
	Rounds     int          `json:"rounds"`   // in which candidates and defaults ran
	Defaults   *Candidate   `json:"defaults"` // the engine without any of the settings
	Candidates []*Candidate `json:"candidates"`
	Tested     *Candidate   `json:"tested"` // the one that ran in pairs with the defaults; null: none
	// of these pairs; null if there were none, or too few, or tokens differed
	Verdict *bench.SweepVerdict `json:"verdict"`
	// Needed is how many seconds would have been enough; 0: there were enough.
	Needed float64 `json:"seconds_needed"`
}

func noFindings() Findings {
	return Findings{Defaults: &Candidate{Seconds: []float64{}}, Candidates: []*Candidate{}}
}

// Candidate is settings that may be faster.
type Candidate struct {
	tuned.Settings `json:"settings"`
	Predicted      *float64  `json:"predicted_saving"` // of the time, as a share; null: not predicted
	Seconds        []float64 `json:"seconds"`          // of each round; none if it did not run
	// OtherTokens says that it made other tokens than the defaults, which no setting may.
	OtherTokens bool `json:"other_tokens"`
}

// Kept is what became of the file of tuned settings.
type Kept struct {
	Path    string `json:"path"`
	Saved   bool   `json:"saved"`   // Chosen is in the file
	Removed bool   `json:"removed"` // earlier settings are removed
}

// Chosen returns the settings that are faster than the defaults; none if that is not certain.
func (f *Findings) Chosen() tuned.Settings {
	if f.Verdict != nil && f.Verdict.Significant {
		return f.Tested.Settings
	}
	return tuned.Settings{}
}

// TooShortError reports that there was too little time to compare anything.
type TooShortError struct{ Given, Needed float64 } // seconds

func (e *TooShortError) Error() string {
	enough := max(math.Ceil(e.Needed), math.Floor(e.Given)+1)
	return fmt.Sprintf("%.0f s are too few to compare anything on this machine, "+
		"about %.0f s are needed; nothing is saved, and what was kept before stays", e.Given, enough)
}

// Err returns a *TooShortError if there was too little time.
func (r *Result) Err() error {
	if r.Needed == 0 || r.Interrupted {
		return nil
	}
	return &TooShortError{Given: r.Seconds.Given, Needed: r.Needed}
}

// Final reports whether the search came to an end, so that what it found holds.
func (r *Result) Final() bool {
	return !r.Interrupted && r.Needed == 0 && !slices.ContainsFunc(r.Candidates, func(c *Candidate) bool { return c.OtherTokens })
}
