package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// endless are flags for a text of the demo model that fills a pipe before it ends.
var endless = []string{"-n", "0", "--ctx", "100000", "--ctx-beyond", "--log-level", "error", "--logit-bias", "4093=-100", "--logit-bias", "4095=-100"}

// A command that a signal ends exits as shells expect: 128 and the signal's number.
func TestExitCodesOfSignals(t *testing.T) {
	for signal, want := range map[syscall.Signal]int{syscall.SIGINT: exitInterrupted, syscall.SIGTERM: exitTerminated} {
		for _, args := range [][]string{
			{"run", "-p", "package main"},
			{"run", "-p", "package main", "--session", "s", "--session-dir", t.TempDir()},
		} {
			cmd := exec.Command(os.Args[0], slices.Concat(args, endless, []string{"--cache-dir", sharedCache})...)
			cmd.Env = append(os.Environ(), asProgram+"=1")
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := bufio.NewReader(out).ReadByte(); err != nil {
				t.Errorf("no text: %v", err)
			}
			if err := cmd.Process.Signal(signal); err != nil {
				t.Error(err)
			}
			_ = cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != want {
				t.Errorf("%s, %v: exit %d, want %d", strings.Join(args, " "), signal, got, want)
			}
		}
	}
}

// SIGUSR1 has the records written, and the command goes on.
func TestDumpSignal(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], slices.Concat([]string{"run", "-p", "package main", "--flight-dir", dir}, endless, []string{"--cache-dir", sharedCache})...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	text := bufio.NewReader(out)
	if _, err := text.ReadByte(); err != nil {
		t.Errorf("no text: %v", err)
	}
	if err := cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Error(err)
	}
	var files []string
	for end := time.Now().Add(20 * time.Second); len(files) == 0 && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		files, _ = filepath.Glob(filepath.Join(dir, "flight-*.records"))
	}
	if _, err := text.Peek(1); err != nil {
		t.Errorf("no more text: %v", err)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != exitInterrupted || len(files) != 1 {
		t.Fatalf("exit %d, files %v, stderr %q; want %d and one file", got, files, stderr.String(), exitInterrupted)
	}
	r, err := readRecords(files[0])
	if err != nil || r.Meta.Reason != "SIGUSR1" || !strings.Contains(stderr.String(), files[0]) {
		t.Errorf("%v; reason %q; stderr %q", err, r.Meta.Reason, stderr.String())
	}
}

func TestSignals(t *testing.T) {
	for _, c := range []struct {
		name    string
		signals []os.Signal
		caught  int
		cause   os.Signal // nil for none
	}{
		{"interrupts are caught", []os.Signal{os.Interrupt, os.Interrupt}, 2, nil},
		{"termination is not", []os.Signal{os.Interrupt, syscall.SIGTERM}, 1, syscall.SIGTERM},
	} {
		t.Run(c.name, func(t *testing.T) {
			i, signals, caught := &interrupts{}, make(chan os.Signal), make(chan struct{}, 9)
			ctx := watchSignals(t.Context(), i, signals)
			restore := i.catch(func() { caught <- struct{}{} })
			for _, s := range c.signals {
				signals <- s
			}
			for range c.caught {
				<-caught
			}
			restore()
			if c.cause == nil {
				if ctx.Err() != nil {
					t.Errorf("the context ended: %v", context.Cause(ctx))
				}
				c.cause = os.Interrupt
				signals <- os.Interrupt // nobody catches it any more
			}
			<-ctx.Done()
			if cause, ok := errors.AsType[signalled](context.Cause(ctx)); !ok || cause.Signal != c.cause || !errors.Is(cause, context.Canceled) {
				t.Errorf("cause %v, want %v", context.Cause(ctx), c.cause)
			}
		})
	}
}

// Handlers nest.
func TestInterrupts(t *testing.T) {
	i, got := &interrupts{}, ""
	outer := i.catch(func() { got += "outer " })
	inner := i.catch(func() { got += "inner " })
	i.deliver()
	inner()
	i.deliver()
	outer()
	if i.deliver() || got != "inner outer " {
		t.Errorf("handlers were called %q", got)
	}
}
