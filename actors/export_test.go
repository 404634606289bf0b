package actors

import (
	"github.com/moeflux/moeflux-actor/io/fingerprint"
	"github.com/moeflux/moeflux-actor/io/readpool"
	"github.com/moeflux/moeflux-actor/stages"
)

// WrapCores makes an engine opened with cfg run what wrap makes of each stage.
func WrapCores(cfg *Config, wrap func(stages.StageID, stages.Core) stages.Core) { cfg.wrapCore = wrap }

// WithReads returns cfg with expert reads from what wrap makes of their source.
func WithReads(cfg Config, wrap func(readpool.Source) readpool.Source) Config {
	cfg.wrapReads = wrap
	return cfg
}

// WithTransitShare returns cfg with another bound of the memory for experts in transit.
func WithTransitShare(cfg Config, share int) Config {
	cfg.transitShare = share
	return cfg
}

// WithWindowPages returns cfg with as many pages for layers with a window.
func WithWindowPages(cfg Config, pages int) Config {
	cfg.windowPages = pages
	return cfg
}

// BeforeFingerprint makes an engine call f before it reads files for a fingerprint.
func BeforeFingerprint(e *Engine, f func()) {
	for _, of := range []*func() (fingerprint.Fingerprint, error){&e.identity.own, &e.identity.former} {
		read := *of
		*of = func() (fingerprint.Fingerprint, error) {
			f()
			return read()
		}
	}
}

// SealAsFormer makes an engine seal its states as earlier versions did.
func SealAsFormer(e *Engine) { e.identity.own = e.identity.former }

// BeforeProfile makes an engine call f before it writes the profile of the use of experts.
func BeforeProfile(e *Engine, f func()) {
	update := e.profile.update
	e.profile.update = func(path string, of fingerprint.Fingerprint, layers, experts int, rows int64, uses []int64) error {
		f()
		return update(path, of, layers, experts, rows, uses)
	}
}

// Divide cuts layers into a run for each memory, as an engine does.
func Divide(bytes, memory []int64) (stages.Borders, error) { return divide(bytes, memory) }
