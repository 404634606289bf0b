package convert

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/moeflux/moeflux-actor/internal/durable"
	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/model/quant"
	"github.com/moeflux/moeflux-actor/tokenizer"
)

// Options says how to convert. The zero value keeps every number unchanged.
type Options struct {
	// Bits quantises matrices that are not quantised yet to 4 or 8 bits, in groups of 64. 0 keeps
	// BF16 and F32 as they are and widens F16 to F32, because there are no kernels for F16. With
	// Bits set, router gates and shared gates always get 8 bits. Matrices whose inputs do not
	// divide into groups are kept. Fewer bits are smaller, faster and less exact.
	Bits int
	// ExpertBits is Bits for the routed experts: 2, 4 or 8; 0 means the same as Bits. Unlike Bits
	// it also requantises matrices that have more bits, in the same groups. Two bits read half as
	// much from disk as four and cost much exactness: for normally distributed numbers the mean
	// square error is 0.16 of their variance, against 0.01 with four bits. (flash-moe makes the
	// smallest and largest number of a group the ends of its four values, which would make it
	// 0.20.)
	ExpertBits int
	// RowOrder writes every matrix row after row, as moeflux and flash-moe read it. The default is
	// panels of 16 rows (package quant) for quantised matrices that divide into them, which the
	// kernels for processors read fastest. Matrices that are multiplied head by head stay in rows.
	RowOrder bool
	// Progress, if not nil, is called often by the goroutine that called Convert.
	Progress func(Progress)
	// FreeSpace returns how many bytes may be written under dir. nil asks the file system.
	FreeSpace func(dir string) (uint64, error)

	// files is where files are written; nil means the operating system's file system. Tests put one
	// here that fails.
	files durable.FS
}

// expertWish returns how routed experts are to be quantised.
func (o Options) expertWish() wish {
	if o.ExpertBits != 0 {
		return wish{bits: o.ExpertBits, again: true}
	}
	return wish{bits: o.Bits}
}

// layout returns the layout of quantised matrices.
func (o Options) layout() quant.Layout {
	if o.RowOrder {
		return quant.Rows
	}
	return quant.Panels
}

// Progress is how far a conversion is.
type Progress struct {
	Step        string // what is being written, for display
	Done, Total int64  // bytes of the target; Done never exceeds Total
	Warning     string // what was left out, and why; mostly ""
}

// Convert writes the packed form of the checkpoint directory src to the directory dst. src may also
// be a GGUF file, or any of the files that one model is in. Or it may be a packed directory, to be
// written in the other layout: the result is, byte for byte, what its checkpoint would have given.
// dst must not exist, or must be empty: a conversion never replaces anything. The files are written
// to dst.partial, so dst is complete from the moment it exists. After an interruption by ctx, a
// full disk or a crash, the same call continues after the last finished file; if the source or the
// options have changed it starts over. It uses some tens of MiB of memory, whatever the size of the
// model.
//
// Errors: *BitsError, *ChecksumError, *expertfile.ReadError with *expertfile.SumError (a damaged
// record) and *expertfile.SumsError (of a packed source), *ExistsError, *SpaceError, *WriteError,
// *SourceError and *model.ConfigError (several joined), *model.UnknownArchError,
// *safetensors.FormatError, ErrBusy, or the cause of ctx's end.
func Convert(ctx context.Context, src, dst string, o Options) error {
	return guard(func() error { return convert(ctx, src, dst, o) })
}

func convert(ctx context.Context, src, dst string, o Options) error {
	dst, o, err := prepare(dst, o)
	if err != nil {
		return err
	}
	if isPacked(src) {
		return repack(ctx, src, dst, o)
	}
	in, err := openInput(src, o)
	if err != nil {
		return err
	}
	defer in.ckpt.Close()
	j, err := openJob(in, dst, o)
	if err != nil {
		return err
	}
	defer j.out.close()
	files, total := j.files()
	if err := j.out.checkSpace(o.FreeSpace, files, total); err != nil {
		j.out.discard()
		return err
	}
	if err := j.run(ctx); err != nil {
		return err
	}
	return j.out.finish()
}

// prepare checks options and target, and fills in defaults. The target's path becomes absolute.
func prepare(dst string, o Options) (string, Options, error) {
	if o.Bits != 0 && o.Bits != 4 && o.Bits != 8 {
		return "", o, fmt.Errorf("convert: Options.Bits is %d: it must be 0, 4 or 8", o.Bits)
	}
	if b := o.ExpertBits; b != 0 && b != 2 && b != 4 && b != 8 {
		return "", o, fmt.Errorf("convert: Options.ExpertBits is %d: it must be 0, 2, 4 or 8", b)
	}
	dst, err := Target(dst)
	if err != nil {
		return "", o, err
	}
	if o.files == nil {
		o.files = durable.OS{}
	}
	if o.FreeSpace == nil {
		o.FreeSpace = durable.FreeSpace
	}
	return dst, o, nil
}

// openJob opens the output of a conversion.
func openJob(in *input, dst string, o Options) (*job, error) {
	out, err := openOutput(dst, in.fingerprint, o.files)
	if err != nil {
		return nil, err
	}
	j := &job{in: in, out: out, emit: newEmitter(in.ckpt.Drop), sums: newRecordSums(in.plan.recordBytes, in.cfg.MoELayers())}
	_, total := j.files()
	out.meter = &meter{report: o.Progress, total: total}
	return j, nil
}

// Target returns the absolute path of the directory that a conversion to dst would make: a link to
// an empty directory on another disk selects that disk. The error is an *ExistsError if there is
// something already.
func Target(dst string) (string, error) {
	dst, err := filepath.Abs(dst)
	if err != nil {
		return "", fmt.Errorf("convert: %w", err)
	}
	if target, err := filepath.EvalSymlinks(dst); err == nil {
		dst = target
	}
	return dst, refuseExisting(dst)
}

// refuseExisting reports a target that already exists, unless it is an empty directory.
func refuseExisting(dst string) error {
	entries, err := os.ReadDir(dst)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return &ExistsError{Path: dst, Why: "exists and cannot be read as a directory: " + err.Error()}
	case len(entries) == 0:
		return nil
	}
	if _, err := os.Stat(filepath.Join(dst, ChecksumsName)); err == nil {
		return &ExistsError{Path: dst, Why: "holds a converted model already: use it, or remove it to convert again", Complete: true}
	}
	return &ExistsError{Path: dst, Why: "exists and is not empty: remove it or choose another target"}
}

// input is an opened source and the plan of its conversion.
type input struct {
	name        string // of the model, for the manifest
	config      []byte // config.json
	cfg         *model.Config
	ckpt        tensors
	shards      func(h hash.Hash) error // adds what tells the files of ckpt from others
	vocab       func() (*tokenizer.Tokenizer, error)
	plan        *plan
	small       []smallFile
	fingerprint string
}

// openInput opens and checks a source. The caller closes the checkpoint.
func openInput(src string, o Options) (*input, error) {
	switch info, err := os.Stat(src); {
	case err != nil:
		return nil, fmt.Errorf("convert: there is nothing to convert: %w; name a folder with a config.json and safetensors, or a GGUF file", err)
	case info.Mode().IsRegular():
		return openGGUF(src, o)
	}
	in, err := readInput(src)
	if err != nil {
		return nil, err
	}
	in.name = modelName(src)
	ckpt, err := safetensors.OpenDir(src)
	if err != nil {
		return nil, fmt.Errorf("convert: %w", err)
	}
	in.ckpt, in.shards = ckpt, func(h hash.Hash) error { return printShards(h, ckpt) }
	if err := in.check(o); err != nil {
		in.ckpt.Close()
		return nil, err
	}
	return in, nil
}

// readInput reads everything of a source but its tensors.
func readInput(src string) (*input, error) {
	in := &input{vocab: func() (*tokenizer.Tokenizer, error) { return loadVocab(src) }}
	var err error
	in.config, err = os.ReadFile(filepath.Join(src, configName))
	if err != nil {
		return nil, fmt.Errorf("convert: %w", err)
	}
	generation, err := os.ReadFile(filepath.Join(src, generationName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("convert: %w", err)
	}
	if in.cfg, err = model.ParseConfig(in.config, generation); err != nil {
		return nil, fmt.Errorf("convert: %s: %w", src, err)
	}
	in.small, err = findSmall(src)
	return in, err
}

// check accounts for every tensor and identifies the source.
func (in *input) check(o Options) error {
	if err := in.planFor(o); err != nil {
		return err
	}
	if err := in.plan.checkShapes(func(safetensors.Tensor) bool { return true }); err != nil {
		return err
	}
	var err error
	in.fingerprint, err = fingerprint(in, o)
	return err
}

// planFor accounts for every tensor, by what the headers of the source's files say.
func (in *input) planFor(o Options) error {
	tensors, err := openSource(in.ckpt, in.cfg)
	if err != nil {
		return err
	}
	in.plan, err = makePlan(in.cfg, tensors, o)
	return err
}
