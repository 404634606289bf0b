package netdelay

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// sleeper is a thread that the kernel wakes up on time. It belongs to one goroutine.
type sleeper struct{}

// newSleeper takes the goroutine's thread for it, and asks the kernel not to bundle its timers with
// others, which makes them 50 µs late. Where the kernel refuses, they are.
func newSleeper() sleeper {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	return sleeper{}
}

// end gives the thread up: it ends with the goroutine, which never unlocks it.
func (sleeper) end() {}

// until returns at a time, or at once if that has passed.
func (sleeper) until(t time.Time) {
	for left := time.Until(t); left > 0; left = time.Until(t) {
		ts := unix.NsecToTimespec(int64(left))
		_ = unix.Nanosleep(&ts, nil) // a signal may end it early
	}
}
