package cgroup

import (
	"bufio"
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

// Group is one cgroup.
type Group struct {
	dir     string
	version int
}

// Dir returns the group's folder.
func (g *Group) Dir() string { return g.dir }

// SetLimit sets the most memory that the group may use, including cached file pages and, where the
// kernel can, without swap. If the kernel cannot free enough memory, version 1 refuses the limit
// and version 2 kills processes.
func (g *Group) SetLimit(bytes int64) error {
	n := strconv.FormatInt(bytes, 10)
	if g.version == 2 {
		if err := g.write("memory.max", n); err != nil {
			return err
		}
		return g.writeIfThere("memory.swap.max", "0")
	}
	// The limit of memory and swap together may not be below that of memory alone, so the order
	// depends on the direction.
	err := g.write("memory.limit_in_bytes", n)
	if both := g.writeIfThere("memory.memsw.limit_in_bytes", n); both != nil || err == nil {
		return both
	}
	return g.write("memory.limit_in_bytes", n)
}

// Usage returns the memory that the group uses now, including cached file pages; 0 if unknown.
func (g *Group) Usage() int64 {
	return g.number(map[int]string{1: "memory.usage_in_bytes", 2: "memory.current"}[g.version])
}

// Peak returns the most memory that the group has used, including cached file pages; 0 if unknown.
func (g *Group) Peak() int64 {
	return g.number(map[int]string{1: "memory.max_usage_in_bytes", 2: "memory.peak"}[g.version])
}

// Kills returns how many processes of the group the kernel has killed because memory was short.
func (g *Group) Kills() (int64, error) {
	file := map[int]string{1: "memory.oom_control", 2: "memory.events"}[g.version]
	raw, err := os.ReadFile(filepath.Join(g.dir, file))
	if err != nil {
		return 0, err
	}
	for s := bufio.NewScanner(bytes.NewReader(raw)); s.Scan(); {
		if n, ok := strings.CutPrefix(s.Text(), "oom_kill "); ok {
			return strconv.ParseInt(strings.TrimSpace(n), 10, 64)
		}
	}
	return 0, fmt.Errorf("%s/%s does not count kills; the kernel is too old", g.dir, file)
}

// SetReadRate sets how fast the group may read from a disk (MAJOR:MINOR), in bytes a second. 0
// removes the limit and lets waiting reads go on.
func (g *Group) SetReadRate(disk string, bytesPerSecond int64) error {
	if g.version == 1 {
		return g.write("blkio.throttle.read_bps_device", fmt.Sprintf("%s %d", disk, bytesPerSecond))
	}
	rate := "max"
	if bytesPerSecond > 0 {
		rate = strconv.FormatInt(bytesPerSecond, 10)
	}
	return g.write("io.max", fmt.Sprintf("%s rbps=%s", disk, rate))
}

func (g *Group) number(file string) int64 {
	raw, err := os.ReadFile(filepath.Join(g.dir, file))
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (g *Group) write(file, value string) error {
	return os.WriteFile(filepath.Join(g.dir, file), []byte(value), 0)
}

// writeIfThere skips files that a kernel without swap accounting lacks.
func (g *Group) writeIfThere(file, value string) error {
	if !exists(filepath.Join(g.dir, file)) {
		return nil
	}
	return g.write(file, value)
}

// Remove deletes the group after its processes have ended. The kernel may take a moment to notice.
func (g *Group) Remove() (err error) {
	for range 50 {
		if err = os.Remove(g.dir); err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}
