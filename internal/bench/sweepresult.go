package bench

import (
	"cmp"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/internal/figures"
	"github.com/moeflux/moeflux-actor/internal/signedrank"
)

// How pairs are judged.
const (
	SweepLevel = 0.05 // of significance
	SweepTest  = "Wilcoxon signed-rank, one-sided, 5 %"
)

// SweepResult is what Sweep measured.
type SweepResult struct {
	Model        string `json:"model"` // directory, for the caller to fill in
	Prompts      string `json:"prompts"`
	PromptTokens int    `json:"prompt_tokens"`
	GenTokens    int    `json:"gen_tokens"`
	Sequences    int    `json:"sequences"`
	WarmupTokens int    `json:"warmup_tokens"`
	Repeat       int    `json:"repeat"`
	MemoryLimit  int64  `json:"memory_limit"` // of the cgroup, in bytes, likewise; 0 for none
	Interrupted  bool   `json:"interrupted"`
	// that ran at least once, the least median time first; the defaults alone if nothing else had
	// another plan
	Settings []*SweepSetting `json:"settings"`
	// null if nothing could beat the defaults, or if it was interrupted
	Verdict *SweepVerdict `json:"verdict"`
	Best    string        `json:"best_command"` // what to run with, likewise for the caller
}

// SweepSetting is one plan.
type SweepSetting struct {
	Flags    Flags `json:"flags"`    // by name, without dashes
	Defaults bool  `json:"defaults"` // what the engine does without these flags
	// flags of combinations that come to the same plan, and were not raced
	Same    []Flags        `json:"same"`
	Slots   int            `json:"slots"`
	Seconds figures.Spread `json:"seconds"` // of a prompt and its text
	Prefill Summary        `json:"prefill"`
	Decode  Summary        `json:"decode"`
	Runs    []Run          `json:"runs"`

	Args   []string `json:"-"` // name=value, in the order of the axes
	Mapped bool     `json:"-"` // its experts are
}

// Name is the flags of a setting.
func (s *SweepSetting) Name() string {
	if s.Defaults {
		return "the defaults"
	}
	return strings.Join(s.Args, " ")
}

// SweepVerdict compares the setting of the least median time with the defaults.
type SweepVerdict struct {
	Test  string      `json:"test"`
	Pairs []SweepPair `json:"pairs"`
	// median of the pairs' time saved, as a share of the defaults' time
	Gain        float64 `json:"gain"`
	P           float64 `json:"p"`
	Significant bool    `json:"significant"`
}

// SweepPair is the seconds that a prompt and its text took, one run after the other.
type SweepPair struct {
	Candidate float64 `json:"candidate_seconds"`
	Defaults  float64 `json:"defaults_seconds"`
}

// Judge tests whether the candidate is faster.
func (v *SweepVerdict) Judge() (err error) {
	var differences, gains []float64
	for _, p := range v.Pairs {
		differences = append(differences, p.Candidate-p.Defaults)
		gains = append(gains, (p.Defaults-p.Candidate)/max(p.Defaults, 1e-9))
	}
	v.Gain = figures.SpreadOf(gains).Median
	v.P, err = signedrank.Less(differences)
	v.Significant = err == nil && v.P <= SweepLevel
	return err
}

// Rank sums up the settings that ran and puts the least median time first.
func (r *SweepResult) Rank(settings []*SweepSetting) {
	r.Settings = nil
	for _, s := range settings {
		if len(s.Runs) == 0 {
			continue
		}
		var seconds []float64
		for i := range s.Runs {
			seconds = append(seconds, s.Runs[i].seconds())
		}
		s.Seconds = figures.SpreadOf(seconds)
		s.Prefill, s.Decode = summarise(s.Runs, nil)
		r.Settings = append(r.Settings, s)
	}
	slices.SortStableFunc(r.Settings, func(a, b *SweepSetting) int { return cmp.Compare(a.Seconds.Median, b.Seconds.Median) })
}

// Chosen returns the flags to run with, as name=value: those of the best setting if it is faster
// than the defaults, else none.
func (r *SweepResult) Chosen() []string {
	if r.Verdict != nil && r.Verdict.Significant {
		return r.Settings[0].Args
	}
	return nil
}
