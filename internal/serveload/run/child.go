package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// child is a server that this program has started.
type child struct {
	program, model, experts string
	texts, cores            int
	memory                  int64  // GOMEMLIMIT
	log                     string // a file; "": none

	url    string
	folder string // of its keys
	cmd    *exec.Cmd
	told   chan error // that all it says has been read
}

// start starts it and waits until it listens.
func (c *child) start(keys string) (err error) {
	if c.folder, err = os.MkdirTemp("", "serveload"); err != nil {
		return err
	}
	file := filepath.Join(c.folder, "keys")
	if err := os.WriteFile(file, []byte(keys), 0o600); err != nil {
		return err
	}
	cores := strconv.Itoa(c.cores)
	args := []string{
		"serve", "--addr", "127.0.0.1:0", "--api-key-file", file, "--threads", cores, "--log-level", "info",
		"--expert-io", "buffered", "--expert-memory", c.experts, "--max-sequences", strconv.Itoa(c.texts), "--state-memory", "64MiB", "--tuned", "off",
	}
	if c.model != "" {
		args = append(args, "--model", c.model)
	}
	c.cmd = exec.Command(c.program, args...)
	c.cmd.Env = append(os.Environ(), "GOMAXPROCS="+cores, "GOMEMLIMIT="+strconv.FormatInt(c.memory, 10))
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for this program, which then stops the server
	said, err := c.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := c.cmd.Start(); err != nil {
		_ = os.RemoveAll(c.folder)
		return fmt.Errorf("%w (go build -o bin/ ./cmd/moeflux-actor makes it)", err)
	}
	return c.listen(bufio.NewReader(said))
}

// listen waits until the server says where it listens, and has the rest of what it says written
// down.
func (c *child) listen(said *bufio.Reader) error {
	to := io.WriteCloser(discard{io.Discard})
	if c.log != "" {
		f, err := os.Create(c.log)
		if err != nil {
			return errors.Join(err, c.stop())
		}
		to = f
	}
	all := ""
	for c.url == "" {
		line, err := said.ReadString('\n')
		if all += line; err != nil {
			return errors.Join(fmt.Errorf("the server did not start; it said\n%s", all), c.stop())
		}
		if _, url, ok := strings.Cut(strings.TrimSpace(line), "listening on "); ok {
			c.url = url
		}
	}
	c.told = make(chan error, 1)
	go func() {
		_, err := io.Copy(to, said)
		_, _ = io.Copy(io.Discard, said) // a server that nobody hears would stand still
		c.told <- errors.Join(err, to.Close())
	}()
	return nil
}

// stop tells the server to stop, and returns an error unless it drains and exits with 0.
func (c *child) stop() error {
	defer os.RemoveAll(c.folder)
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // one that has ended is noticed below
	var errs []error
	if c.told != nil {
		errs = append(errs, <-c.told)
	}
	if err := c.cmd.Wait(); err != nil {
		errs = append(errs, fmt.Errorf("the server ended with %w", err))
	}
	return errors.Join(errs...)
}

type discard struct{ io.Writer }

func (discard) Close() error { return nil }
