package pull_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/hub"
	"github.com/moeflux/moeflux-actor/internal/hub/hubtest"
	"github.com/moeflux/moeflux-actor/internal/pull"
	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/safetensors"
)

const repo = "some-org/Some-Model-4bit"

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// published is a checkpoint in shards, in a folder of the repository's name.
func published(t *testing.T, shards int) string {
	t.Helper()
	src := fixtures.Dir(t, fixtures.Qwen35MoEQ4)
	c, err := safetensors.OpenDir(src)
	check(t, err)
	defer c.Close()
	dir := filepath.Join(t.TempDir(), filepath.Base(repo))
	check(t, os.Mkdir(dir, 0o777))
	names, weightMap := c.Names(), map[string]string{}
	for i := range shards {
		var list []safetensors.Tensor
		file := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, shards)
		for _, name := range names[len(names)*i/shards : len(names)*(i+1)/shards] {
			x, _ := c.Tensor(name)
			list = append(list, x)
			weightMap[name] = file
		}
		check(t, safetensors.WriteFile(filepath.Join(dir, file), list, nil))
	}
	raw, err := json.Marshal(map[string]any{"weight_map": weightMap})
	check(t, err)
	check(t, os.WriteFile(filepath.Join(dir, safetensors.IndexName), raw, 0o666))
	entries, err := os.ReadDir(src)
	check(t, err)
	for _, e := range entries {
		if !strings.Contains(e.Name(), ".safetensors") {
			raw, err := os.ReadFile(filepath.Join(src, e.Name()))
			check(t, errors.Join(err, os.WriteFile(filepath.Join(dir, e.Name()), raw, 0o666)))
		}
	}
	check(t, os.WriteFile(filepath.Join(dir, "README.md"), []byte("not needed"), 0o666))
	return dir
}

// tree returns all files under a folder.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	check(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out[rel] = string(raw)
		return err
	}))
	return out
}

// same checks that a target is, byte for byte, the conversion of the published checkpoint, and that
// nothing else is left.
func same(t *testing.T, dst, from string, o convert.Options) {
	t.Helper()
	want := filepath.Join(t.TempDir(), "want")
	check(t, convert.Convert(t.Context(), from, want, o))
	got, expected := tree(t, dst), tree(t, want)
	for name, content := range expected {
		if got[name] != content {
			t.Errorf("%s: %d bytes, want the %d of convert", name, len(got[name]), len(content))
		}
	}
	if len(got) != len(expected) {
		t.Errorf("%d files, want %d", len(got), len(expected))
	}
	for _, suffix := range []string{".download", ".partial"} {
		if _, err := os.Lstat(dst + suffix); err == nil {
			t.Errorf("%s is left", dst+suffix)
		}
	}
}

// puller is a hub, and a client of it whose waits are none.
func puller(t *testing.T, from string) (*hubtest.Hub, *hub.Client) {
	t.Helper()
	h := hubtest.New(t, repo, from)
	h.Redirect(t)
	c, err := hub.New(hub.Config{Endpoint: h.URL, Attempts: 20, Wait: func(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) }})
	check(t, err)
	t.Cleanup(c.Close)
	return h, c
}

// What is pulled is what convert makes, through cuts and wrong bytes, in small rooms.
func TestPull(t *testing.T) {
	from := published(t, 5)
	h, client := puller(t, from)
	rng := rand.New(rand.NewPCG(1, 9))
	n := 0
	h.Before = func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
		if !strings.Contains(r.URL.Path, ".safetensors") {
			return w, false
		}
		switch n++; n % 4 {
		case 1:
			return &hubtest.Cut{ResponseWriter: w, N: rng.IntN(300_000)}, false
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
			return w, true
		}
		return w, false
	}
	h.PageSize = 3
	o := convert.Options{Bits: 4, ExpertBits: 2}
	dst := filepath.Join(t.TempDir(), "models", "mine")
	var last pull.Progress
	var most int64
	result, err := pull.Pull(t.Context(), client, dst, pull.Options{Repo: repo, Convert: o, Progress: func(p pull.Progress) {
		if p.Done > p.Total || p.Fetched < last.Fetched || p.Step == "" {
			t.Errorf("%+v after %+v", p, last)
		}
		last = p
		var now int64
		large, _ := filepath.Glob(dst + ".download/files/*.safetensors*")
		for _, name := range large {
			if info, err := os.Stat(name); err == nil && !strings.HasSuffix(name, ".header") {
				now += info.Size()
			}
		}
		most = max(most, now)
	}})
	check(t, err)
	same(t, dst, from, o)
	if result.Commit != hubtest.Commit || last.Done != last.Total || last.Fetched < last.Total {
		t.Errorf("%+v, last %+v", result, last)
	}
	if h.Asked("README.md") > 0 {
		t.Error("asked for what is not needed")
	}
	var largest int64
	for name, content := range tree(t, from) {
		if strings.Contains(name, ".safetensors") {
			largest = max(largest, int64(len(content)))
		}
	}
	if most > 2*largest {
		t.Errorf("%d bytes of shards at a time, the largest has %d", most, largest)
	}

	if _, err := pull.Pull(t.Context(), client, dst, pull.Options{Repo: repo}); !errors.As(err, new(*convert.ExistsError)) {
		t.Errorf("over a model: %v", err)
	}
	if _, err := os.Lstat(dst + ".download"); err == nil {
		t.Error("a pull that was refused leaves a folder")
	}

}

// A pull that is cancelled goes on with the commit that it began with, and with what it has.
func TestResume(t *testing.T) {
	from := published(t, 4)
	h, client := puller(t, from)
	dst := filepath.Join(t.TempDir(), "mine")
	o := pull.Options{Repo: repo}
	stop := func(when string) pull.Options {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stopped := o
		stopped.Progress = func(p pull.Progress) {
			if strings.Contains(p.Step, when) && p.Fetched > 0 {
				cancel()
			}
		}
		if _, err := pull.Pull(ctx, client, dst, stopped); !errors.Is(err, context.Canceled) {
			t.Fatalf("cancelled at %q: %v", when, err)
		}
		if _, err := os.Lstat(dst); err == nil {
			t.Fatal("the target is there")
		}
		return stopped
	}
	stop("fetching model-00002")
	stop("converting model-00003")
	first := h.Asked("model-00001-of-00004.safetensors")
	asked := len(h.Requests())
	h.Before = func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
		if strings.Contains(r.URL.Path, "/revision/") {
			t.Error("asked again what main is")
		}
		return w, false
	}
	for _, other := range []pull.Options{{Repo: "some-org/other"}, {Repo: repo, Revision: "v2"}, {Repo: repo, File: "x.gguf"}} {
		if _, err := pull.Pull(t.Context(), client, dst, other); !errors.As(err, new(*pull.StateError)) || !strings.Contains(err.Error(), repo) {
			t.Errorf("another pull: %v", err)
		}
	}
	var begun *pull.Progress
	o.Progress = func(p pull.Progress) {
		if strings.HasPrefix(p.Step, "fetching model") && begun == nil {
			begun = &p
		}
	}
	_, err := pull.Pull(t.Context(), client, dst, o)
	check(t, err)
	same(t, dst, from, convert.Options{})
	if h.Asked("model-00001-of-00004.safetensors") != first {
		t.Errorf("the first shard came again after two were converted (%d requests)", len(h.Requests())-asked)
	}
	if begun == nil || begun.Done < begun.Total/4 || begun.Fetched > 0 {
		t.Errorf("it goes on with %+v", begun)
	}
}

// Whatever moment a process is killed at, the same call goes on from what the disk held, and makes
// the same bytes.
func TestKilled(t *testing.T) {
	from := published(t, 3)
	_, client := puller(t, from)
	count := 0
	_, err := pull.Pull(t.Context(), client, filepath.Join(t.TempDir(), "x"), pull.Options{Repo: repo, Progress: func(pull.Progress) { count++ }})
	check(t, err)
	for i := 0; i < count; i += count/7 + 1 {
		here, there := t.TempDir(), t.TempDir()
		n := 0
		_, err := pull.Pull(t.Context(), client, filepath.Join(here, "x"), pull.Options{Repo: repo, Progress: func(pull.Progress) {
			if n++; n == i+1 {
				check(t, os.CopyFS(there, os.DirFS(here)))
			}
		}})
		check(t, err)
		if _, err := pull.Pull(t.Context(), client, filepath.Join(there, "x"), pull.Options{Repo: repo}); err != nil {
			t.Fatalf("killed at %d of %d: %v", i, count, err)
		}
		same(t, filepath.Join(there, "x"), from, convert.Options{})
	}
	// After the target has its name, before the rest is removed.
	dst := filepath.Join(t.TempDir(), "x")
	_, err = pull.Pull(t.Context(), client, dst, pull.Options{Repo: repo})
	check(t, err)
	check(t, os.Mkdir(dst+".download", 0o777))
	check(t, os.WriteFile(filepath.Join(dst+".download", "pull.json"), []byte(`{"repo":"`+repo+`","revision":"main","commit":"`+hubtest.Commit+`"}`), 0o666))
	if r, err := pull.Pull(t.Context(), client, dst, pull.Options{Repo: repo}); err != nil || r.Commit != hubtest.Commit {
		t.Errorf("killed at the end: %+v, %v", r, err)
	}
	same(t, dst, from, convert.Options{})
}

// What cannot be pulled is refused before anything large is asked for, with what to do, and leaves
// nothing.
func TestRefused(t *testing.T) {
	config := func(change func(map[string]any)) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			raw, err := os.ReadFile(filepath.Join(dir, "config.json"))
			check(t, err)
			var c map[string]any
			check(t, json.Unmarshal(raw, &c))
			change(c)
			raw, err = json.Marshal(c)
			check(t, errors.Join(err, os.WriteFile(filepath.Join(dir, "config.json"), raw, 0o666)))
		}
	}
	gone := func(names ...string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			for _, name := range names {
				check(t, os.Remove(filepath.Join(dir, name)))
			}
		}
	}
	for what, c := range map[string]struct {
		change func(t *testing.T, dir string)
		o      pull.Options
		want   string
	}{
		"architecture": {config(func(c map[string]any) { c["model_type"] = "llama"; delete(c, "text_config") }), pull.Options{}, `"llama" is not supported`},
		"no weights":   {gone(safetensors.IndexName), pull.Options{}, "holds no checkpoint in safetensors"},
		"no config":    {gone("config.json"), pull.Options{}, "holds no config.json"},
		"a shard less": {gone("model-00002-of-00002.safetensors"), pull.Options{}, "has no model-00002-of-00002.safetensors"},
		"GGUF alone": {func(t *testing.T, dir string) {
			gone(safetensors.IndexName)(t, dir)
			check(t, os.WriteFile(filepath.Join(dir, "x-Q4_K_M.gguf"), []byte("GGUF"), 0o666))
		}, pull.Options{}, "name one with --file, of x-Q4_K_M.gguf"},
		"no such file": {gone(), pull.Options{File: "y.gguf"}, "has no file y.gguf"},
		"index leads out": {func(t *testing.T, dir string) {
			check(t, os.WriteFile(filepath.Join(dir, safetensors.IndexName), []byte(`{"weight_map":{"a":"../../x.safetensors"}}`), 0o666))
		}, pull.Options{}, "not a file name in the same directory"},
		"no room":     {gone(), pull.Options{Convert: convert.Options{FreeSpace: func(string) (uint64, error) { return 1 << 20, nil }}}, "free another"},
		"no revision": {gone(), pull.Options{Revision: "v7"}, `no revision "v7"`},
	} {
		from := published(t, 2)
		c.change(t, from)
		h, client := puller(t, from)
		c.o.Repo = repo
		base := t.TempDir()
		_, err := pull.Pull(t.Context(), client, filepath.Join(base, "x"), c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
		for _, r := range h.Requests() {
			if strings.Contains(r.URL.Path, "/lfs/") && !strings.HasPrefix(r.Header.Get("Range"), "bytes=0-") {
				t.Errorf("%s: fetched %s", what, r.URL.Path)
			}
		}
		if left := tree(t, base); len(left) > 0 {
			t.Errorf("%s: left %v", what, slices.Collect(func(yield func(string) bool) {
				for name := range left {
					yield(name)
				}
			}))
		}
	}
	// A folder that is not of a pull is left alone.
	dst := filepath.Join(t.TempDir(), "x")
	check(t, os.MkdirAll(dst+".download", 0o777))
	check(t, os.WriteFile(filepath.Join(dst+".download", "photos"), nil, 0o666))
	_, client := puller(t, published(t, 2))
	if _, err := pull.Pull(t.Context(), client, dst, pull.Options{Repo: repo}); !errors.As(err, new(*pull.StateError)) {
		t.Errorf("a folder in the way: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dst+".download", "photos")); err != nil {
		t.Error(err)
	}
}

// Two pulls to one directory exclude each other.
func TestBusy(t *testing.T) {
	from := published(t, 2)
	_, client := puller(t, from)
	dst := filepath.Join(t.TempDir(), "x")
	var inner error
	_, err := pull.Pull(t.Context(), client, dst, pull.Options{Repo: repo, Progress: func(p pull.Progress) {
		if strings.HasPrefix(p.Step, "converting") && inner == nil {
			_, inner = pull.Pull(t.Context(), client, dst, pull.Options{Repo: repo})
		}
	}})
	if err != nil || !errors.Is(inner, pull.ErrBusy) {
		t.Errorf("got %v and, within it, %v, want nil and ErrBusy", err, inner)
	}
}

// A GGUF file comes as it is with all its parts, named by its path or its name alone.
func TestGGUF(t *testing.T) {
	from := t.TempDir()
	check(t, os.MkdirAll(filepath.Join(from, "Q4"), 0o777))
	contents := map[string][]byte{}
	for i := range 3 {
		name := fmt.Sprintf("x-Q4-%05d-of-00003.gguf", i+1)
		contents[name] = bytes.Repeat([]byte{byte(i), 7}, 700_000)
		check(t, os.WriteFile(filepath.Join(from, "Q4", name), contents[name], 0o666))
	}
	check(t, os.WriteFile(filepath.Join(from, "x-Q8.gguf"), []byte("GGUF8"), 0o666))
	contents["x-Q8.gguf"] = []byte("GGUF8")
	h, client := puller(t, from)
	for file, want := range map[string][]string{
		"x-Q8.gguf": {"x-Q8.gguf"}, "Q4/x-Q4-00001-of-00003.gguf": {"x-Q4-00001-of-00003.gguf", "x-Q4-00002-of-00003.gguf", "x-Q4-00003-of-00003.gguf"},
		"x-Q4-00002-of-00003.gguf": {"x-Q4-00001-of-00003.gguf", "x-Q4-00002-of-00003.gguf", "x-Q4-00003-of-00003.gguf"},
	} {
		dst := filepath.Join(t.TempDir(), "x")
		o := pull.Options{Repo: repo, File: file}
		ctx, cancel := context.WithCancel(t.Context())
		o.Progress = func(p pull.Progress) {
			if p.Fetched > 0 && len(want) > 1 {
				cancel()
			}
		}
		if _, err := pull.Pull(ctx, client, dst, o); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		} else if err != nil {
			o.Progress = nil
			_, err = pull.Pull(t.Context(), client, dst, o)
			check(t, err)
		}
		cancel()
		got := tree(t, dst)
		if len(got) != len(want) {
			t.Errorf("%s: %d files", file, len(got))
		}
		for _, name := range want {
			if got[name] != string(contents[name]) {
				t.Errorf("%s: %s has %d bytes", file, name, len(got[name]))
			}
		}
		if _, err := os.Lstat(dst + ".download"); err == nil {
			t.Errorf("%s: the folder of the pull is left", file)
		}
	}
	dst := filepath.Join(t.TempDir(), "x")
	small := convert.Options{FreeSpace: func(string) (uint64, error) { return 1000, nil }}
	asked := len(h.Requests())
	if _, err := pull.Pull(t.Context(), client, dst, pull.Options{Repo: repo, File: "x-Q4-00001-of-00003.gguf", Convert: small}); !errors.As(err, new(*convert.SpaceError)) || len(h.Requests()) > asked+2 {
		t.Errorf("no room: %v after %d requests", err, len(h.Requests())-asked)
	}
}
