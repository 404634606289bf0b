package actors

import (
	"time"

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

// SetSpanPatience sets how long Close waits for span processors.
func SetSpanPatience(cfg *Config, d time.Duration) { cfg.spanPatience = d }

// SetRingRecords sets the fixed capacity of the stages' rings of records; 0 is the usual one.
func SetRingRecords(cfg *Config, n int) { cfg.ringRecords = n }
