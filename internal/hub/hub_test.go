package hub_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/internal/hub"
	"github.com/moeflux/moeflux-actor/internal/hub/hubtest"
)

const repo = "some-org/Some-Model-1.0"

// files are what the test's repository holds.
func files() map[string][]byte {
	large := make([]byte, 3<<20+17)
	for i := range large {
		large[i] = byte(i * i >> 7)
	}
	return map[string][]byte{
		"config.json": []byte(`{"a": 1}`), "empty.txt": nil, "with space+plus%41#?.txt": []byte("odd"), "model.safetensors": large, "sub/part.gguf": large[:100_000],
	}
}

// fixture is a hub with the files, a client of it that does not wait, and a folder to fetch to.
type fixture struct {
	*hubtest.Hub
	client *hub.Client
	config hub.Config
	root   *os.Root
	path   string
	waits  []time.Duration
}

func start(t *testing.T) *fixture {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files() {
		path := filepath.Join(dir, filepath.FromSlash(name))
		check(t, os.MkdirAll(filepath.Dir(path), 0o777))
		check(t, os.WriteFile(path, content, 0o666))
	}
	x := &fixture{Hub: hubtest.New(t, repo, dir), path: t.TempDir()}
	root, err := os.OpenRoot(x.path)
	check(t, err)
	t.Cleanup(func() { root.Close() })
	x.root = root
	x.config = hub.Config{Endpoint: x.URL, Attempts: 3, UserAgent: "test/1", Wait: func(ctx context.Context, d time.Duration) error {
		x.waits = append(x.waits, d)
		return context.Cause(ctx)
	}}
	x.connect(t)
	return x
}

// connect makes a client of the configuration.
func (x *fixture) connect(t *testing.T) {
	t.Helper()
	var err error
	x.client, err = hub.New(x.config)
	check(t, err)
	t.Cleanup(x.client.Close)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (x *fixture) checkout(t *testing.T) *hub.Checkout {
	t.Helper()
	commit, err := x.client.Commit(t.Context(), repo, "main")
	check(t, err)
	c, err := x.client.Checkout(t.Context(), repo, commit)
	check(t, err)
	return c
}

// fetch fetches a file.
func (x *fixture) fetch(t *testing.T, c *hub.Checkout, name string) error {
	t.Helper()
	f, ok := c.Find(name)
	if !ok {
		t.Fatalf("no %s in %v", name, c.Files)
	}
	return c.Fetch(t.Context(), f, x.root, nil)
}

// has checks that a file is there whole, and nothing else.
func (x *fixture) has(t *testing.T, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(x.path)
	check(t, err)
	var got, want []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	for _, name := range names {
		want = append(want, filepath.Base(name))
		if raw, err := os.ReadFile(filepath.Join(x.path, filepath.Base(name))); err != nil || !bytes.Equal(raw, files()[name]) {
			t.Errorf("%s: %d bytes, %v, want those %d of the hub", name, len(raw), err, len(files()[name]))
		}
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the folder holds %q, want %q", got, want)
	}
}

// A list of several pages, files with the hub and elsewhere, names that need escapes.
func TestFetch(t *testing.T) {
	x := start(t)
	x.Redirect(t)
	x.PageSize = 2
	c := x.checkout(t)
	if c.Commit != hubtest.Commit || len(c.Files) != len(files()) {
		t.Fatalf("%+v", c)
	}
	var all []string
	for _, f := range c.Files {
		all = append(all, f.Name)
		if f.Size != int64(len(files()[f.Name])) || (f.SHA256 != "") != (len(files()[f.Name]) > 1000) {
			t.Errorf("%+v", f)
		}
		var told int64 = -1
		check(t, c.Fetch(t.Context(), f, x.root, func(have int64) { told = have }))
		if told != f.Size {
			t.Errorf("%s: told of %d bytes of %d", f.Name, told, f.Size)
		}
	}
	x.has(t, all...)
	asked := len(x.Requests())
	for _, f := range c.Files {
		check(t, c.Fetch(t.Context(), f, x.root, nil))
	}
	if n := len(x.Requests()); n != asked {
		t.Errorf("%d requests for what is there", n-asked)
	}
	for _, f := range c.Files {
		check(t, hub.Remove(x.root, f))
		check(t, hub.Remove(x.root, f))
	}
	x.has(t)
}

// git hash-object says so of "hello\n".
func TestBlob(t *testing.T) {
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "hello"), []byte("hello\n"), 0o666))
	x := start(t)
	x.Before = func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
		switch {
		case strings.Contains(r.URL.Path, "/tree/"):
			fmt.Fprint(w, `[{"type":"file","path":"hello","size":6,"oid":"ce013625030ba8dba906f756967f9e9ca394464a"}]`)
		case strings.Contains(r.URL.Path, "/resolve/"):
			fmt.Fprint(w, "hello\n")
		default:
			return w, false
		}
		return w, true
	}
	check(t, x.fetch(t, x.checkout(t), "hello"))
}

// Whatever is cut, wherever, the file is fetched whole, and what came is not fetched again unless
// the server knows no ranges.
func TestCuts(t *testing.T) {
	for _, ranges := range []bool{true, false} {
		x := start(t)
		x.Redirect(t)
		x.config.Attempts = 20 // without ranges a cut may come before anything new does
		x.connect(t)
		rng := rand.New(rand.NewPCG(3, 4))
		var sent atomic.Int64
		cuts := 0
		x.Before = func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
			if !ranges {
				r.Header.Del("Range")
			}
			if !strings.HasPrefix(r.URL.Path, "/lfs/") {
				return w, false
			}
			n := len(files()["model.safetensors"])
			if cuts++; cuts < 12 {
				n = rng.IntN(n)
			}
			return &hubtest.Cut{ResponseWriter: counting{w, &sent}, N: n}, false
		}
		check(t, x.fetch(t, x.checkout(t), "model.safetensors"))
		x.has(t, "model.safetensors")
		// What is on its way when a connection breaks may be lost, and is sent again.
		n, whole := sent.Load(), int64(len(files()["model.safetensors"]))
		if ranges && (n < whole || n > whole*5/4) || !ranges && n < whole*3/2 {
			t.Errorf("ranges %v: %d bytes sent of %d", ranges, n, whole)
		}
		if len(x.waits) == 0 {
			t.Error("no wait between attempts")
		}
	}
}

type counting struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c counting) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.n.Add(int64(n))
	return n, err
}

func (c counting) Flush() { c.ResponseWriter.(http.Flusher).Flush() }

// What an earlier process left is taken over if it is right, and fetched again if it is not.
func TestLeft(t *testing.T) {
	whole := files()["model.safetensors"]
	wrong := bytes.Clone(whole[:2<<20])
	wrong[1<<20] ^= 1
	for what, left := range map[string][]byte{
		"a part": whole[:1<<20], "all": whole, "a wrong part": wrong, "more than all": append(bytes.Clone(whole), 1), "nothing": {},
	} {
		x := start(t)
		check(t, os.WriteFile(filepath.Join(x.path, "model.safetensors.incomplete"), left, 0o666))
		check(t, x.fetch(t, x.checkout(t), "model.safetensors"))
		x.has(t, "model.safetensors")
		if what == "all" && x.Asked("model.safetensors") > 0 {
			t.Errorf("%s: fetched", what)
		}
	}
	x := start(t) // under its name, but not what it was
	check(t, os.WriteFile(filepath.Join(x.path, "model.safetensors"), append(bytes.Clone(whole[1:]), 0), 0o666))
	c := x.checkout(t)
	if f, _ := c.Find("model.safetensors"); hub.Have(x.root, f) != int64(len(whole)) {
		t.Error("Have does not count what is there")
	}
	check(t, x.fetch(t, c, "model.safetensors"))
	x.has(t, "model.safetensors")
}

// Wrong bytes are fetched once more, and then refused.
func TestDamaged(t *testing.T) {
	for _, name := range []string{"model.safetensors", "config.json"} {
		for times := range 3 {
			x := start(t)
			left := times
			x.Before = func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
				if left--; left >= 0 && strings.Contains(r.URL.Path, "/resolve/") {
					return &hubtest.Flip{ResponseWriter: w, N: 5}, false
				}
				return w, false
			}
			c := x.checkoutThen(t, &left, times)
			err := x.fetch(t, c, name)
			var damaged *hub.DamagedError
			if times == 2 {
				if !errors.As(err, &damaged) || damaged.File != name {
					t.Errorf("%s, damaged twice: %v", name, err)
				}
				x.has(t)
				continue
			}
			check(t, err)
			x.has(t, name)
		}
	}
}

// checkoutThen sets a counter of faults once the list is there.
func (x *fixture) checkoutThen(t *testing.T, left *int, n int) *hub.Checkout {
	t.Helper()
	*left = 0
	c := x.checkout(t)
	*left = n
	return c
}

// Answers that are of another size than the list says, or of other bytes than were asked for.
func TestWrongSizes(t *testing.T) {
	for what, answer := range map[string]func(w http.ResponseWriter, r *http.Request){
		"shorter": func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("{}")) },
		"longer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(4<<20))
			w.Write(make([]byte, 4<<20))
		},
		"another range": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes 5-9/10")
			w.WriteHeader(http.StatusPartialContent)
			w.Write(make([]byte, 5))
		},
		"no range said": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusPartialContent) },
	} {
		x := start(t)
		c := x.checkout(t)
		x.Before = func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
			answer(w, r)
			return w, true
		}
		if err := x.fetch(t, c, "model.safetensors"); err == nil || !strings.Contains(err.Error(), "model.safetensors") || !strings.Contains(err.Error(), "3 attempts") {
			t.Errorf("%s: %v", what, err)
		}
		if len(x.waits) != 2 {
			t.Errorf("%s: %d waits, want 2", what, len(x.waits))
		}
	}
	// An answer without a length, and longer than it should be: what is too much is not taken.
	x := start(t)
	c := x.checkout(t)
	x.Before = func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
		w.(http.Flusher).Flush()
		w.Write(append(files()["model.safetensors"], "and more"...))
		return w, true
	}
	check(t, x.fetch(t, c, "model.safetensors"))
	x.has(t, "model.safetensors")
}

// A busy hub is asked again when it says, but not forever.
func TestBusy(t *testing.T) {
	for _, status := range []int{429, 500, 502, 503, 504} {
		x := start(t)
		busy := 2
		x.Before = func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
			if busy--; busy < 0 {
				return w, false
			}
			w.Header().Set("Retry-After", []string{"7", time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat)}[busy%2])
			w.WriteHeader(status)
			return w, true
		}
		c := x.checkout(t)
		if len(x.waits) != 2 || x.waits[0] < 80*time.Second || x.waits[0] > 100*time.Second || x.waits[1] != 7*time.Second {
			t.Errorf("%d: waits %v, want some 90 s and 7 s", status, x.waits)
		}
		busy = 1000
		var bad *hub.StatusError
		if err := x.fetch(t, c, "config.json"); !errors.As(err, &bad) || bad.Status != status {
			t.Errorf("%d forever: %v", status, err)
		}
	}
	x := start(t)
	x.Before = func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
		w.Header().Set("Retry-After", "86400")
		w.WriteHeader(429)
		return w, true
	}
	if _, err := x.client.Commit(t.Context(), repo, "main"); err == nil || !strings.Contains(err.Error(), "24h") || len(x.waits) > 0 {
		t.Errorf("come back tomorrow: %v, after %v", err, x.waits)
	}
}

// A hub that never answers is given up sooner than one that did.
func TestNobodyThere(t *testing.T) {
	x := start(t)
	x.config.Attempts = 0
	x.connect(t)
	c := x.checkout(t)
	x.Stop()
	if err := x.fetch(t, c, "config.json"); err == nil || !strings.Contains(err.Error(), "10 attempts") || len(x.waits) != 9 {
		t.Errorf("a hub that is gone: %v, after %v", err, x.waits)
	}
	x.connect(t)
	x.waits = nil
	if _, err := x.client.Commit(t.Context(), repo, "main"); err == nil || !strings.Contains(err.Error(), "5 attempts") || len(x.waits) != 4 {
		t.Errorf("a hub that was never there: %v, after %v", err, x.waits)
	}
}

// A connection over which nothing comes is given up, and a slow one is not.
func TestStalled(t *testing.T) {
	x := start(t)
	x.config.Stall = 500 * time.Millisecond
	x.connect(t)
	c := x.checkout(t)
	n := 0
	x.Before = func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
		if n++; n > 1 {
			return &slow{ResponseWriter: w, pause: 30 * time.Millisecond}, false
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(files()["model.safetensors"])))
		w.Write(files()["model.safetensors"][:1000])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return w, true
	}
	check(t, x.fetch(t, c, "model.safetensors"))
	x.has(t, "model.safetensors")
	// The whole takes six times as long as a stall.
	if n < 2 || n > 4 {
		t.Errorf("%d requests, want the one that stalled and another", n)
	}
}

// slow pauses before each write.
type slow struct {
	http.ResponseWriter
	pause time.Duration
}

func (s *slow) Write(p []byte) (int, error) {
	time.Sleep(s.pause)
	n, err := s.ResponseWriter.Write(p)
	s.ResponseWriter.(http.Flusher).Flush()
	return n, err
}

// Ctrl-C ends a download at once, and what came is kept.
func TestInterrupted(t *testing.T) {
	x := start(t)
	c := x.checkout(t)
	f, _ := c.Find("model.safetensors")
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	x.Before = func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
		return &hubtest.Cut{ResponseWriter: w, N: 1 << 20}, false
	}
	x.config.Waiting = func(error, time.Duration) { cancel(why) }
	x.connect(t)
	c = x.checkout(t)
	if err := c.Fetch(ctx, f, x.root, nil); !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
	if n := hub.Have(x.root, f); n != 1<<20 {
		t.Errorf("%d bytes are kept", n)
	}
}

// The token goes to the hub and nowhere else.
func TestToken(t *testing.T) {
	x := start(t)
	x.Redirect(t)
	x.Token, x.config.Token = "hf_secret", "hf_secret"
	x.connect(t)
	c := x.checkout(t)
	check(t, x.fetch(t, c, "model.safetensors"))
	check(t, x.fetch(t, c, "config.json"))
	with, without := 0, 0
	for _, r := range x.Requests() {
		switch got := r.Header.Get("Authorization"); {
		case strings.HasPrefix(r.URL.Path, "/lfs/") && got == "":
			without++
		case !strings.HasPrefix(r.URL.Path, "/lfs/") && got == "Bearer hf_secret":
			with++
		default:
			t.Errorf("%s has Authorization %q", r.URL, got)
		}
		if r.UserAgent() != "test/1" {
			t.Errorf("%s is from %q", r.URL, r.UserAgent())
		}
	}
	if with < 4 || without != 1 {
		t.Errorf("%d requests with the token and %d without", with, without)
	}
}

// Every refusal says what to do.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		what, revision string
		token          string
		status         int
		code           string
		want           []string
	}{
		{"gated, nobody", "main", "", 401, "GatedRepo", []string{"agree to its terms", "/settings/tokens", "HF_TOKEN"}},
		{"gated, somebody", "main", "t", 403, "GatedRepo", []string{"agree to its terms", "wait until access is granted"}},
		{"unknown, nobody", "main", "", 401, "RepoNotFound", []string{"check the name", "needs HF_TOKEN"}},
		{"bad token", "main", "t", 401, "", []string{"this HF_TOKEN", "valid"}},
		{"unknown, somebody", "main", "t", 404, "RepoNotFound", []string{"has no repository " + repo}},
		{"revision", "dev/x", "", 404, "RevisionNotFound", []string{`has no revision "dev/x"`}},
		{"other", "main", "", 451, "", []string{"answers 451", `"no\x1b[31m reason"`}},
	} {
		x := start(t)
		x.config.Token = c.token
		x.connect(t)
		x.Before = func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
			hubtest.Refuse(w, c.status, c.code, "no\x1b[31m reason")
			return w, true
		}
		_, err := x.client.Commit(t.Context(), repo, c.revision)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", c.what, err, want)
			}
		}
		if len(x.waits) > 0 || err != nil && strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: waits %v, error %q", c.what, x.waits, err)
		}
		if c.revision == "dev/x" && !strings.HasSuffix(x.Requests()[0].URL.EscapedPath(), "/revision/dev%2Fx") {
			t.Errorf("asked for %s", x.Requests()[0].URL.EscapedPath())
		}
	}
	x := start(t)
	_, err := x.checkout(t).Begin(t.Context(), hub.File{Name: "none", Size: 3}, 2)
	if missing := (*hub.NotFoundError)(nil); !errors.As(err, &missing) || !strings.Contains(err.Error(), "has no file none at "+hubtest.Commit) {
		t.Errorf("no file: %v", err)
	}
	if _, err := x.client.Checkout(t.Context(), repo, strings.Repeat("a", 40)); err == nil || !strings.Contains(err.Error(), "has no revision") {
		t.Errorf("a commit that is gone: %v", err)
	}
}

// Lists that no hub writes.
func TestListRefused(t *testing.T) {
	good := strings.Repeat("a", 40)
	for what, list := range map[string]string{
		"up":         `[{"type":"file","path":"../x","size":1,"oid":"` + good + `"}]`,
		"absolute":   `[{"type":"file","path":"/etc/x","size":1,"oid":"` + good + `"}]`,
		"itself":     `[{"type":"file","path":"","size":1,"oid":"` + good + `"}]`,
		"escape":     `[{"type":"file","path":"a\u001b[2Jb","size":1,"oid":"` + good + `"}]`,
		"negative":   `[{"type":"file","path":"x","size":-1,"oid":"` + good + `"}]`,
		"no sum":     `[{"type":"file","path":"x","size":1}]`,
		"no sha256":  `[{"type":"file","path":"x","size":1,"oid":"` + good + `","lfs":{"oid":"00","size":1}}]`,
		"not a list": `{"error":"x"}`,
		"a page":     `<html>log in</html>`,
		"a number":   `[{"type":"file","path":"x","size":1e30,"oid":"` + good + `"}]`,
	} {
		x := start(t)
		x.Before = func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
			fmt.Fprint(w, list)
			return w, true
		}
		c, err := x.client.Checkout(t.Context(), repo, hubtest.Commit)
		if err == nil || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %+v, %v", what, c, err)
		}
	}
	x := start(t)
	x.Before = func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
		fmt.Fprint(w, `{"sha":"../../x"}`)
		return w, true
	}
	if commit, err := x.client.Commit(t.Context(), repo, "main"); err == nil {
		t.Errorf("commit %q", commit)
	}
	for name, good := range map[string]bool{"a/b": true, "Qwen/Qwen3.5-35B-A3B": true, "a": false, "a/b/c": false, "../b": false, "a/..": false, "a/b?x": false, "": false, "a/.b": false, "a b/c": false} {
		if hub.RepoName(name) != good {
			t.Errorf("RepoName(%q) is %v", name, !good)
		}
	}
}

// A link in the folder does not lead out of it.
func TestLinks(t *testing.T) {
	x := start(t)
	outside := filepath.Join(t.TempDir(), "outside")
	check(t, os.WriteFile(outside, []byte("mine"), 0o666))
	check(t, os.Symlink(outside, filepath.Join(x.path, "config.json.incomplete")))
	if err := x.fetch(t, x.checkout(t), "config.json"); err == nil {
		t.Error("written through a link")
	}
	if raw, err := os.ReadFile(outside); err != nil || string(raw) != "mine" {
		t.Errorf("%q, %v", raw, err)
	}
}

// Begin brings the beginning of a file, also from a server that knows no ranges.
func TestBegin(t *testing.T) {
	for _, ranges := range []bool{true, false} {
		x := start(t)
		x.Redirect(t)
		x.Before = func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
			if !ranges {
				r.Header.Del("Range")
			}
			return w, false
		}
		c := x.checkout(t)
		f, _ := c.Find("model.safetensors")
		for _, n := range []int64{0, 1, 1000, 1 << 40} {
			got, err := c.Begin(t.Context(), f, n)
			if want := files()["model.safetensors"][:min(n, f.Size)]; err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes: %d, %v", n, len(got), err)
			}
		}
	}
}

// The addresses that a hub may have.
func TestEndpoints(t *testing.T) {
	for endpoint, good := range map[string]bool{
		"": true, "https://hub.example/": true, "https://hub.example/hf": true, "http://hub.example": false, "http://127.0.0.1:80": true, "http://localhost": true,
		"hub.example": false, "ftp://hub.example": false, "https://": false, "https://u:p@hub.example": false, "https://hub.example/?x": false, ":": false,
	} {
		if _, err := hub.New(hub.Config{Endpoint: endpoint, Token: "t"}); (err == nil) != good {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
	if _, err := hub.New(hub.Config{Endpoint: "http://hub.example"}); err != nil {
		t.Errorf("http without a token: %v", err)
	}
	if _, err := hub.New(hub.Config{Token: "a\nb"}); err == nil || strings.Contains(err.Error(), "a\nb") {
		t.Errorf("a token with a line feed: %v", err)
	}
}

// A hub under a path of its host, over TLS. A certificate of nobody is refused at once, and so is a
// redirect to plain HTTP.
func TestTLS(t *testing.T) {
	x := start(t)
	inner := x.Hub
	s := httptest.NewUnstartedServer(http.StripPrefix("/hf", inner))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that the client refuses
	s.StartTLS()
	t.Cleanup(s.Close)
	x.config.Endpoint = s.URL + "/hf"
	x.connect(t)
	var certificate *tls.CertificateVerificationError
	if _, err := x.client.Commit(t.Context(), repo, "main"); !errors.As(err, &certificate) || len(x.waits) > 0 {
		t.Errorf("a certificate of nobody: %v, waits %v", err, x.waits)
	}
	x.config.Transport = s.Client().Transport
	x.connect(t)
	c := x.checkout(t)
	check(t, x.fetch(t, c, "model.safetensors"))
	x.has(t, "model.safetensors")
	x.Redirect(t) // to http
	if err := x.fetch(t, c, "sub/part.gguf"); err == nil || !strings.Contains(err.Error(), "https to http") || len(x.waits) > 0 {
		t.Errorf("redirected to http: %v, waits %v", err, x.waits)
	}
}

// A file that cannot be written ends the download with an error that names it.
func TestCannotWrite(t *testing.T) {
	x := start(t)
	c := x.checkout(t)
	check(t, os.Mkdir(filepath.Join(x.path, "config.json.incomplete"), 0o777))
	var bad *hub.WriteError
	if err := x.fetch(t, c, "config.json"); !errors.As(err, &bad) || bad.File != "config.json.incomplete" || !errors.Is(err, syscall.EISDIR) {
		t.Errorf("got %v, want a *WriteError", err)
	}
}
