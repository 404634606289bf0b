package hostlist

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestReadList reads lists and files, and tells one from the other.
func TestReadList(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{
		"hosts.txt": "# the first rack\n\n10.0.0.2:8090\n  [fe80::1]:8090  # the big one\r\n#10.0.0.9:1\ngpu.lan:8090",
		"empty":     "# nobody yet\n\n", "twice": "a:1\nb:1\na:1\n", "a:1": "b:2\n", "prose": "```\n```\n", "huge": strings.Repeat("#", mostListed+1),
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := []Listed{{"10.0.0.2:8090", 3}, {"[fe80::1]:8090", 4}, {"gpu.lan:8090", 6}}
	for _, tc := range []struct {
		list string
		want []Listed
		says string
	}{
		{"", nil, ""},
		{"a:1", []Listed{{"a:1", 0}}, ""}, // although there is a file of that name
		{"./a:1", []Listed{{"b:2", 1}}, ""},
		{"a:1, [::1]:2,,", []Listed{{"a:1", 0}, {"[::1]:2", 0}}, ""},
		{"hosts.txt", file, ""},
		{filepath.Join(dir, "hosts.txt"), file, ""},
		{"a:1,b:1,a:1", nil, "a:1 is named twice"},
		{"twice", nil, "a:1 is named twice"},
		{"prose", []Listed{{"```", 1}, {"```", 2}}, ""}, // which line it is, is said with the first
		{"empty", nil, "names no hosts"},
		{"10.0.0.2", nil, "write host:port, or name a file"},
		{"none/hosts.txt", nil, "write host:port, or name a file"},
		{"huge", nil, "is not a file of addresses"},
		{dir, nil, "is not a file of addresses"},
	} {
		got, err := Read(tc.list)
		if tc.says != "" {
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%q: error %v, want %q", tc.list, err, tc.says)
			}
		} else if err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%q: %v, error %v, want %v", tc.list, got, err, tc.want)
		}
	}
}
