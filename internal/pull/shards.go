package pull

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/moeflux/moeflux-actor/internal/durable"
	"github.com/moeflux/moeflux-actor/internal/hub"
	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/safetensors"
)

const (
	indexName    = safetensors.IndexName
	headerSuffix = ".header"
	maxSmall     = 1 << 30   // bytes of a file that is not a shard
	maxHeader    = 100e6     // bytes of a shard's header
	firstBytes   = 128 << 10 // of a shard: most headers are shorter
	askers       = 8         // headers that are asked for at a time
)

// shards brings the shards of a checkpoint from the hub.
type shards struct {
	*puller
	all     map[string]hub.File
	headers sync.Once
	failed  error // to read the headers
}

// newShards finds the files that the index names.
func newShards(p *puller) (*shards, error) {
	names, err := safetensors.Shards(p.work.path())
	if err != nil {
		return nil, err
	}
	s := &shards{puller: p, all: map[string]hub.File{}}
	for _, name := range names {
		f, ok := p.checkout.Find(name)
		if !ok {
			return nil, &RepoError{Repo: p.options.Repo, Why: fmt.Sprintf("has no %s, which its %s names", name, indexName)}
		}
		s.all[name] = f
		p.tally.total += f.Size
	}
	return s, nil
}

// Describe reads a shard's header. The first call has all of them come.
func (s *shards) Describe(ctx context.Context, name string) (convert.Shard, error) {
	s.headers.Do(func() { s.failed = s.fetchHeaders(ctx) })
	if s.failed != nil {
		return convert.Shard{}, s.failed
	}
	f := s.all[name]
	header, err := os.ReadFile(s.headerPath(f))
	if err != nil {
		return convert.Shard{}, err
	}
	return convert.Shard{Header: header, Size: f.Size, Sum: f.Sum(), Have: hub.Have(s.work.files, f)}, nil
}

func (s *shards) headerPath(f hub.File) string {
	return filepath.Join(s.work.path(), f.Local()+headerSuffix)
}

// fetchHeaders has those headers come that an earlier call did not leave.
func (s *shards) fetchHeaders(ctx context.Context) error {
	s.tally.step = "asking what the shards hold"
	s.tally.say("")
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	todo := make(chan hub.File)
	var workers sync.WaitGroup
	for range askers {
		workers.Go(func() {
			for f := range todo {
				if err := s.fetchHeader(ctx, f); err != nil {
					cancel(err) // the others end
				}
			}
		})
	}
	for _, f := range s.all {
		if _, err := os.Stat(s.headerPath(f)); errors.Is(err, fs.ErrNotExist) {
			todo <- f
		}
	}
	close(todo)
	workers.Wait()
	return context.Cause(ctx)
}

// fetchHeader reads the beginning of a shard and keeps its header.
func (s *shards) fetchHeader(ctx context.Context, f hub.File) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	raw, err := s.checkout.Begin(ctx, f, firstBytes)
	if err != nil {
		return err
	}
	if len(raw) < 8 {
		return &safetensors.FormatError{Path: f.Name, Why: fmt.Sprintf("%d bytes are too few for the length of the header", f.Size)}
	}
	n := binary.LittleEndian.Uint64(raw)
	if n > maxHeader || n > uint64(f.Size-8) {
		return &safetensors.FormatError{Path: f.Name, Why: fmt.Sprintf("header of %d bytes in a file of %d: not a safetensors file", n, f.Size)}
	}
	if end := 8 + int64(n); end > int64(len(raw)) {
		if raw, err = s.checkout.Begin(ctx, f, end); err != nil {
			return err
		}
	}
	return durable.WriteFile(s.headerPath(f), durable.Shared, raw[8:8+n])
}

// Bring fetches a shard.
func (s *shards) Bring(ctx context.Context, name string) error { return s.fetch(ctx, s.all[name]) }

// Remove removes a shard that is converted.
func (s *shards) Remove(name string) error {
	f := s.all[name]
	s.tally.set(f, f.Size)
	return hub.Remove(s.work.files, f)
}
