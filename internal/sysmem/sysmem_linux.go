package sysmem

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Monitor reads the figures repeatedly without allocating. It opens the files once: it sees limits
// that change, but keeps to the old cgroup if the process moves to another. Only one goroutine at a
// time may use it.
type Monitor struct {
	buf      [16 << 10]byte
	meminfo  *os.File
	pressure *os.File // nil if the kernel does not measure it
	groups   []group
}

// group is the memory cgroup of this process, or an ancestor.
type group struct {
	limits   []*os.File // "max" in a file of v2 is no limit
	usage    *os.File
	stat     *os.File
	inactive string // the keys of page cache in stat
	active   string
}

// NewMonitor opens the files. Close closes them.
func NewMonitor() (*Monitor, error) { return newMonitor("/") }

func newMonitor(root string) (*Monitor, error) {
	m := &Monitor{}
	var err error
	if m.meminfo, err = os.Open(filepath.Join(root, "proc/meminfo")); err != nil {
		return nil, fmt.Errorf("sysmem: %w", err)
	}
	m.openGroups(root)
	if m.pressure == nil {
		m.pressure, _ = os.Open(filepath.Join(root, "proc/pressure/memory"))
	}
	return m, nil
}

// openGroups opens the files of this process's memory cgroups, if there are any.
func (m *Monitor) openGroups(root string) {
	names, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return
	}
	for line := range strings.Lines(string(names)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		var dir string
		var open func(at string) group
		switch {
		case parts[0] == "0":
			dir, open = "sys/fs/cgroup", m.openV2
		case strings.Contains(","+parts[1]+",", ",memory,"):
			dir, open = "sys/fs/cgroup/memory", openV1
		default:
			continue
		}
		// The limits of all ancestors apply. Inside a container the group's own folder may be the
		// mount's root.
		top := filepath.Join(root, dir)
		for at := filepath.Join(top, parts[2]); len(at) >= len(top); at = filepath.Dir(at) {
			if g := open(at); len(g.limits) > 0 && g.usage != nil && g.stat != nil {
				m.groups = append(m.groups, g)
			} else {
				g.close()
			}
		}
	}
}

// openV2 opens a group of the unified hierarchy. Pressure comes from the lowest one that measures
// it.
func (m *Monitor) openV2(at string) group {
	if m.pressure == nil {
		m.pressure, _ = os.Open(filepath.Join(at, "memory.pressure"))
	}
	return openGroup(at, "memory.current", "inactive_file", "active_file", "memory.max", "memory.high")
}

func openV1(at string) group {
	return openGroup(at, "memory.usage_in_bytes", "total_inactive_file", "total_active_file", "memory.limit_in_bytes")
}

func openGroup(at, usage, inactive, active string, limits ...string) group {
	g := group{inactive: inactive, active: active}
	for _, name := range limits {
		if f, err := os.Open(filepath.Join(at, name)); err == nil {
			g.limits = append(g.limits, f)
		}
	}
	g.usage, _ = os.Open(filepath.Join(at, usage))
	g.stat, _ = os.Open(filepath.Join(at, "memory.stat"))
	return g
}

func (g *group) close() {
	for _, f := range append(g.limits, g.usage, g.stat) {
		f.Close() // a nil file refuses
	}
}

// Close closes the files.
func (m *Monitor) Close() {
	m.meminfo.Close()
	m.pressure.Close()
	for i := range m.groups {
		m.groups[i].close()
	}
}

// Read returns the present figures.
func (m *Monitor) Read() (Info, error) {
	raw, err := m.read(m.meminfo)
	if err != nil {
		return Info{}, err
	}
	total, tok := field(raw, "MemTotal:")
	available, aok := field(raw, "MemAvailable:")
	if !tok || !aok || total == 0 {
		return Info{}, errors.New("sysmem: /proc/meminfo lacks MemTotal or MemAvailable")
	}
	info := Info{Total: total << 10, Available: available << 10}
	for i := range m.groups {
		if err := m.readGroup(&m.groups[i], &info); err != nil {
			return Info{}, err
		}
	}
	if m.pressure != nil {
		// the file may exist although the kernel does not measure
		if raw, err := m.read(m.pressure); err == nil {
			info.Stalled = stalled(raw)
		}
	}
	return info, nil
}

// readGroup lowers the figures to what a group allows. Page cache counts as free even if it is in
// use: the caller knows which of its own files it needs.
func (m *Monitor) readGroup(g *group, info *Info) error {
	limit, limited := int64(0), false
	for _, f := range g.limits {
		raw, err := m.read(f)
		if err != nil {
			return err
		}
		if n, ok := number(raw); ok && (!limited || n < limit) {
			limit, limited = n, true
		}
	}
	if !limited {
		return nil
	}
	raw, err := m.read(g.usage)
	if err != nil {
		return err
	}
	used, _ := number(raw)
	if raw, err = m.read(g.stat); err != nil {
		return err
	}
	inactive, _ := field(raw, g.inactive)
	active, _ := field(raw, g.active)
	info.Total = min(info.Total, limit)
	info.Available = min(info.Available, max(limit-max(used-inactive-active, 0), 0))
	return nil
}

// read returns a file's content, in memory that the next read reuses.
func (m *Monitor) read(f *os.File) ([]byte, error) {
	n, err := f.ReadAt(m.buf[:], 0)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("sysmem: %w", err)
	}
	return m.buf[:n], nil
}

// field returns the number after a key at the beginning of a line.
func field(raw []byte, key string) (int64, bool) {
	for len(raw) > 0 {
		line := raw
		if i := bytes.IndexByte(raw, '\n'); i >= 0 {
			line, raw = raw[:i], raw[i+1:]
		} else {
			raw = nil
		}
		if len(line) > len(key) && string(line[:len(key)]) == key && line[len(key)] == ' ' {
			return number(line[len(key):])
		}
	}
	return 0, false
}

// number returns the decimal number that the bytes begin with, after spaces.
func number(raw []byte) (int64, bool) {
	i := 0
	for i < len(raw) && raw[i] == ' ' {
		i++
	}
	n, digits := int64(0), 0
	for ; i < len(raw) && raw[i] >= '0' && raw[i] <= '9' && digits < 19; i++ {
		n, digits = n*10+int64(raw[i]-'0'), digits+1
	}
	return n, digits > 0 && n >= 0
}

// stalled returns the time of the line "some avg10=… avg60=… avg300=… total=MICROSECONDS".
func stalled(raw []byte) time.Duration {
	line, _, _ := bytes.Cut(raw, []byte("\n"))
	if !bytes.HasPrefix(line, []byte("some ")) {
		return 0
	}
	_, total, _ := bytes.Cut(line, []byte("total="))
	n, _ := number(total)
	return time.Duration(n) * time.Microsecond
}
