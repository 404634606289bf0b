package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// diskOf returns the whole disk that a folder is on, as MAJOR:MINOR, because partitions cannot be
// throttled. root is the folder that holds proc and sys.
func diskOf(root, dir string) (string, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	raw, err := os.ReadFile(filepath.Join(root, "proc/self/mountinfo"))
	if err != nil {
		return "", fmt.Errorf("cannot read the mounts, which needs Linux: %w", err)
	}
	number, source := mountOf(raw, dir)
	if number == "" {
		return "", fmt.Errorf("no mount holds %s", dir)
	}
	device, err := filepath.EvalSymlinks(filepath.Join(root, "sys/dev/block", number))
	if err != nil {
		return "", fmt.Errorf("%s lies on %s (%s), which is not a disk that can be throttled: put the model on a file system of a disk, like ext4 or xfs: %w", dir, source, number, err)
	}
	if _, err := os.Stat(filepath.Join(device, "partition")); err != nil {
		return number, nil
	}
	whole, err := os.ReadFile(filepath.Join(filepath.Dir(device), "dev"))
	if err != nil {
		return "", fmt.Errorf("the disk of partition %s: %w", number, err)
	}
	return strings.TrimSpace(string(whole)), nil
}

// mountOf returns the device number and source of the mount that holds a folder: the deepest one
// above it, and the last of several at the same place.
func mountOf(mountinfo []byte, dir string) (number, source string) {
	best := -1
	for s := bufio.NewScanner(bytes.NewReader(mountinfo)); s.Scan(); {
		f := strings.Fields(s.Text())
		if len(f) < 10 {
			continue
		}
		at := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(f[4])
		under := dir == at || strings.HasPrefix(dir, strings.TrimSuffix(at, "/")+"/")
		if under && len(at) >= best {
			best, number = len(at), f[2]
			for i := 6; i+2 < len(f); i++ {
				if f[i] == "-" { // type and source follow
					source = f[i+2]
					break
				}
			}
		}
	}
	return number, source
}
