package pull

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/moeflux/moeflux-actor/internal/durable"
	"github.com/moeflux/moeflux-actor/internal/hub"
	"github.com/moeflux/moeflux-actor/io/convert"
)

// Options says what to fetch, and how to convert it.
type Options struct {
	Repo     string // ORG/NAME
	Revision string // a branch, a tag or a commit; "" means main
	// File is a GGUF file of the repository, which is fetched as it is with all its parts; "" means
	// the checkpoint in safetensors, which is converted.
	File    string
	Convert convert.Options // its Progress is not called
	// Progress, if not nil, is called often, by the goroutine that called Pull.
	Progress func(Progress)
}

// Progress is how far a pull is.
type Progress struct {
	Step        string // what is done, for display
	Done, Total int64  // bytes of the files, as they are with the hub
	Fetched     int64  // bytes that came since Pull was called
	Warning     string // something to know; "" nearly always
}

// Result is what a pull made.
type Result struct {
	Commit string   // that the files are of
	Files  []string // the GGUF files that were fetched; none of a packed model
}

// StateError reports a folder that is not of this pull.
type StateError struct{ Dir, Why string }

func (e *StateError) Error() string { return e.Dir + " " + e.Why }

// Pull makes the directory dst of a repository's files: a packed model, or with Options.File what
// that names. dst must not exist, or must be empty; it is complete from the moment it exists. After
// an interruption the same call goes on.
//
// Errors are those of convert.ConvertArriving and of the hub, *RepoError, *StateError, ErrBusy, or
// the cause of ctx's end.
func Pull(ctx context.Context, client *hub.Client, dst string, o Options) (Result, error) {
	if o.Revision == "" {
		o.Revision = "main"
	}
	target, err := convert.Target(dst)
	if err != nil {
		if commit, ok := finished(dst, o, err); ok {
			return Result{Commit: commit}, nil
		}
		return Result{}, err
	}
	w, err := openWork(target, o)
	if err != nil {
		return Result{}, err
	}
	defer w.close()
	p := &puller{client: client, work: w, target: target, options: o}
	result, err := p.pull(ctx)
	if err != nil {
		if left := w.tidy(target); left != nil {
			err = errors.Join(err, left)
		}
		return Result{}, err
	}
	return result, w.remove()
}

// finished reports whether a target that exists is what this pull made before it was killed, and
// removes what it left.
func finished(dst string, o Options, err error) (commit string, ok bool) {
	var exists *convert.ExistsError
	if !errors.As(err, &exists) || !exists.Complete {
		return "", false
	}
	w, err := openWork(exists.Path, o)
	if err != nil {
		return "", false
	}
	defer w.close()
	if w.state.Commit == "" {
		_ = w.tidy(exists.Path) // nothing was begun
		return "", false
	}
	return w.state.Commit, w.remove() == nil
}

// puller is one call of Pull.
type puller struct {
	client  *hub.Client
	work    *work
	target  string
	options Options

	checkout *hub.Checkout
	tally    tally
}

func (p *puller) pull(ctx context.Context) (Result, error) {
	if err := p.open(ctx); err != nil {
		return Result{}, err
	}
	if p.options.File != "" {
		return p.gguf(ctx)
	}
	return p.model(ctx)
}

// open pins the commit and lists its files.
func (p *puller) open(ctx context.Context) error {
	p.tally = tally{report: p.options.Progress, have: map[string]int64{}, step: "asking for " + p.options.Repo}
	p.tally.say("")
	w := p.work
	begun := w.state.Commit != ""
	if !begun {
		commit, err := p.client.Commit(ctx, p.options.Repo, p.options.Revision)
		if err != nil {
			return err
		}
		if err := w.begin(p.options, commit); err != nil {
			return err
		}
	}
	var err error
	p.checkout, err = p.client.Checkout(ctx, p.options.Repo, w.state.Commit)
	var gone *hub.NotFoundError
	if begun && errors.As(err, &gone) {
		return fmt.Errorf("%w any more: remove %s to begin with the newest", err, w.dir)
	}
	return err
}

// fetch fetches a file into the folder of files.
func (p *puller) fetch(ctx context.Context, f hub.File) error {
	p.tally.step = "fetching " + f.Local()
	return p.checkout.Fetch(ctx, f, p.work.files, p.tally.of(f))
}

// model fetches a checkpoint and converts it.
func (p *puller) model(ctx context.Context) (Result, error) {
	if err := p.checkModel(); err != nil {
		return Result{}, err
	}
	for _, name := range append(convert.SmallFiles(), indexName) {
		if f, ok := p.checkout.Find(name); ok {
			if f.Size > maxSmall {
				return Result{}, &RepoError{Repo: p.options.Repo, Why: fmt.Sprintf("has a %s of %d bytes, which no model has", name, f.Size)}
			}
			if err := p.fetch(ctx, f); err != nil {
				return Result{}, err
			}
		}
	}
	s, err := newShards(p)
	if err != nil {
		return Result{}, err
	}
	o := p.options.Convert
	o.Progress = func(c convert.Progress) {
		p.tally.step = c.Step
		p.tally.say(c.Warning)
	}
	a := convert.Arriving{Dir: p.work.path(), Name: filepath.Base(p.options.Repo), Shards: s}
	return Result{Commit: p.work.state.Commit}, convert.ConvertArriving(ctx, a, p.target, o)
}

// gguf fetches a GGUF file with its parts.
func (p *puller) gguf(ctx context.Context) (Result, error) {
	parts, err := p.parts()
	if err != nil {
		return Result{}, err
	}
	var missing int64
	for _, f := range parts {
		p.tally.total += f.Size
		missing += f.Size - min(f.Size, hub.Have(p.work.files, f))
	}
	free := p.options.Convert.FreeSpace
	if free == nil {
		free = durable.FreeSpace
	}
	got, err := free(filepath.Dir(p.target))
	if err != nil {
		return Result{}, fmt.Errorf("free space of %s: %w", filepath.Dir(p.target), err)
	}
	if uint64(missing) > got {
		return Result{}, &convert.SpaceError{Dir: filepath.Dir(p.target), Need: uint64(missing), Free: got}
	}
	result := Result{Commit: p.work.state.Commit}
	for _, f := range parts {
		if err := p.fetch(ctx, f); err != nil {
			return Result{}, err
		}
		result.Files = append(result.Files, filepath.Join(p.target, f.Local()))
	}
	// An empty directory may be in the way. Anything else makes Rename fail.
	if err := durable.Rename(p.work.path(), p.target); err != nil {
		return Result{}, err
	}
	return result, nil
}

// tally counts bytes, for progress.
type tally struct {
	report  func(Progress)
	step    string
	have    map[string]int64 // of each file
	done    int64            // the sum of have
	total   int64
	fetched int64
}

// of returns what counts the bytes of a file on its way.
func (t *tally) of(f hub.File) func(int64) {
	first := true
	return func(have int64) {
		if grown := have - t.have[f.Name]; grown > 0 && !first {
			t.fetched += grown
		}
		first = false
		t.set(f, have)
		t.say("")
	}
}

// set notes how many bytes of a file are done.
func (t *tally) set(f hub.File, have int64) {
	t.done += have - t.have[f.Name]
	t.have[f.Name] = have
}

func (t *tally) say(warning string) {
	if t.report != nil {
		t.report(Progress{Step: t.step, Done: min(t.done, t.total), Total: t.total, Fetched: t.fetched, Warning: warning})
	}
}

// exists reports whether something has this path.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
