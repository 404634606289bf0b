package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/internal/flags"
)

// Wherever spans go, and whether they arrive or not, the text is the same, and the command
// succeeds. What is lost is said.
func TestTraceGoesWhereItShould(t *testing.T) {
	model, ref := loadE2E(t)
	var got int
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got += strings.Count(string(b), "moeflux.eval")
	}))
	defer collector.Close()
	over := make(chan struct{})
	hung := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-over }))
	defer hung.Close()
	defer close(over)
	gone := httptest.NewServer(nil)
	gone.Close()
	path := filepath.Join(t.TempDir(), "spans.jsonl")
	for _, tc := range []struct {
		name, mode string
		lost       string // what stderr says; none: nothing
		check      func(o outcome) bool
	}{
		{"file", "file=" + path, "", func(outcome) bool {
			b, err := os.ReadFile(path)
			return err == nil && strings.Count(string(b), `"Name":"moeflux.eval"`) == 8
		}},
		{"stderr", "stderr", "", func(o outcome) bool { return strings.Count(o.stderr, `"Name":"moeflux.eval"`) == 8 }},
		{"collector", "otlp=" + collector.URL, "", func(outcome) bool { return got == 8 }},
		{"collector is not there", "otlp=" + gone.URL, "failed; the first error:", nil},
		{"collector hangs", "otlp=" + hung.URL, "were still waiting", nil},
		{"full disk", "file=/dev/full", "no space left on device", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if strings.HasSuffix(tc.mode, "/dev/full") {
				if _, err := os.Stat("/dev/full"); err != nil {
					t.Skip("needs /dev/full, which Linux has")
				}
			}
			began := time.Now()
			o := call(t, "", "run", "--model", model, "-p", ref.Text, "-n", "8", "--temperature", "0", "--activations", "f32", "--trace", tc.mode)
			if o.code != exitOK || !strings.HasPrefix(ref.DecodeText, o.stdout) || o.stdout == "" {
				t.Errorf("exit %d, text %q, want the beginning of %q; stderr %q", o.code, o.stdout, ref.DecodeText, o.stderr)
			}
			if n := strings.Count(o.stderr, "spans were not written"); n > 0 != (tc.lost != "") || n > 1 || !strings.Contains(o.stderr, tc.lost) {
				t.Errorf("stderr %q, want it to say %q once", o.stderr, tc.lost)
			}
			if tc.check != nil && !tc.check(o) {
				t.Errorf("the spans of 8 evaluations did not arrive; stderr %q", o.stderr)
			}
			if d := time.Since(began); d > flags.ExportPatience+30*time.Second {
				t.Errorf("it took %v", d)
			}
		})
	}
}

// A file that cannot be made is said before the model is opened.
func TestTraceToNoFile(t *testing.T) {
	model, ref := loadE2E(t)
	o := call(t, "", "run", "--model", model, "-p", ref.Text, "--trace", "file="+filepath.Join(t.TempDir(), "no", "folder"))
	if o.code != exitFailed || !strings.Contains(o.stderr, "the file for spans: open") {
		t.Errorf("exit %d, stderr %q", o.code, o.stderr)
	}
	checkErrorLine(t, o)
}

// A file or a folder for records that cannot be made is what the error is about, not the model.
func TestRecordsToNoFile(t *testing.T) {
	model, ref := loadE2E(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ flag, path, want string }{
		{"--record", filepath.Join(dir, "no", "folder"), "records cannot be written: the file for them: open " + filepath.Join(dir, "no", "folder")},
		{"--record", dir, "records cannot be written: the file for them: open " + dir},
		{"--flight-dir", file, "records cannot be written: the folder for those of what is slow: mkdir " + file},
	} {
		o := call(t, "", "run", "--model", model, "-p", ref.Text, "-n", "1", c.flag, c.path)
		if o.code != exitFailed || !strings.Contains(o.stderr, c.want) || strings.Contains(o.stderr, "the model") {
			t.Errorf("%s %s: exit %d, stderr %q", c.flag, c.path, o.code, o.stderr)
		}
		checkErrorLine(t, o)
	}
}
