package sysmem

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// ReadResident returns what this process has in memory now.
func ReadResident() (Resident, error) { return readResident(os.DirFS("/")) }

func readResident(root fs.FS) (Resident, error) {
	f, err := root.Open("proc/self/status")
	if err != nil {
		return Resident{}, fmt.Errorf("sysmem: %w", err)
	}
	defer f.Close()
	var r Resident
	found := 0
	for s := bufio.NewScanner(f); s.Scan(); {
		name, rest, _ := strings.Cut(s.Text(), ":")
		to := map[string]*int64{"VmRSS": &r.All, "RssAnon": &r.Own}[name]
		if to == nil {
			continue
		}
		kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		if err != nil {
			return Resident{}, fmt.Errorf("sysmem: /proc/self/status: %s: %w", name, err)
		}
		*to = kb << 10
		found++
	}
	if found != 2 {
		return Resident{}, fmt.Errorf("sysmem: /proc/self/status lacks VmRSS or RssAnon")
	}
	return r, nil
}
