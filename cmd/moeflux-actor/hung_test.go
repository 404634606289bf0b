package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/process"
)

// hungProgram in asProgram makes the test binary the program with a device that never ends what it
// is given, and says so on stderr.
const hungProgram = "hung"

const hungNow = "the device hangs"

func hungEnv() process.Env {
	e := process.SystemEnv(time.Now())
	e.WrapDevice = func(d gpu.Device) gpu.Device { return hungDevice{d} }
	return e
}

type hungDevice struct{ gpu.Device }

func (d hungDevice) NewQueue() (gpu.Queue, error) {
	q, err := d.Device.NewQueue()
	return &hungQueue{Queue: q}, err
}

// hungQueue works until the first step begins, and never again. It tells when that is.
type hungQueue struct {
	gpu.Queue
	hung bool
}

func (q *hungQueue) Submit(c *gpu.Commands) (gpu.Ticket, error) {
	for _, op := range c.Ops() {
		if op.Name() == "embed" && !q.hung {
			q.hung = true
			fmt.Fprintln(os.Stderr, hungNow)
		}
	}
	if q.hung {
		return hungTicket{}, nil
	}
	return q.Queue.Submit(c)
}

func (q *hungQueue) Close() error { select {} }

type hungTicket struct{}

func (hungTicket) OnDone(func(error)) {}
func (hungTicket) DeviceNS() int64    { return 0 }

// startHung starts a program and returns when its device hangs. rest gets the rest of stderr.
func startHung(t *testing.T) (cmd *exec.Cmd, rest chan string) {
	t.Helper()
	cmd = exec.Command(os.Args[0], "run", "-p", "package main", "--device", "host", "--cache-dir", sharedCache, "--log-level", "error")
	cmd.Env = append(os.Environ(), asProgram+"="+hungProgram)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() { late.Stop() })
	lines := bufio.NewReader(stderr)
	for said := ""; !strings.Contains(said, hungNow); {
		line, err := lines.ReadString('\n')
		if said += line; err != nil {
			_ = cmd.Wait()
			t.Fatalf("it ends before its device hangs: %v, %q", cmd.ProcessState, said)
		}
	}
	rest = make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(lines)
		rest <- string(all)
	}()
	return cmd, rest
}

// A signal ends a program whose device hangs, with the code of the signal, as soon as its patience
// is over.
func TestSignalsWhileHung(t *testing.T) {
	for signal, want := range map[syscall.Signal]int{syscall.SIGINT: exitInterrupted, syscall.SIGTERM: exitTerminated} {
		cmd, rest := startHung(t)
		began := time.Now()
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		said := <-rest
		_ = cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("%v: exit %d, want %d; stderr %q", signal, got, want, said)
		}
		if took := time.Since(began); took > flags.ClosePatience+5*time.Second {
			t.Errorf("%v: it ends after %v", signal, took)
		}
	}
}

// A second signal kills a program that still waits: without that it would exit with a status of its
// own in the end. One that comes before the first was handled is lost, so it is sent again.
func TestSecondSignalWhileHung(t *testing.T) {
	for _, second := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		cmd, rest := startHung(t)
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		for ended := false; !ended; {
			select {
			case <-rest:
				ended = true
			case <-time.After(flags.ClosePatience / 20):
				if err := cmd.Process.Signal(second); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait()
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != second {
			t.Errorf("Ctrl-C and %v: it ends with %v", second, cmd.ProcessState)
		}
	}
}
