package expertio

import "github.com/moeflux/moeflux-actor/tracing/record"

// Level tells how many slots there are, how many of them have an expert or are being read into, and
// what is being read.
func (c *Core) Level(l *record.Level) {
	l.Slots, l.SlotsUsed = int32(c.slots.live()), int32(c.slots.live()-c.slots.vacant())
	l.ReadBytes = int64(c.reading.all()) * int64(c.cfg.ExpertBytes)
}
