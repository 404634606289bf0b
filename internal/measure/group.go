package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// groups is where memory cgroups are made.
type groups struct {
	dir     string // of the hierarchy
	version int
	drop    string // the file that drops the page cache
}

// findGroups finds the hierarchy of memory cgroups below root. The error says what is missing and what to do.
func findGroups(root string, user int) (*groups, error) {
	if user != 0 {
		return nil, errors.New("memory limits and cold starts need root; run it with sudo")
	}
	g := &groups{drop: filepath.Join(root, "proc/sys/vm/drop_caches")}
	if _, err := os.Stat(g.drop); err != nil {
		return nil, fmt.Errorf("the page cache cannot be dropped, this needs Linux: %w", err)
	}
	v1, v2 := filepath.Join(root, "sys/fs/cgroup/memory"), filepath.Join(root, "sys/fs/cgroup")
	if _, err := os.Stat(filepath.Join(v1, "memory.limit_in_bytes")); err == nil {
		g.dir, g.version = v1, 1
		return g, nil
	}
	have, err := os.ReadFile(filepath.Join(v2, "cgroup.controllers"))
	if err != nil {
		return nil, errors.New("there is no memory cgroup: mount the version 1 memory controller at /sys/fs/cgroup/memory or version 2 at /sys/fs/cgroup")
	}
	if !bytes.Contains(have, []byte("memory")) {
		return nil, fmt.Errorf("%s has the controllers %q, without memory: it is switched off or belongs to version 1", v2, strings.TrimSpace(string(have)))
	}
	on, err := os.ReadFile(filepath.Join(v2, "cgroup.subtree_control"))
	if err != nil || !bytes.Contains(on, []byte("memory")) {
		if err := os.WriteFile(filepath.Join(v2, "cgroup.subtree_control"), []byte("+memory"), 0); err != nil {
			return nil, fmt.Errorf("the memory controller cannot be handed to groups below %s (inside a container the group of its own processes stands in the way): %w", v2, err)
		}
	}
	g.dir, g.version = v2, 2
	return g, nil
}

// group is one memory cgroup.
type group struct {
	dir     string
	version int
}

// make makes a group with a limit, swap included where that can be limited.
func (g *groups) make(name string, limit int64) (_ *group, err error) {
	n := &group{filepath.Join(g.dir, name), g.version}
	if err := os.Mkdir(n.dir, 0o755); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.remove())
		}
	}()
	bytes := strconv.FormatInt(limit, 10)
	if g.version == 1 {
		if err := n.write("memory.limit_in_bytes", bytes); err != nil {
			return nil, err
		}
		return n, n.writeIfThere("memory.memsw.limit_in_bytes", bytes)
	}
	if err := n.write("memory.max", bytes); err != nil {
		return nil, err
	}
	return n, n.writeIfThere("memory.swap.max", "0")
}

func (n *group) write(file, value string) error {
	return os.WriteFile(filepath.Join(n.dir, file), []byte(value), 0)
}

// writeIfThere leaves out what a kernel without accounting of swap does not have.
func (n *group) writeIfThere(file, value string) error {
	if _, err := os.Stat(filepath.Join(n.dir, file)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return n.write(file, value)
}

// peak returns the most memory that the group had, cached file pages included; 0 where the kernel does not tell.
func (n *group) peak() int64 {
	if n.version == 1 {
		return n.read("memory.max_usage_in_bytes")
	}
	return n.read("memory.peak")
}

// usage returns the memory that the group has now, cached file pages included; 0 where the kernel does not tell.
func (n *group) usage() int64 {
	if n.version == 1 {
		return n.read("memory.usage_in_bytes")
	}
	return n.read("memory.current")
}

func (n *group) read(file string) int64 {
	raw, err := os.ReadFile(filepath.Join(n.dir, file))
	if err != nil {
		return 0
	}
	v, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
	if err != nil {
		return 0
	}
	return v
}

// remove ends the group, whose processes are over. The kernel may need a moment to see that.
func (n *group) remove() (err error) {
	for range 50 {
		if err = os.Remove(n.dir); err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}

// enter is a shell's script that puts itself into the group $1 and becomes the command after that.
const enter = `echo $$ > "$1/cgroup.procs" && shift && exec "$@"`

// dropCaches makes the next start a cold one. The caller has synced.
func (g *groups) dropCaches() error {
	if err := os.WriteFile(g.drop, []byte("3"), 0); err != nil {
		return fmt.Errorf("dropping the page cache: %w", err)
	}
	return nil
}
