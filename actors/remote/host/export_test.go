package host

import "github.com/moeflux/moeflux-actor/io/readpool"

// WithReads returns cfg with expert reads from what wrap makes of their source.
func WithReads(cfg Config, wrap func(readpool.Source) readpool.Source) Config {
	cfg.wrapReads = wrap
	return cfg
}
