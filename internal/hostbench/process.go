package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"syscall"
)

// host is an expert host.
type host struct {
	cmd  *exec.Cmd
	addr string
}

var listening = regexp.MustCompile(`listening on (\S+)`)

// startHosts starts hosts, each of which has all experts in memory.
func startHosts(ctx context.Context, o *options) (all []*host, err error) {
	for range o.hosts {
		h := &host{cmd: exec.CommandContext(ctx, o.program, "host", o.model, "--addr", "127.0.0.1:0", "--device", "host", "--threads", strconv.Itoa(o.threads))}
		said, err := h.cmd.StderrPipe()
		if err != nil {
			return all, err
		}
		if err := h.cmd.Start(); err != nil {
			return all, err
		}
		all = append(all, h)
		lines := bufio.NewScanner(said)
		for h.addr == "" && lines.Scan() {
			if m := listening.FindStringSubmatch(lines.Text()); m != nil {
				h.addr = m[1]
			}
		}
		if h.addr == "" {
			return all, errors.New("a host did not start; try it by hand: " + h.cmd.String())
		}
		go io.Copy(io.Discard, said)
	}
	return all, nil
}

func stop(all []*host) {
	for _, h := range all {
		_ = h.cmd.Process.Signal(syscall.SIGTERM)
		_ = h.cmd.Wait()
	}
}

// engineMemory is what an engine gets for experts: some twelve of a model of hidden 2,048.
const engineMemory = "32MB"

// decode has an engine decode tokens, and records it.
func decode(ctx context.Context, o *options, hosts []string, file string) error {
	if err := os.RemoveAll(file); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, o.program, "bench", "--model", o.model, "--device", "host", "--threads", strconv.Itoa(o.threads), "--prompt-tokens", "4", "--gen-tokens", strconv.Itoa(o.tokens),
		"--repeat", "1", "--warmup", "1", "--expert-io", "buffered", "--expert-memory", engineMemory, "--hosts", join(hosts), "--record", file, fmt.Sprintf("--hosts-sum=%v", o.sum))
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.Discard, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, said.String())
	}
	return nil
}

func join(hosts []string) (list string) {
	for i, h := range hosts {
		if i > 0 {
			list += ","
		}
		list += h
	}
	return list
}
