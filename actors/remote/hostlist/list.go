// Package hostlist reads lists of expert hosts, as engines and hosts are given them.
package hostlist

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
)

// mostListed is the largest file of addresses, in bytes.
const mostListed = 1 << 16

// Listed is an address of a list of hosts.
type Listed struct {
	Addr string
	Line int // of the file, from 1; 0 if the list is no file
}

// IsFile says whether what names hosts is a file. An address has a port, and so a colon, and no
// slash; a file has a slash or no colon.
func IsFile(list string) bool {
	return list != "" && (strings.ContainsAny(list, `/\`) || !strings.Contains(list, ":"))
}

// Read returns the hosts that a list names: addresses, host:port, with commas between them, or
// a file that has one on each line. In a file, blank lines and what follows a # do not count.
func Read(list string) ([]Listed, error) {
	if IsFile(list) {
		return readFile(list)
	}
	var all []Listed
	for a := range strings.SplitSeq(list, ",") {
		if a = strings.TrimSpace(a); a != "" {
			all = append(all, Listed{Addr: a})
		}
	}
	return all, twice(all)
}

func readFile(path string) ([]Listed, error) {
	info, err := os.Stat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > mostListed) {
		return nil, fmt.Errorf("%s is not a file of addresses, one on each line", path)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("%q has no port, or has a slash, and is taken for a file of addresses; write host:port, or name a file: %w", path, err)
	}
	var all []Listed
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, Listed{line, n})
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s names no hosts; write one on each line, host:port", path)
	}
	return all, twice(all)
}

// twice reports a host that is named twice: it would be dialled twice and own twice its part. What
// is not an address at all is left to whoever checks addresses.
func twice(all []Listed) error {
	for i, l := range all {
		if _, _, err := net.SplitHostPort(l.Addr); err != nil {
			continue
		}
		if slices.ContainsFunc(all[:i], func(before Listed) bool { return before.Addr == l.Addr }) {
			return fmt.Errorf("%s is named twice; name each host once", l.Addr)
		}
	}
	return nil
}
