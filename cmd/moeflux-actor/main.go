// Command moeflux-actor runs Mixture-of-Experts language models whose experts stay on disk.
//
// Results go to stdout, progress and logs to stderr. It exits with 0 on success, 1 on a failure, 2
// on bad usage, 130 after Ctrl-C and 143 after SIGTERM. A reader that closes stdout early ends it
// quietly, with 0.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/moeflux/moeflux-actor/internal/process"
)

func main() { os.Exit(runProcess(process.SystemEnv(time.Now()))) }

// runProcess runs the program in the process's own streams and signals.
func runProcess(e process.Env) int {
	// Without this a write to a closed pipe would kill the process before it can clean up.
	signal.Ignore(syscall.SIGPIPE)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx := process.WatchSignals(context.Background(), e.Interrupts, signals)
	return run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, e)
}
