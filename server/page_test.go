package server

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/scripted"
	"github.com/moeflux/moeflux-actor/server/access"
	"github.com/moeflux/moeflux-actor/server/models"
	"github.com/moeflux/moeflux-actor/server/page"
)

// pageOf returns what a server with keys says to a visitor without one.
func pageOf(t *testing.T, method, path string, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	s, err := New(Options{
		Models: []models.Served{{Name: "secret-model", Model: new(scripted.Model)}},
		Keys:   []access.Key{{Secret: "sk-first-first", Name: "me"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	r.Host = "localhost"
	for name, values := range header {
		r.Header[name] = values
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// Each file of the page comes without a key, with its type and with the headers that keep it from
// loading, running or being framed by anything foreign. It tells nothing of what is served.
func TestPageFiles(t *testing.T) {
	paths := []string{"/"}
	if err := fs.WalkDir(page.Files(), ".", func(name string, d fs.DirEntry, err error) error {
		if !d.IsDir() {
			paths = append(paths, "/page/"+name)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(paths) < 10 {
		t.Fatalf("only %q", paths)
	}
	types := map[string]string{".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	for _, p := range paths {
		w := pageOf(t, "GET", p, nil)
		kind := types[path.Ext(p)]
		if p == "/" {
			kind = types[".html"]
		}
		for name, want := range map[string]string{
			"Content-Type": kind, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := w.Header().Get(name); w.Code != http.StatusOK || got != want || want == "" {
				t.Errorf("%s: %d, %s is %q, want %q", p, w.Code, name, got, want)
			}
		}
		if strings.Contains(w.Body.String(), "secret-model") || w.Body.Len() == 0 {
			t.Errorf("%s tells of the model, or nothing at all", p)
		}
		policy := make(map[string]string)
		for part := range strings.SplitSeq(w.Header().Get("Content-Security-Policy"), ";") {
			name, value, _ := strings.Cut(strings.TrimSpace(part), " ")
			policy[name] = value
		}
		for name, want := range map[string]string{
			"default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "img-src": "'self'", "connect-src": "'self'",
			"base-uri": "'none'", "form-action": "'none'", "frame-ancestors": "'none'", "require-trusted-types-for": "'script'", "trusted-types": "'none'",
		} {
			if policy[name] != want {
				t.Errorf("%s: the policy has %s %s, want %s", p, name, policy[name], want)
			}
		}
	}
}

// A file that has not changed is not sent again.
func TestPageUnchanged(t *testing.T) {
	tag := pageOf(t, "GET", "/", nil).Header().Get("Etag")
	if w := pageOf(t, "GET", "/", http.Header{"If-None-Match": {tag}}); tag == "" || w.Code != http.StatusNotModified || w.Body.Len() != 0 {
		t.Errorf("with the tag %q: %d and %d bytes", tag, w.Code, w.Body.Len())
	}
	if w := pageOf(t, "GET", "/", http.Header{"If-None-Match": {`"x"`}}); w.Code != http.StatusOK {
		t.Errorf("with another tag: %d", w.Code)
	}
}

// Beside the page's files there is nothing at its paths, and what is not the page's needs a key.
func TestPagePaths(t *testing.T) {
	for _, tc := range []struct {
		method, path string
		want         int
	}{
		{"HEAD", "/", http.StatusOK},
		{"GET", "/page/", http.StatusNotFound},
		{"GET", "/page/none.js", http.StatusNotFound},
		{"GET", "/page/markdown", http.StatusNotFound},
		{"GET", "/page/%2e%2e/page.go", http.StatusNotFound},
		{"GET", "/page/../v1/models", http.StatusUnauthorized},
		{"GET", "/page/%2e%2e/v1/models", http.StatusNotFound},
		{"POST", "/", http.StatusUnsupportedMediaType},
		{"GET", "/v1/models", http.StatusUnauthorized},
		{"GET", "/index.html", http.StatusUnauthorized},
	} {
		if w := pageOf(t, tc.method, tc.path, nil); w.Code != tc.want && !(w.Code/100 == 3) {
			t.Errorf("%s %s: %d, want %d", tc.method, tc.path, w.Code, tc.want)
		}
	}
}

// No file of the page names another site, has a script or a style within its markup, or makes
// markup of texts.
func TestPageIsItsOwn(t *testing.T) {
	bad := regexp.MustCompile(`https?://[a-z]|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|<script>|<style| style=| on[a-z]+="`)
	namespace := "http://www.w3.org/2000/svg"
	if err := fs.WalkDir(page.Files(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := fs.ReadFile(page.Files(), name)
		text := strings.ReplaceAll(string(body), namespace, "")
		if found := bad.FindString(text); found != "" {
			t.Errorf("%s has %q", name, found)
		}
		if n := strings.Count(text, "\n"); n > 300 {
			t.Errorf("%s has %d lines; 300 are the limit", name, n)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
