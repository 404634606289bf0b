package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// planted checks a package as on macOS with a piece of one of its files replaced.
func planted(t *testing.T, file, from, to string) *result {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../..", file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte(from)) {
		t.Fatalf("%s has no %q", file, from)
	}
	r, err := check(config{dir: "../..", goos: "darwin", goarch: "arm64", patterns: []string{"./" + filepath.Dir(file)},
		overlay: map[string][]byte{path: bytes.Replace(text, []byte(from), []byte(to), 1)}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What is wrong in a file for macOS, in one for every system and in a test is found.
func TestPlanted(t *testing.T) {
	for _, tc := range []struct{ name, file, from, to, want string }{
		{"nothing", "internal/diskbw/open_darwin.go", "package diskbw", "package diskbw", ""},
		{"a system's file", "internal/diskbw/open_darwin.go", "package diskbw", "package diskbw\n\nvar _ int = \"one\"", "cannot use \"one\""},
		{"any system's file", "internal/diskbw/diskbw.go", "package diskbw", "package diskbw\n\nvar _ = nowhere", "undefined: nowhere"},
		{"a test", "internal/diskbw/diskbw_test.go", "func Test", "func TestPlanted(t *testing.T) { t.Errorf(\"%d\", \"one\") }\n\nfunc Test", "format %d has arg"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := planted(t, tc.file, tc.from, tc.to)
			if found := strings.Join(r.findings, "\n"); !strings.Contains(found, tc.want) || (tc.want == "") != (found == "") {
				t.Errorf("found %q, want %q", found, tc.want)
			}
		})
	}
}
