package dispatch

import "github.com/moeflux/moeflux-actor/gpu"

// both is the completion of commands that build on others which nobody awaits: it is done when both are, and failed when
// either is.
type both struct{ first, last gpu.Ticket }

var _ gpu.Ticket = both{}

// OnDone calls f with the earlier of the errors.
func (t both) OnDone(f func(error)) {
	t.first.OnDone(func(first error) {
		t.last.OnDone(func(last error) {
			if first != nil {
				last = first
			}
			f(last)
		})
	})
}

// DeviceNS returns the time of the later commands.
func (t both) DeviceNS() int64 { return t.last.DeviceNS() }
