package testenv

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// ProcessorTime returns the time that a processor spends on f. Unlike the time that passes, other
// work on the machine hardly changes it. What f leaves to other goroutines is not counted.
func ProcessorTime(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := ThreadTime()
	f()
	return ThreadTime() - begin
}

// ThreadTime returns the processor time that this thread has used. Its goroutine must be locked to
// the thread for two of them to have a meaning together.
func ThreadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}
