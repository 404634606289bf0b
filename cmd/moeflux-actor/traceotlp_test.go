package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestTraceExportOTLP sends the spans of a file to the collector that the environment names, and
// says in one line what is wrong where that cannot be.
func TestTraceExportOTLP(t *testing.T) {
	path := records(t)
	var posts, bytes atomic.Int64
	refuse := false
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/traces" || r.Header.Get("X-Team") != "blue" {
			t.Errorf("a post to %s with %v", r.URL.Path, r.Header)
		}
		posts.Add(1)
		bytes.Add(r.ContentLength)
		if refuse {
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=blue")
	o := mustCall(t, "", "trace", "export", path, "--otlp")
	if !strings.Contains(o.stderr, "4 spans were sent") || posts.Load() == 0 || bytes.Load() < 200 {
		t.Errorf("%d posts of %d bytes, and the command says %q", posts.Load(), bytes.Load(), o.stderr)
	}
	refuse = true
	if o := call(t, "", "trace", "export", path, "--otlp"); o.code == 0 || strings.Count(strings.TrimSpace(o.stderr), "\n") != 0 || !strings.Contains(o.stderr, "400") {
		t.Errorf("a collector that refuses: exit code %d, %q", o.code, o.stderr)
	}
	for _, c := range []struct{ args, want string }{
		{"--otlp --token 1", "leave out --token"}, {"", "--otlp"},
	} {
		if o := call(t, "", append([]string{"trace", "export", path}, strings.Fields(c.args)...)...); o.code != 2 || !strings.Contains(o.stderr, c.want) {
			t.Errorf("%q: exit code %d, %q", c.args, o.code, o.stderr)
		}
	}
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "smoke")
	if o := call(t, "", "trace", "export", path, "--otlp"); o.code != 2 || !strings.Contains(o.stderr, "OTEL_EXPORTER_OTLP_PROTOCOL") {
		t.Errorf("a protocol that does not exist: exit code %d, %q", o.code, o.stderr)
	}
}
