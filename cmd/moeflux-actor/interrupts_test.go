package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
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
	file := ""
	for end := time.Now().Add(20 * time.Second); file == "" && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		file = flightOf(dir, "SIGUSR1")
	}
	if _, err := text.Peek(1); err != nil {
		t.Errorf("no more text: %v", err)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != exitInterrupted || file == "" || !strings.Contains(stderr.String(), file) {
		t.Fatalf("exit %d, file %q, stderr %q; want %d and a file that it names", got, file, stderr.String(), exitInterrupted)
	}
}

// flightOf returns the file of records that was written for a reason, or "". On a busy machine
// there may be others, of tokens that were slow.
func flightOf(dir, reason string) string {
	files, _ := filepath.Glob(filepath.Join(dir, "flight-*.records"))
	for _, f := range files {
		if r, err := readRecords(f); err == nil && r.Meta.Reason == reason {
			return f
		}
	}
	return ""
}

// A command that waits for stdin ends when it is interrupted.
func TestInterruptWhileReadingStdin(t *testing.T) {
	model, _ := loadE2E(t)
	for _, args := range [][]string{{"run", "--model", model, "-"}, {"tokenize", "--model", model}, {"eval", "--model", model, "--ids", "-"}} {
		r, w := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		var out, errs bytes.Buffer
		if code := run(ctx, args, r, &out, &errs, testEnv()); code != exitInterrupted || out.Len() != 0 {
			t.Errorf("%q: exit %d, stdout %q, stderr %q, want %d", args, code, out.String(), errs.String(), exitInterrupted)
		}
		w.Close() // lets the read that still waits end
	}
}
