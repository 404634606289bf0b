package convert

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/moeflux/moeflux-actor/internal/durable"
	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/weights"
)

// partSuffix follows the name of a large file until all of its blocks are written.
const partSuffix = ".part"

// target is a large file that is written block by block.
type target struct {
	name string
	size int64
	// blocks calls fn for each block, by ascending offset.
	blocks      func(fn func(placed) error) error
	first, last int // the shards that complete its first blocks, and its last

	layer, record int // of the experts of a layer: bytes of a record; 0 otherwise
}

// layerBlocks returns the blocks of a layer's file.
func (j *job) layerBlocks(l *layerExperts) func(func(placed) error) error {
	return func(fn func(placed) error) error {
		var at int64
		for e := range j.in.cfg.NumExperts {
			blocks, err := l.blocks(e)
			if err != nil {
				return err
			}
			for _, b := range blocks {
				if err := fn(placed{block: b, offset: at}); err != nil {
					return err
				}
				at += b.bytes
			}
		}
		return nil
	}
}

// denseTarget is model_weights.bin.
func denseTarget(p *plan) *target {
	return &target{name: weights.DataName, size: p.denseSize, blocks: func(fn func(placed) error) error {
		for _, b := range p.dense {
			if err := fn(b); err != nil {
				return err
			}
		}
		return nil
	}}
}

// hasPart reports whether a target that was begun is there.
func (o *output) hasPart(t *target) bool {
	info, err := os.Lstat(o.path(t.name + partSuffix))
	return err == nil && info.Mode().IsRegular() && info.Size() == t.size
}

// fill writes the blocks of a target that shard k completes, durably.
func (r *arrival) fill(ctx context.Context, t *target, k int) error {
	path := r.out.path(t.name + partSuffix)
	if err := durable.MkdirAll(filepath.Dir(path), durable.Shared); err != nil {
		return &WriteError{Path: path, Err: err}
	}
	f, err := r.out.files.Edit(path, durable.Shared.File())
	if err != nil {
		return &WriteError{Path: path, Err: err}
	}
	defer f.Close()
	if err := f.Truncate(t.size); err != nil {
		return &WriteError{Path: path, Err: err}
	}
	err = t.blocks(func(b placed) error {
		if r.completes(b.block) != k {
			return nil
		}
		w := &placeWriter{ctx: ctx, meter: r.out.meter, w: io.NewOffsetWriter(f, b.offset)}
		r.emit.w = w
		err := r.emit.write(b.block)
		switch {
		case w.stopped != nil:
			return interrupted(w.stopped)
		case w.err != nil:
			return &WriteError{Path: path, Err: w.err}
		case err == nil && w.n != b.bytes:
			panic(fmt.Sprintf("convert: block of %d bytes in a place for %d", w.n, b.bytes))
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return &WriteError{Path: path, Err: err}
	}
	return nil
}

// placeWriter counts the bytes of a block, and stops when the context ends.
type placeWriter struct {
	ctx     context.Context
	meter   *meter
	w       io.Writer
	n       int64
	stopped error // the cause of the context's end
	err     error // of a write
}

func (p *placeWriter) Write(b []byte) (int, error) {
	if p.stopped = p.meter.add(p.ctx, int64(len(b))); p.stopped != nil {
		return 0, p.stopped
	}
	n, err := p.w.Write(b)
	p.n += int64(n)
	p.err = err
	return n, err
}

// seal gives the targets whose blocks are all written their names, and records their checksums.
func (r *arrival) seal(ctx context.Context) error {
	for _, t := range r.targets {
		if t.last >= r.out.state.Arrived || r.out.kept(t.name) > 0 {
			continue
		}
		sum, err := r.sum(ctx, t)
		if err != nil {
			return err
		}
		// A crash before the file has its name leaves a record without a file, which is forgotten,
		// and the part, which is sealed again.
		r.out.state.Files[t.name] = sum
		if err := r.out.saveState(); err != nil {
			return err
		}
		path := r.out.path(t.name)
		if err := r.out.files.Rename(path+partSuffix, path); err != nil {
			return &WriteError{Path: path, Err: err}
		}
		if err := r.out.files.SyncDir(filepath.Dir(path)); err != nil {
			return &WriteError{Path: path, Err: err}
		}
	}
	return nil
}

// sum reads a target that is whole.
func (r *arrival) sum(ctx context.Context, t *target) (fileSum, error) {
	f, err := os.Open(r.out.path(t.name + partSuffix))
	if err != nil {
		return fileSum{}, fmt.Errorf("convert: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	var w io.Writer = h
	if t.record > 0 {
		sums := &expertfile.SumWriter{W: h, Record: t.record}
		defer func() { r.sums.done[t.layer] = sums.Sums }()
		w = sums
	}
	buf := make([]byte, 1<<20)
	var n int64
	for {
		if ctx.Err() != nil {
			return fileSum{}, interrupted(context.Cause(ctx))
		}
		got, err := f.Read(buf)
		if got > 0 {
			n += int64(got)
			_, _ = w.Write(buf[:got]) // hashes do not fail
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return fileSum{}, fmt.Errorf("convert: %w", err)
		}
	}
	return fileSum{Size: n, SHA256: hex.EncodeToString(h.Sum(nil))}, nil
}
