package actors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/moeflux/moeflux-actor/actors/runtime"
	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/fingerprint"
	"github.com/moeflux/moeflux-actor/io/modelfiles"
	"github.com/moeflux/moeflux-actor/snapshot"
)

// identity is what tells the open model from others. The first call of each function reads files.
type identity struct {
	dir    string
	own    func() (fingerprint.Fingerprint, error)
	former func() (fingerprint.Fingerprint, error) // in the states of earlier versions
}

func identityOf(cfg Config) identity {
	return identity{
		dir: cfg.Model,
		own: sync.OnceValues(func() (fingerprint.Fingerprint, error) { return fingerprint.Of(cfg.Model, cfg.ExpertsDir) }),
		former: sync.OnceValues(func() (fingerprint.Fingerprint, error) {
			folder := ""
			if cfg.ExpertsDir != "" {
				m, err := modelfiles.Config(cfg.Model)
				if err != nil {
					return fingerprint.Fingerprint{}, err
				}
				folder = expertfile.FindIn(cfg.ExpertsDir, m)
			}
			return fingerprint.Former(cfg.Model, folder)
		}),
	}
}

// Fingerprint identifies the open model in the seals of states. The first call reads files.
func (e *Engine) Fingerprint(ctx context.Context) (snapshot.Fingerprint, error) {
	return e.read(ctx, e.identity.own)
}

// FormerFingerprint identifies the open model in the seals of states that earlier versions saved,
// as long as no file of its directory has changed. The first call reads files.
func (e *Engine) FormerFingerprint(ctx context.Context) (snapshot.Fingerprint, error) {
	return e.read(ctx, e.identity.former)
}

func (e *Engine) read(ctx context.Context, of func() (fingerprint.Fingerprint, error)) (snapshot.Fingerprint, error) {
	if ctx.Err() != nil {
		return snapshot.Fingerprint{}, runtime.EndOf(ctx)
	}
	return bounded(ctx, e, func() (snapshot.Fingerprint, error) { return printOf(of) })
}

// printOf reads a fingerprint, without patience.
func printOf(of func() (fingerprint.Fingerprint, error)) (snapshot.Fingerprint, error) {
	f, err := of()
	if err != nil {
		return snapshot.Fingerprint{}, fmt.Errorf("actors: %w", err)
	}
	return snapshot.Fingerprint(f), nil
}

// FormerRuleError reports a state of an earlier version, which identified a model by every file in
// its directory: it is of another model, or such a file has been added, removed or changed since.
type FormerRuleError struct {
	Dir string // of the open model
	Err error  // wraps snapshot.ErrFingerprint
}

func (e *FormerRuleError) Error() string {
	return fmt.Sprintf("the state was saved by an earlier version, which identified a model by every file in its directory. "+
		"Either it is of another model, or a file in %s has been added, removed or changed since", e.Dir)
}

func (e *FormerRuleError) Unwrap() error { return e.Err }

// openState checks a file.
func (e *Engine) openState(r io.ReaderAt, size int64, o LoadOptions) (*snapshot.File, error) {
	read := snapshot.ReadOptions{Accept: o.Accept, MaxPositions: e.info.Context}
	if !o.AnyModel {
		of, err := printOf(e.identity.own)
		if err != nil {
			return nil, err
		}
		read.Fingerprint = of
	}
	f, err := snapshot.Open(r, size, e.Shape(), read)
	if errors.Is(err, snapshot.ErrFingerprint) {
		return e.openFormer(r, size, read, err)
	}
	return f, err
}

// openFormer opens a file of an earlier version, which was refused for its fingerprint.
func (e *Engine) openFormer(r io.ReaderAt, size int64, read snapshot.ReadOptions, refused error) (*snapshot.File, error) {
	f, err := snapshot.Inspect(r, size)
	if err != nil {
		return nil, err
	}
	if seal := f.Seal(); seal == nil || fingerprint.Fingerprint(seal.Fingerprint).Current() {
		return nil, refused
	}
	if read.Fingerprint, err = printOf(e.identity.former); err != nil {
		return nil, err
	}
	former, err := snapshot.Open(r, size, e.Shape(), read)
	if errors.Is(err, snapshot.ErrFingerprint) {
		return nil, &FormerRuleError{Dir: e.identity.dir, Err: err}
	}
	return former, err
}
