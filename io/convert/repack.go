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

	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/weights"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/tokenizer"
)

// Where other programs' packed directories keep the checkpoint's own files, and the file that synth
// writes.
const (
	checkpointDir = "mlx"
	SynthName     = "synth.json"
)

// isPacked reports whether a directory holds a packed model and no checkpoint. A checkpoint would
// be the better source.
func isPacked(dir string) bool {
	for _, name := range []string{"model.safetensors", "model.safetensors.index.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return false
		}
	}
	return weights.IsPacked(dir)
}

// repacking writes a packed model in another layout. Every file keeps its size and every array its
// offset, so the result is what the checkpoint would have given.
type repacking struct {
	src    string // directory
	small  []smallFile
	text   string // directory of the small files
	cfg    *model.Config
	w      *weights.File
	x      *expertfile.File
	sums   *Checksums // of the source, or nil
	dense  []denseArray
	layout model.ExpertLayout // of the target

	checked bool        // the source has checksums of its records
	records *recordSums // of the target's records
	out     *output
}

// repack is Convert of a packed directory.
func repack(ctx context.Context, src, dst string, o Options) error {
	r := &repacking{src: src}
	defer r.close()
	if err := r.open(o); err != nil {
		return err
	}
	fingerprint, err := r.fingerprint(o)
	if err != nil {
		return err
	}
	if r.out, err = openOutput(dst, fingerprint, o.files); err != nil {
		return err
	}
	defer r.out.close()
	r.records = newRecordSums(r.layout.Bytes, r.x.Layers())
	files, total := r.files()
	r.out.meter = &meter{report: o.Progress, total: total}
	if err := r.out.checkSpace(o.FreeSpace, files, total); err != nil {
		r.out.discard()
		return err
	}
	if err := r.run(ctx); err != nil {
		return err
	}
	return r.out.finish()
}

func (r *repacking) close() {
	if r.x != nil {
		r.x.Close()
	}
	if r.w != nil {
		r.w.Close()
	}
}

// open opens and checks the source, and plans the target.
func (r *repacking) open(o Options) (err error) {
	if _, err := os.Stat(filepath.Join(r.src, SynthName)); err == nil {
		return fmt.Errorf("convert: %s holds a synthetic model: write it again in the other layout, with the options in its %s", r.src, SynthName)
	}
	r.text = r.src
	if _, err := os.Stat(filepath.Join(r.src, configName)); errors.Is(err, fs.ErrNotExist) {
		r.text = filepath.Join(r.src, checkpointDir)
	}
	if r.small, err = findSmall(r.text); err != nil {
		return err
	}
	if len(r.small) == 0 || r.small[0].name != configName {
		return fmt.Errorf("convert: %s is a packed model without %s: copy the checkpoint's there", r.src, configName)
	}
	if r.cfg, err = weights.ReadConfig(r.src); err != nil {
		return fmt.Errorf("convert: %w", err)
	}
	if r.w, err = weights.Open(r.src); err != nil {
		return fmt.Errorf("convert: %w", err)
	}
	if err := r.w.Check(r.cfg); err != nil {
		return fmt.Errorf("convert: %w", err)
	}
	if r.x, err = expertfile.Open(r.src, r.cfg); err != nil {
		return fmt.Errorf("convert: %w", err)
	}
	// Records are compared with their checksums as they are read. Directories of other programs or
	// earlier versions have none.
	err = r.x.LoadSums()
	if r.checked = err == nil; err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("convert: %w: remove it to convert without it", err)
	}
	if err := r.readSums(); err != nil {
		return err
	}
	if err := r.checkBits(o); err != nil {
		return err
	}
	if r.dense, err = planDense(r.cfg, r.w, o.layout()); err != nil {
		return err
	}
	if r.x.Mixed() {
		return fmt.Errorf("convert: layers of %s store their experts in different formats: such a directory is used as it is, not written again", r.src)
	}
	r.layout = r.x.Layout()
	for _, p := range []*model.ExpertPart{&r.layout.Gate, &r.layout.Up, &r.layout.Down} {
		p.Format = p.Format.In(o.layout(), p.Rows)
	}
	return nil
}

// readSums reads the source's checksums, if it has any.
func (r *repacking) readSums() error {
	sums, err := ReadChecksums(r.src)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	r.sums = sums
	return err
}

// checkBits refuses a number of bits other than the source's: requantised codes would differ from
// those made from the checkpoint.
func (r *repacking) checkBits(o Options) error {
	var config struct {
		Bits int `json:"default_bits"`
	}
	if raw := r.w.Config(); raw != nil {
		if err := json.Unmarshal(raw, &config); err != nil {
			return fmt.Errorf("convert: %s: config: %w", weights.ManifestName, err)
		}
	}
	if o.Bits != 0 && o.Bits != config.Bits {
		return &BitsError{Dir: r.src, What: "matrices", Have: config.Bits, Want: o.Bits}
	}
	want := o.ExpertBits
	if want == 0 {
		want = o.Bits
	}
	l := r.x.Layout()
	for _, p := range []model.ExpertPart{l.Gate, l.Up, l.Down} {
		have := 0
		if p.Format.Codes() {
			have = p.Format.Bits()
		}
		if want != 0 && have != want {
			return &BitsError{Dir: r.src, What: "routed experts", Have: have, Want: want}
		}
	}
	return nil
}

// fingerprint identifies source and layout, so that an interrupted conversion can continue.
func (r *repacking) fingerprint(o Options) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "packed, layout %s\n", o.layout())
	paths := []string{r.w.Path()}
	for _, layer := range r.x.Layers() {
		paths = append(paths, r.x.Path(layer))
	}
	if r.checked { // layers written before the source had checksums were not checked
		paths = append(paths, filepath.Join(filepath.Dir(paths[1]), expertfile.SumsName))
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return "", fmt.Errorf("convert: %w", err)
		}
		fmt.Fprintf(h, "file %q %d %d\n", filepath.Base(path), info.Size(), info.ModTime().UnixNano())
	}
	manifest, err := json.Marshal(r.w.Manifest())
	if err != nil {
		return "", fmt.Errorf("convert: %w", err)
	}
	layout, err := json.Marshal(expertfile.Describe(r.cfg, r.x.Layout()))
	if err != nil {
		return "", fmt.Errorf("convert: %w", err)
	}
	fmt.Fprintf(h, "%x %x\n", sha256.Sum256(manifest), sha256.Sum256(layout))
	return smallPrint(h, r.small)
}

// files returns the large files, which count for progress, and their sizes.
func (r *repacking) files() (names []string, total int64) {
	names, total = []string{weights.DataName}, int64(len(r.w.Mapping()))
	for _, layer := range r.x.Layers() {
		names = append(names, layerFile(layer))
		total += int64(r.layout.Bytes) * int64(r.cfg.NumExperts)
	}
	for _, s := range r.small {
		names = append(names, s.name)
		total += s.size
	}
	return names, total
}

// run writes every file that is not finished yet, in the same order as a conversion from the
// checkpoint.
func (r *repacking) run(ctx context.Context) error {
	m := r.out.meter
	if r.sums == nil {
		but := ""
		if r.checked {
			but = ", but for experts,"
		}
		m.say(fmt.Sprintf("%s has no %s: damage there%s goes unnoticed", r.src, ChecksumsName, but))
	}
	for i, layer := range r.x.Layers() {
		m.step = fmt.Sprintf("experts of layer %d (%d of %d)", layer, i+1, len(r.x.Layers()))
		name := layerFile(layer)
		summed := func(w io.Writer, h hash.Hash) error {
			return r.records.fill(w, layer, func(w io.Writer) error { return r.experts(w, h, layer) })
		}
		if err := r.write(ctx, name, summed); err != nil {
			return err
		}
	}
	m.step = "weights"
	if err := r.write(ctx, weights.DataName, r.denseFile); err != nil {
		return err
	}
	m.step = "small files"
	if err := r.out.json(ctx, expertfile.DirName+"/"+expertfile.LayoutName, expertfile.Describe(r.cfg, r.layout)); err != nil {
		return err
	}
	if err := r.records.write(ctx, r.out); err != nil {
		return err
	}
	for _, s := range r.small {
		copied := func(w io.Writer, h hash.Hash) error { return s.copy(io.MultiWriter(w, h)) }
		if err := r.write(ctx, s.name, copied); err != nil {
			return err
		}
	}
	if err := r.out.vocab(ctx, func() (*tokenizer.Tokenizer, error) { return loadVocab(r.text) }); err != nil {
		return err
	}
	if err := r.out.json(ctx, weights.ManifestName, r.manifest()); err != nil {
		return err
	}
	return r.out.checksums(ctx)
}

// write writes a file of the target from one of the source. fill also hashes the source's bytes;
// write fails if they do not match the source's checksum.
func (r *repacking) write(ctx context.Context, name string, fill func(io.Writer, hash.Hash) error) error {
	return r.out.write(ctx, name, func(w io.Writer) error {
		h := sha256.New()
		if err := fill(w, h); err != nil || r.sums == nil {
			return err
		}
		want, ok := r.sums.Files[name]
		if got := hex.EncodeToString(h.Sum(nil)); ok && got != want.SHA256 {
			return &ChecksumError{File: name, Want: want.SHA256, Got: got}
		}
		return nil
	})
}

// manifest returns the content of model_weights.json.
func (r *repacking) manifest() *weights.Manifest {
	m := *r.w.Manifest()
	m.Tensors = map[string]weights.Descriptor{}
	for _, a := range r.dense {
		d := a.desc
		d.Layout = a.to.Layout
		m.Tensors[a.name] = d
	}
	m.NumTensors = len(m.Tensors)
	return &m
}
