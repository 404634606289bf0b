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

	"github.com/moeflux/moeflux-actor/internal/cgroup"
)

// child is a server that this program has started.
type child struct {
	program, model, experts string
	texts, cores            int
	memory                  int64  // the most that it may have
	soft                    bool   // it holds that itself, in place of a cgroup
	log                     string // a file; "": none

	url    string
	folder string        // of its keys
	group  *cgroup.Group // that it is in; nil if soft
	cmd    *exec.Cmd
	told   chan error // that all it says has been read
}

// enclose makes the cgroup.
func (c *child) enclose() error {
	tree, err := cgroup.FindMemory("/", os.Geteuid())
	if err != nil {
		return fmt.Errorf("%w; or give -soft", err)
	}
	if c.group, err = tree.Make(fmt.Sprintf("moeflux-serveload-%d", os.Getpid())); err != nil {
		return fmt.Errorf("%w; or give -soft", err)
	}
	if err := c.group.SetLimit(c.memory); err != nil {
		return errors.Join(err, c.group.Remove())
	}
	return nil
}

// command returns what starts the server: in its cgroup, or with a limit of Go's.
func (c *child) command(args []string) *exec.Cmd {
	env := append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(c.cores))
	var cmd *exec.Cmd
	if c.group == nil {
		cmd = exec.Command(c.program, args...)
		env = append(env, "GOMEMLIMIT="+strconv.FormatInt(c.memory*3/4, 10))
	} else {
		enter := []string{"-c", cgroup.Enter, "sh", c.group.Dir(), c.group.Dir(), c.program}
		cmd = exec.Command("sh", append(enter, args...)...)
	}
	cmd.Env = env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for this program, which then stops the server
	return cmd
}

// start starts it and waits until it listens.
func (c *child) start(keys string) (err error) {
	if _, err := os.Stat(c.program); err != nil {
		return fmt.Errorf("%w (go build -o bin/ ./cmd/moeflux-actor makes it)", err)
	}
	if c.folder, err = os.MkdirTemp("", "serveload"); err != nil {
		return err
	}
	file := filepath.Join(c.folder, "keys")
	if err := os.WriteFile(file, []byte(keys), 0o600); err != nil {
		return err
	}
	args := []string{
		"serve", "--addr", "127.0.0.1:0", "--api-key-file", file, "--threads", strconv.Itoa(c.cores), "--log-level", "info",
		"--expert-io", "buffered", "--expert-memory", c.experts, "--max-sequences", strconv.Itoa(c.texts), "--state-memory", "64MiB", "--tuned", "off",
	}
	if c.model != "" {
		args = append(args, "--model", c.model)
	}
	if !c.soft {
		if err := c.enclose(); err != nil {
			return errors.Join(err, os.RemoveAll(c.folder))
		}
	}
	c.cmd = c.command(args)
	said, err := c.cmd.StderrPipe()
	if err != nil {
		return errors.Join(err, c.clear())
	}
	if err := c.cmd.Start(); err != nil {
		return errors.Join(err, c.clear())
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
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // one that has ended is noticed below
	var errs []error
	if c.told != nil {
		errs = append(errs, <-c.told)
	}
	if err := c.cmd.Wait(); err != nil {
		errs = append(errs, fmt.Errorf("the server ended with %w", err))
	}
	return errors.Join(append(errs, c.clear())...)
}

// clear removes what was made for the server.
func (c *child) clear() error {
	err := os.RemoveAll(c.folder)
	if c.group != nil {
		err = errors.Join(err, c.group.Remove())
	}
	return err
}

// held prints what the cgroup counted. The error says that its limit killed the server.
func (c *child) held(out io.Writer) error {
	if c.group == nil {
		return nil
	}
	kills, err := c.group.Kills()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "cgroup         %.1f MiB at most, page cache included, of %.1f MiB; %d killed\n", float64(c.group.Peak())/(1<<20), float64(c.memory)/(1<<20), kills)
	if kills > 0 {
		return errors.New("the server needed more memory than its cgroup has")
	}
	return nil
}

type discard struct{ io.Writer }

func (discard) Close() error { return nil }
