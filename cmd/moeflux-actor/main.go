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
)

func main() {
	start := time.Now()
	// Without this a write to a closed pipe would kill the process before it can clean up.
	signal.Ignore(syscall.SIGPIPE)
	e, signals := systemEnv(start), make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx := watchSignals(context.Background(), e.interrupts, signals)
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, e))
}
