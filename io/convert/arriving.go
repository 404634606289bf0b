package convert

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/moeflux/moeflux-actor/io/safetensors"
)

// Arriving is a checkpoint whose files of tensors, its shards, come one after another.
type Arriving struct {
	// Dir holds the small files and the index from the beginning, and a shard while it is needed.
	Dir string
	// Name is what the manifest calls the model.
	Name   string
	Shards Shards
}

// Shards brings the shards of a checkpoint. It is called by the goroutine that called
// ConvertArriving.
type Shards interface {
	// Describe tells what a shard is, which need not be there.
	Describe(ctx context.Context, name string) (Shard, error)
	// Bring puts a shard into the directory, whole and checked, unless it is there.
	Bring(ctx context.Context, name string) error
	// Remove removes a shard, which will not be read again and may be gone already.
	Remove(name string) error
}

// Shard describes a shard.
type Shard struct {
	Header []byte // its JSON header, without the length before it
	Size   int64  // of the file, in bytes
	Sum    string // a checksum of the file, which tells it from others of the same header
	Have   int64  // bytes of the file that take up room on the disk already
}

// ConvertArriving is Convert of a checkpoint whose shards come one after another, in the order of
// their names. Everything that a shard is needed for is written as soon as it is there, and then
// the shard is removed. A shard that nothing is needed of is never asked for. So the disk holds the
// target and one shard; where the parts of one matrix lie in several shards, it holds these. The
// result is, byte for byte, what Convert makes of the whole checkpoint in a directory of that name.
//
// After an interruption the same call continues with the first shard that was not converted. If
// anything in what Describe says, in the small files or in the options has changed, it starts over.
//
// Errors are those of Convert, and those of Shards.
func ConvertArriving(ctx context.Context, a Arriving, dst string, o Options) error {
	return guard(func() error { return convertArriving(ctx, a, dst, o) })
}

func convertArriving(ctx context.Context, a Arriving, dst string, o Options) error {
	dst, o, err := prepare(dst, o)
	if err != nil {
		return err
	}
	in, shards, err := a.open(ctx, o)
	if err != nil {
		return err
	}
	defer in.ckpt.Close()
	j, err := openJob(in, dst, o)
	if err != nil {
		return err
	}
	defer j.out.close()
	r, err := newArrival(j, a.Shards, shards)
	if err != nil {
		return err
	}
	if err := r.resume(); err != nil {
		return err
	}
	if err := r.checkSpace(o.FreeSpace); err != nil {
		j.out.discard()
		return err
	}
	if err := r.run(ctx); err != nil {
		return err
	}
	return j.out.finish()
}

// open plans the conversion by what Describe says. The caller closes the checkpoint.
func (a Arriving) open(ctx context.Context, o Options) (*input, []*shard, error) {
	in, err := readInput(a.Dir)
	if err != nil {
		return nil, nil, err
	}
	in.name = a.Name
	var list []*shard
	var failed error // of Describe; asking for the other shards would fail again
	in.ckpt, err = safetensors.OpenDirWith(a.Dir, func(path string) (*safetensors.File, error) {
		if failed != nil {
			return nil, failed
		}
		s := &shard{name: filepath.Base(path), last: notNeeded}
		if s.Shard, failed = a.Shards.Describe(ctx, s.name); failed != nil {
			return nil, failed
		}
		var err error
		if s.file, err = safetensors.Reserve(path, s.Header, s.Size); err != nil {
			return nil, err
		}
		list = append(list, s)
		return s.file, nil
	})
	switch {
	case failed != nil && !errors.Is(failed, fs.ErrNotExist):
		return nil, nil, failed
	case err != nil:
		return nil, nil, fmt.Errorf("convert: %w", err)
	}
	if err := in.planFor(o); err != nil {
		in.ckpt.Close()
		return nil, nil, err
	}
	if in.fingerprint, err = arrivalPrint(in, list, o); err != nil {
		in.ckpt.Close()
		return nil, nil, err
	}
	return in, list, nil
}

// fileOf returns the file that a tensor of a checkpoint is in. GGUF files do not come in pieces.
func (in *input) fileOf(tensor string) *safetensors.File {
	return in.ckpt.(*safetensors.Checkpoint).FileOf(tensor)
}

// arrivalPrint is fingerprint for shards that are not there.
func arrivalPrint(in *input, shards []*shard, o Options) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "arriving, bits %d, of experts %d, layout %s\n", o.Bits, o.ExpertBits, o.layout())
	for _, s := range shards {
		fmt.Fprintf(h, "shard %q %d %q %x\n", s.name, s.Size, s.Sum, sha256.Sum256(s.Header))
	}
	return smallPrint(h, in.small)
}
