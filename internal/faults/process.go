package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/moeflux/moeflux-actor/internal/cgroup"
)

// process is one run of the program, in cgroups of its own.
type process struct {
	cmd        *exec.Cmd
	memory, io *cgroup.Group // the same, where one group has both controllers
	began      time.Time
	stdout     bytes.Buffer
	stderr     log
	ended      chan struct{} // closed when err is set
	err        error
}

// checked is the part of synth --check --json that matters here.
type checked struct {
	Tokens      int     `json:"tokens"`
	Differences int     `json:"differences"`
	Seconds     float64 `json:"seconds"`
}

// log is the program's output, which may be read while the program runs.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start starts the program. A limit of 0 is no limit. The caller must call close.
func (b *breaker) start(ctx context.Context, limit int64, args ...string) (*process, error) {
	b.made++
	p := &process{ended: make(chan struct{})}
	name := fmt.Sprintf("moeflux-faults-%d-%d", os.Getpid(), b.made)
	var err error
	if p.memory, err = b.memory.Make(name); err != nil {
		return nil, fmt.Errorf("a cgroup: %w", err)
	}
	p.io = p.memory
	if !b.memory.Same(b.io) {
		if p.io, err = b.io.Make(name); err != nil {
			return nil, errors.Join(fmt.Errorf("a cgroup: %w", err), p.memory.Remove())
		}
	}
	if limit > 0 {
		if err := p.memory.SetLimit(limit); err != nil {
			return nil, errors.Join(fmt.Errorf("a limit of %d bytes: %w", limit, err), p.remove())
		}
	}
	args = append([]string{"-c", cgroup.Enter, "sh", p.memory.Dir(), p.io.Dir(), b.o.program, "synth", "--check", b.o.model, "--json", "--log-level", "info"}, args...)
	p.cmd = exec.CommandContext(ctx, "/bin/sh", args...)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, io.Writer(&p.stderr)
	p.began = time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(err, p.remove())
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// close kills the process if it still runs, and removes its groups.
func (p *process) close(disk string) error {
	var err error
	if !p.over() {
		err = errors.Join(p.io.SetReadRate(disk, 0), p.cmd.Process.Kill())
		<-p.ended
	}
	return errors.Join(err, p.remove())
}

func (p *process) remove() error {
	err := p.memory.Remove()
	if p.io != p.memory {
		err = errors.Join(err, p.io.Remove())
	}
	return err
}

// over reports whether the process has ended.
func (p *process) over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// result waits for the end, and returns an error unless every token and its experts were right.
func (p *process) result(ctx context.Context) (*checked, error) {
	select {
	case <-p.ended:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if p.err != nil {
		return nil, fmt.Errorf("the program fails: %w: %s", p.err, p.last())
	}
	c := new(checked)
	if err := json.Unmarshal(p.stdout.Bytes(), c); err != nil {
		return nil, fmt.Errorf("the program prints no JSON: %w", err)
	}
	if c.Tokens == 0 || c.Differences > 0 {
		return nil, fmt.Errorf("%d of %d tokens wrong", c.Differences, c.Tokens)
	}
	return c, nil
}

// last returns the end of what the process said.
func (p *process) last() string {
	lines := strings.Split(strings.TrimSpace(p.stderr.String()), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "; ")
}

// says waits until the process has printed a text, and returns how long after began that was.
func (p *process) says(ctx context.Context, text string, within time.Duration) (time.Duration, error) {
	began := time.Now()
	for !strings.Contains(p.stderr.String(), text) {
		switch {
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		case time.Since(began) > within:
			return 0, fmt.Errorf("after %v the program has not said %q, but %q", within, text, p.last())
		}
		time.Sleep(20 * time.Millisecond)
	}
	return time.Since(began), nil
}

// read returns how many bytes the process has read from disks.
func (p *process) read() (int64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if n, ok := strings.CutPrefix(line, "read_bytes: "); ok {
			return strconv.ParseInt(strings.TrimSpace(n), 10, 64)
		}
	}
	return 0, errors.New("/proc/PID/io does not tell what was read; the kernel does not account for it")
}
