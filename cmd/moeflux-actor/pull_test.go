package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/hub/hubtest"
	"github.com/moeflux/moeflux-actor/io/safetensors"
)

const hubRepo = "some-org/Tiny-MoE-4bit"

// published starts a hub with a checkpoint in shards, and returns its folder, too.
func published(t *testing.T) (*hubtest.Hub, string) {
	t.Helper()
	src := fixtures.Dir(t, fixtures.Qwen35MoEQ4)
	dir := filepath.Join(t.TempDir(), filepath.Base(hubRepo))
	if err := os.CopyFS(dir, os.DirFS(src)); err != nil {
		t.Fatal(err)
	}
	c, err := safetensors.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const shards = 4
	names, weightMap := c.Names(), map[string]string{}
	var errs []error
	for i := range shards {
		var list []safetensors.Tensor
		file := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, shards)
		for _, name := range names[len(names)*i/shards : len(names)*(i+1)/shards] {
			x, _ := c.Tensor(name)
			list = append(list, x)
			weightMap[name] = file
		}
		errs = append(errs, safetensors.WriteFile(filepath.Join(dir, file), list, nil))
	}
	for _, f := range c.Files() {
		errs = append(errs, os.Remove(f.Path()))
	}
	raw, err := json.Marshal(map[string]any{"weight_map": weightMap})
	if err := errors.Join(append(errs, err, os.WriteFile(filepath.Join(dir, safetensors.IndexName), raw, 0o666))...); err != nil {
		t.Fatal(err)
	}
	h := hubtest.New(t, hubRepo, dir)
	h.Redirect(t)
	return h, dir
}

// gate lets a number of bytes of weights through, and then nothing until it is opened.
type gate struct {
	http.ResponseWriter
	left *atomic.Int64
	held chan struct{} // is told when something waits
	open chan struct{} // is closed to let everything through
}

func (g gate) Write(p []byte) (int, error) {
	if g.left.Add(-int64(len(p))) < 0 {
		select {
		case g.held <- struct{}{}:
		default:
		}
		<-g.open
		panic(http.ErrAbortHandler)
	}
	n, err := g.ResponseWriter.Write(p)
	if f, ok := g.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
	return n, err
}

// The command that is killed, wherever it is, and given again makes what convert makes of the whole
// checkpoint. Ctrl-C ends it with 130 and a line that says how to go on.
func TestPullKilled(t *testing.T) {
	h, dir := published(t)
	h.Token = "hf_secret"
	want := filepath.Join(t.TempDir(), "want")
	mustCall(t, "", "convert", "--expert-bits", "2", dir, want)
	var size int64
	for name, content := range folder(t, dir) {
		if strings.HasSuffix(name, ".safetensors") {
			size += int64(len(content))
		}
	}
	for i, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGKILL, syscall.SIGINT, syscall.SIGTERM} {
		dst := filepath.Join(t.TempDir(), "model")
		command := func() (*exec.Cmd, *strings.Builder) {
			cmd := exec.Command(os.Args[0], "pull", "--expert-bits", "2", hubRepo, dst)
			cmd.Env = append(os.Environ(), asProgram+"=1", "HF_ENDPOINT="+h.URL, "HF_TOKEN=hf_secret")
			var stderr strings.Builder
			cmd.Stderr = &stderr
			return cmd, &stderr
		}
		g := gate{left: new(atomic.Int64), held: make(chan struct{}, 1), open: make(chan struct{})}
		g.left.Store(size * int64(i+1) / 8) // a shard of what is left out does not come
		h.Before = func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
			if strings.HasPrefix(r.URL.Path, "/lfs/") && !strings.HasPrefix(r.Header.Get("Range"), "bytes=0-") { // headers pass
				g := g
				g.ResponseWriter = w
				return g, false
			}
			return w, false
		}
		cmd, stderr := command()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case <-g.held:
		case err := <-ended:
			t.Fatalf("%d, %v: it ended by itself: %v, %s; %d bytes of %d were left to pass", i, signal, err, stderr, g.left.Load(), size)
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Error(err)
		}
		<-ended
		close(g.open)
		code := cmd.ProcessState.ExitCode()
		if signal == syscall.SIGINT && (code != exitInterrupted || !strings.Contains(stderr.String(), "give the same command again")) ||
			signal == syscall.SIGTERM && code != exitTerminated {
			t.Errorf("%v: exit %d, stderr %q", signal, code, stderr)
		}
		if _, err := os.Lstat(dst); err == nil {
			t.Errorf("%v: the model is there", signal)
		}
		h.Before = nil
		cmd, stderr = command()
		if err := cmd.Run(); err != nil {
			t.Fatalf("after %v: %v, %s", signal, err, stderr)
		}
		got, expected := folder(t, dst), folder(t, want)
		for name, content := range expected {
			if got[name] != content {
				t.Errorf("after %v: %s differs", signal, name)
			}
		}
		if left, _ := filepath.Glob(dst + ".*"); len(left) > 0 || len(got) != len(expected) {
			t.Errorf("after %v: %d files, want %d; beside the model %v", signal, len(got), len(expected), left)
		}
	}
	for _, r := range h.Requests() {
		if elsewhere := strings.HasPrefix(r.URL.Path, "/lfs/"); elsewhere == (r.Header.Get("Authorization") != "") {
			t.Errorf("%s: Authorization %q", r.URL.Path, r.Header.Get("Authorization"))
		}
	}
}

// folder returns all files under a folder.
func folder(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out[rel] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// What a pull says, and what it refuses.
func TestPull(t *testing.T) {
	h, _ := published(t)
	e := testEnv()
	e.Hub.Endpoint, e.Hub.Token = h.URL, ""
	dst := filepath.Join(t.TempDir(), "model")
	var said struct {
		Dst, Repo, Commit string
		Files             []string
		Seconds           float64
	}
	o := callWith(t.Context(), e, "", "pull", hubRepo, dst, "--json")
	if err := json.Unmarshal([]byte(o.stdout), &said); err != nil || said.Dst != dst || said.Repo != hubRepo || said.Commit != hubtest.Commit || o.code != exitOK {
		t.Errorf("exit %d, %q, %q", o.code, o.stdout, o.stderr)
	}
	mustCall(t, "", "inspect", dst, "--verify")
	for want, args := range map[string][]string{
		"has the form ORG/NAME":                 {"tiny", dst},
		"must be a GGUF file":                   {hubRepo, dst, "--file", "model.safetensors"},
		"leave out --bits":                      {hubRepo, dst, "--file", "x.gguf", "--bits", "4"},
		"--bits 3: must be 4 or 8":              {hubRepo, dst, "--bits", "3"},
		`--layout "columns" is unknown`:         {hubRepo, dst, "--layout", "columns"},
		"holds a converted model already":       {hubRepo, dst},
		`has no revision "v9"`:                  {hubRepo, dst + "2", "--revision", "v9"},
		"has no file x.gguf":                    {hubRepo, dst + "2", "--file", "x.gguf"},
		"check the name; a private or gated":    {"some-org/other", dst + "2"},
		"HF_ENDPOINT \"ftp://x\" is not an add": nil,
	} {
		env := e
		if args == nil {
			env.Hub.Endpoint = "ftp://x"
			args = []string{hubRepo, dst + "2"}
		}
		o := callWith(t.Context(), env, "", append([]string{"pull"}, args...)...)
		if o.code == exitOK || !strings.Contains(o.stderr, want) {
			t.Errorf("%q: exit %d, stderr %q, want %q", args, o.code, o.stderr, want)
		}
		checkErrorLine(t, o)
	}
	if left, _ := filepath.Glob(dst + "[.2]*"); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// A hub that is busy is waited for, and the user told so.
func TestPullWaits(t *testing.T) {
	h, _ := published(t)
	e := testEnv()
	e.Hub.Endpoint = h.URL
	ctx, cancel := context.WithCancel(t.Context())
	h.Before = func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
		w.Header().Set("Retry-After", "400")
		w.WriteHeader(http.StatusTooManyRequests)
		cancel() // once the answer is read, at the latest while it waits
		return w, true
	}
	o := callWith(ctx, e, "", "pull", hubRepo, filepath.Join(t.TempDir(), "model"))
	if o.code != exitInterrupted || !strings.Contains(o.stderr, "interrupted") {
		t.Errorf("exit %d, stderr %q", o.code, o.stderr)
	}
	e.Hub.Wait = func(context.Context, time.Duration) error { return errors.New("enough of it") }
	o = callWith(t.Context(), e, "", "pull", hubRepo, filepath.Join(t.TempDir(), "model"))
	if o.code != exitFailed || !strings.Contains(o.stderr, "answers 429 Too Many Requests; trying again in 6m40s\n") {
		t.Errorf("exit %d, stderr %q", o.code, o.stderr)
	}
}
