package main

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// load is what processors have done since the machine began, in seconds.
type load struct{ all, busy, own float64 }

// loadNow returns the load until now; zero where the system does not tell.
func loadNow() (l load) {
	text, err := os.ReadFile("/proc/stat")
	var used syscall.Rusage
	if err != nil || syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return l
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	const ticks = 100 // a second, on every Linux
	for i, f := range bytes.Fields(line)[1:] {
		n, _ := strconv.ParseFloat(string(f), 64)
		if i > 7 { // of guests, counted before
			break
		}
		l.all += n / ticks
		if i != 3 && i != 4 { // idle, and waiting for a disk
			l.busy += n / ticks
		}
	}
	l.own = time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
	return l
}

// others returns the share of the processors that other programs have used since.
func (l load) others() float64 {
	now := loadNow()
	if now.all <= l.all {
		return 0
	}
	return (now.busy - l.busy - now.own + l.own) / (now.all - l.all)
}
