//go:build !linux

package netdelay

import "time"

// sleeper sleeps by the runtime's timers, which may be late.
type sleeper struct{}

func newSleeper() sleeper { return sleeper{} }

func (sleeper) end() {}

// until returns at a time, or at once if that has passed.
func (sleeper) until(t time.Time) { time.Sleep(time.Until(t)) }
