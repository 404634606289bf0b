package sysmem

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

// Read returns the figures of this moment.
func Read() (Info, error) { return read(os.DirFS("/")) }

func read(root fs.FS) (Info, error) {
	info, err := meminfo(root)
	if err != nil {
		return Info{}, err
	}
	limit, used, ok := cgroup(root)
	if ok && limit < info.Total {
		info.Total = limit
		info.Available = min(info.Available, max(limit-used, 0))
	}
	return info, nil
}

func meminfo(root fs.FS) (Info, error) {
	f, err := root.Open("proc/meminfo")
	if err != nil {
		return Info{}, fmt.Errorf("sysmem: %w", err)
	}
	defer f.Close()
	var info Info
	for s := bufio.NewScanner(f); s.Scan(); {
		name, rest, _ := strings.Cut(s.Text(), ":")
		kb, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		switch name {
		case "MemTotal":
			info.Total = kb << 10
		case "MemAvailable":
			info.Available = kb << 10
		}
	}
	if info.Total == 0 || info.Available == 0 {
		return Info{}, fmt.Errorf("sysmem: /proc/meminfo lacks MemTotal or MemAvailable")
	}
	return info, nil
}

// cgroup returns the memory limit that holds for this process and what its group uses apart from page cache that can be dropped.
func cgroup(root fs.FS) (limit, used int64, ok bool) {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, 0, false
	}
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		var dir, limitFile, usedFile, cacheKey string
		switch {
		case parts[0] == "0":
			dir, limitFile, usedFile, cacheKey = "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"
		case strings.Contains(","+parts[1]+",", ",memory,"):
			dir, limitFile, usedFile, cacheKey = "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
		default:
			continue
		}
		// The tightest limit on the way up holds. Inside a container the group's own folder may be the mount's root.
		for at := path.Join(dir, parts[2]); len(at) >= len(dir); at = path.Dir(at) {
			l, lok := number(root, path.Join(at, limitFile))
			u, uok := number(root, path.Join(at, usedFile))
			if lok && uok && (!ok || l < limit) {
				limit, used, ok = l, u-statField(root, path.Join(at, "memory.stat"), cacheKey), true
			}
		}
	}
	return limit, used, ok
}

func number(root fs.FS, name string) (int64, bool) {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64) // "max" is no number: no limit
	return n, err == nil
}

func statField(root fs.FS, name, key string) int64 {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if k, v, _ := strings.Cut(strings.TrimSpace(line), " "); k == key {
			n, _ := strconv.ParseInt(v, 10, 64)
			return n
		}
	}
	return 0
}
