package convert

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/moeflux/moeflux-actor/internal/durable"
)

// stateName is the file that records how far an interrupted conversion got.
const stateName = ".convert-state.json"

// fileSum is the size and content of one finished file.
type fileSum struct {
	Size   int64  `json:"size"`   // bytes
	SHA256 string `json:"sha256"` // hex
}

// state is the content of stateName.
type state struct {
	Version     int                `json:"version"`
	Fingerprint string             `json:"fingerprint"` // of source and options
	Files       map[string]fileSum `json:"files"`       // finished, by name with slashes
	Arrived     int                `json:"arrived"`     // shards that are converted, of those that arrive one by one
}

// stateVersion changes whenever the same source and options would give different bytes.
const stateVersion = 3

// output is the directory where the target is prepared. It is locked against other processes.
type output struct {
	dir   string // DST.partial
	dst   string
	lock  *os.File
	state state
	meter *meter
	files durable.FS
}

// openOutput creates or reopens DST.partial. It keeps files that an earlier conversion of the same
// source with the same options finished, and removes others.
func openOutput(dst, fingerprint string, files durable.FS) (*output, error) {
	o := &output{dir: dst + ".partial", dst: dst, files: files}
	if err := durable.MkdirAll(filepath.Dir(dst), durable.Shared); err != nil {
		return nil, fmt.Errorf("convert: %w", err)
	}
	err := os.Mkdir(o.dir, durable.Shared.Dir())
	fresh := err == nil
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("convert: %w", err)
	}
	if o.lock, err = lockDir(o.dir); err != nil {
		return nil, err
	}
	if err := o.resume(fingerprint, fresh); err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

// lockDir locks a directory until the returned file is closed or the process ends.
func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("convert: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrBusy
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("convert: lock %s: %w", dir, err)
	}
	return f, nil
}

// resume reads the state of an earlier conversion, or starts over.
func (o *output) resume(fingerprint string, fresh bool) error {
	raw, err := os.ReadFile(filepath.Join(o.dir, stateName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		entries, err := os.ReadDir(o.dir)
		if err != nil {
			return fmt.Errorf("convert: %w", err)
		}
		if !fresh && len(entries) > 0 {
			return &ExistsError{Path: o.dir, Why: "was not written by an earlier conversion: move it away or choose another target"}
		}
	case err != nil:
		return fmt.Errorf("convert: %w", err)
	default:
		// A state that cannot be read counts as that of another source: everything is done again.
		if json.Unmarshal(raw, &o.state) == nil && o.state.Version == stateVersion && o.state.Fingerprint == fingerprint {
			return o.sweep()
		}
	}
	o.state.Fingerprint = fingerprint
	return o.startOver()
}

// startOver forgets and removes everything that was written.
func (o *output) startOver() error {
	o.state = state{Version: stateVersion, Fingerprint: o.state.Fingerprint, Files: map[string]fileSum{}}
	if err := o.sweep(); err != nil {
		return err
	}
	return o.saveState()
}

// sweep forgets files whose size is not the recorded one, and removes everything that is not
// recorded.
func (o *output) sweep() error {
	for name, sum := range o.state.Files {
		info, err := os.Lstat(o.path(name))
		if !filepath.IsLocal(filepath.FromSlash(name)) || err != nil || !info.Mode().IsRegular() || info.Size() != sum.Size {
			delete(o.state.Files, name)
		}
	}
	if o.state.Files == nil {
		o.state.Files = map[string]fileSum{}
	}
	return filepath.WalkDir(o.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("convert: %w", err)
		}
		rel, err := filepath.Rel(o.dir, path)
		if err != nil {
			return fmt.Errorf("convert: %w", err)
		}
		if _, kept := o.state.Files[filepath.ToSlash(rel)]; kept || d.IsDir() || rel == stateName {
			return nil
		}
		if o.state.Arrived > 0 && strings.HasSuffix(rel, partSuffix) {
			return nil
		}
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("convert: %w", err)
		}
		return nil
	})
}

func (o *output) path(name string) string { return filepath.Join(o.dir, filepath.FromSlash(name)) }

// kept returns the size of a file that an earlier conversion finished, or 0.
func (o *output) kept(name string) int64 { return o.state.Files[name].Size }

// saveState records the finished files on disk.
func (o *output) saveState() error {
	raw, err := json.MarshalIndent(&o.state, "", " ")
	if err != nil {
		return fmt.Errorf("convert: %w", err)
	}
	path := o.path(stateName)
	if err := durable.ReplaceIn(o.files, path, durable.Shared, func(w io.Writer) error { _, err := w.Write(raw); return err }); err != nil {
		return &WriteError{Path: path, Err: err}
	}
	return nil
}

// write writes one file of the target by fill, unless it is finished already.
func (o *output) write(ctx context.Context, name string, fill func(io.Writer) error) error {
	if size := o.kept(name); size > 0 {
		if err := o.meter.add(ctx, size); err != nil {
			return interrupted(err)
		}
		return nil
	}
	path := o.path(name)
	if err := durable.MkdirAll(filepath.Dir(path), durable.Shared); err != nil {
		return &WriteError{Path: path, Err: err}
	}
	sum := &summer{ctx: ctx, hash: sha256.New(), meter: o.meter}
	var source error // fill's error, which is not the target's fault unless a write failed
	err := durable.ReplaceIn(o.files, path, durable.Shared, func(w io.Writer) error {
		sum.w = w
		source = guard(func() error { return fill(sum) })
		return source
	})
	switch {
	case err == nil:
	case sum.err == nil && source != nil:
		return source
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return interrupted(err)
	default:
		return &WriteError{Path: path, Err: err}
	}
	o.state.Files[name] = fileSum{Size: sum.n, SHA256: hex.EncodeToString(sum.hash.Sum(nil))}
	return o.saveState()
}

func interrupted(err error) error {
	return fmt.Errorf("convert: interrupted; the files finished so far are kept: %w", err)
}

// finish turns the prepared directory into the target.
func (o *output) finish() error {
	for _, dir := range []string{filepath.Join(o.dir, "packed_experts"), o.dir} {
		if err := o.files.SyncDir(dir); err != nil {
			return &WriteError{Path: dir, Err: err}
		}
	}
	// An empty directory may be in the way. Anything else makes Remove or Rename fail.
	if err := os.Remove(o.dst); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &ExistsError{Path: o.dst, Why: "appeared while the conversion was running; the result is in " + o.dir}
	}
	if err := o.files.Rename(o.dir, o.dst); err != nil {
		return &WriteError{Path: o.dst, Err: err}
	}
	// From here on the target is complete. The state is removed last: without it the prepared
	// directory would not be recognised as ours.
	if err := os.Remove(filepath.Join(o.dst, stateName)); err != nil {
		return &WriteError{Path: o.dst, Err: err}
	}
	for _, dir := range []string{o.dst, filepath.Dir(o.dst)} {
		if err := o.files.SyncDir(dir); err != nil {
			return &WriteError{Path: dir, Err: err}
		}
	}
	return nil
}

// discard removes the prepared directory if it holds nothing but its state.
func (o *output) discard() {
	if len(o.state.Files) == 0 && o.state.Arrived == 0 && os.Remove(o.path(stateName)) == nil {
		_ = os.Remove(o.dir) // an empty directory left behind does no harm
	}
}

func (o *output) close() { o.lock.Close() }

// summer passes bytes on, hashes and counts them, and stops when the context ends.
type summer struct {
	ctx   context.Context
	w     io.Writer
	hash  hash.Hash
	meter *meter
	n     int64
	err   error // of a write, or of the context
}

func (s *summer) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if s.err = s.meter.add(s.ctx, int64(len(p))); s.err != nil {
		return 0, s.err
	}
	s.hash.Write(p)
	n, err := s.w.Write(p)
	s.n += int64(n)
	s.err = err
	return n, err
}

// meter reports progress.
type meter struct {
	report      func(Progress)
	step        string
	done, total int64
}

// add counts bytes and reports whether to go on.
func (m *meter) add(ctx context.Context, n int64) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m.done += n
	m.say("")
	return nil
}

func (m *meter) say(warning string) {
	if m.report != nil {
		m.report(Progress{Step: m.step, Done: min(m.done, m.total), Total: m.total, Warning: warning})
	}
}

func diskFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}
