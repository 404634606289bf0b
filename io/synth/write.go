package synth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/moeflux/moeflux-actor/internal/durable"
	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/weights"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// Progress says how far Write is.
type Progress struct {
	Done, Total int64 // bytes
}

// Write writes the model that the options describe to the directory dst, packed: model_weights.bin
// and its manifest, packed_experts with the checksums of its records, config.json,
// generation_config.json and synth.json, from which [Load] restores the model. There is no
// checksums.json: its hashes would take longer than the bytes, and synth.json says what the bytes
// are.
//
// dst must not exist, or must be empty. The files are written to dst.partial, which is renamed in
// the end and removed after any error, including the end of ctx. Each worker uses at most 10 MiB,
// the routers and the chain some 10 MB. progress, if not nil, is called often, by one goroutine at
// a time.
//
// Errors are those of New, *ExistsError, *SpaceError, the cause of ctx's end, or errors of the file
// system.
func Write(ctx context.Context, dst string, o Options, progress func(Progress)) error {
	m, err := New(o)
	if err != nil {
		return err
	}
	return m.Write(ctx, dst, progress)
}

// Write writes the model; see the function of the same name.
func (m *Model) Write(ctx context.Context, dst string, progress func(Progress)) (err error) {
	dst, err = filepath.Abs(dst)
	if err != nil {
		return fmt.Errorf("synth: %w", err)
	}
	if err := refuseExisting(dst); err != nil {
		return err
	}
	parent := filepath.Dir(dst)
	if err := durable.MkdirAll(parent, durable.Shared); err != nil {
		return fmt.Errorf("synth: %w", err)
	}
	dense, tensors := m.weightsImage()
	files, shared := []*image{dense}, []*image(nil)
	for _, layer := range m.layers() {
		files = append(files, m.expertImage(layer))
	}
	if m.o.ExpertsOf != "" {
		files, shared = files[:1], files[1:]
		if err := m.checkExpertsOf(shared); err != nil {
			return err
		}
	}
	total := int64(0)
	for _, f := range files {
		total += f.size()
	}
	if err := m.checkSpace(parent, total); err != nil {
		return err
	}
	tmp := dst + ".partial"
	err = os.Mkdir(tmp, durable.Shared.Dir())
	if errors.Is(err, fs.ErrExist) {
		return &ExistsError{Path: tmp, Why: "another run is writing there or was killed: if none is running, remove it"}
	}
	if err != nil {
		return fmt.Errorf("synth: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(tmp))
		}
	}()
	if err := os.Mkdir(filepath.Join(tmp, expertfile.DirName), durable.Shared.Dir()); err != nil {
		return fmt.Errorf("synth: %w", err)
	}
	w := &writer{dir: tmp, total: total, progress: progress, workers: m.o.Workers}
	if err := w.write(ctx, files); err != nil {
		return err
	}
	if shared == nil {
		if err := durable.WriteFile(filepath.Join(tmp, sumsName), durable.Shared, m.recordSums(files[1:])); err != nil {
			return fmt.Errorf("synth: %w", err)
		}
	}
	if err := m.linkExperts(tmp, shared); err != nil {
		return err
	}
	if err := m.writeSmall(tmp, tensors); err != nil {
		return err
	}
	return install(ctx, tmp, dst)
}

// refuseExisting reports a target that already exists, unless it is an empty directory.
func refuseExisting(dst string) error {
	entries, err := os.ReadDir(dst)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return &ExistsError{Path: dst, Why: "exists and is not a readable directory: " + err.Error()}
	case len(entries) > 0:
		return &ExistsError{Path: dst, Why: "exists and is not empty: remove it or choose another directory"}
	}
	return nil
}

// checkSpace compares the model's size with the free space.
func (m *Model) checkSpace(dir string, size int64) error {
	free := m.o.FreeSpace
	if free == nil {
		free = durable.FreeSpace
	}
	const slack = 16 << 20 // manifests, the file system's own
	got, err := free(dir)
	if err != nil {
		return fmt.Errorf("synth: free space of %s: %w", dir, err)
	}
	if need := uint64(size) + slack; got < need {
		return &SpaceError{Dir: dir, Need: need, Free: got}
	}
	return nil
}

// writeSmall writes everything except the large files. synth.json comes last.
func (m *Model) writeSmall(dir string, tensors map[string]weights.Descriptor) error {
	config, err := m.manifestConfig()
	if err != nil {
		return err
	}
	manifest := weights.Manifest{Model: "synthetic " + m.o.Shape.Name, NumTensors: len(tensors), Tensors: tensors, Config: config}
	small := []struct {
		name    string
		content any
	}{
		{weights.ManifestName, manifest},
		{filepath.Join(expertfile.DirName, expertfile.LayoutName), expertfile.Describe(m.cfg, m.layout)},
		{configName, json.RawMessage(m.config)},
		{generationName, json.RawMessage(m.generation)},
		{RecordName, m.record()},
	}
	for _, s := range small {
		if raw, ok := s.content.(json.RawMessage); ok && raw == nil {
			continue
		}
		raw, err := json.MarshalIndent(s.content, "", " ")
		if err != nil {
			return fmt.Errorf("synth: %s: %w", s.name, err)
		}
		if err := durable.WriteFile(filepath.Join(dir, s.name), durable.Shared, append(raw, '\n')); err != nil {
			return fmt.Errorf("synth: %w", err)
		}
	}
	return nil
}

// manifestConfig is the manifest's config object: the text part of config.json without the keys
// that say how a checkpoint is stored.
func (m *Model) manifestConfig() ([]byte, error) {
	top, err := decodeObject(configName, m.config)
	if err != nil {
		return nil, err
	}
	out := top
	if text, ok := top["text_config"].(object); ok {
		out = text
	}
	for k := range out {
		if strings.HasPrefix(k, "quantization") || k == "architectures" {
			delete(out, k)
		}
	}
	out["model_type"], out["default_bits"], out["default_group_size"] = string(m.cfg.Arch), 4, groupSize
	raw, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("synth: %w", err)
	}
	return raw, nil
}

// install renames the finished directory to its name.
func install(ctx context.Context, tmp, dst string) error {
	if ctx.Err() != nil {
		return fmt.Errorf("synth: %w", context.Cause(ctx))
	}
	for _, dir := range []string{filepath.Join(tmp, expertfile.DirName), tmp} {
		if err := durable.SyncDir(dir); err != nil {
			return fmt.Errorf("synth: %w", err)
		}
	}
	// An empty directory may be in the way. Anything else makes Remove or Rename fail.
	if err := os.Remove(dst); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &ExistsError{Path: dst, Why: "appeared while the model was being written"}
	}
	if err := durable.Rename(tmp, dst); err != nil {
		return fmt.Errorf("synth: %w", err)
	}
	return nil
}

// record is the content of synth.json.
type record struct {
	Format  string `json:"format"`
	Shape   string `json:"shape"` // for display: config.json is what counts
	Layers  int    `json:"layers"`
	Vocab   int    `json:"vocab"`
	Experts int    `json:"experts"`
	Seed    uint64 `json:"seed"`
	Route   Route  `json:"route"`
	Topics  int    `json:"topics"`
	Run     int    `json:"run"`
	// Layout is the layout of matrices that can have it. Models from before there were panels lack
	// it, and are in rows.
	Layout quant.Layout `json:"layout,omitempty"`
}

// The names of files in the model directory.
const (
	RecordName     = "synth.json"
	configName     = "config.json"
	generationName = "generation_config.json"
)

// recordFormat changes whenever the same options would give different bytes or behaviour.
const recordFormat = "moeflux-actor synth 1"

func (m *Model) record() record {
	return record{
		Format: recordFormat, Shape: m.o.Shape.Name, Layers: m.cfg.NumHiddenLayers, Vocab: m.cfg.VocabSize, Experts: m.cfg.NumExperts,
		Seed: m.o.Seed, Route: m.o.Route, Topics: m.o.Topics, Run: m.o.Run, Layout: m.o.layout(),
	}
}

// Wrote reports whether Write wrote the model at a path, which may be a file of another form.
func Wrote(path string) (bool, error) {
	_, err := os.Stat(filepath.Join(path, RecordName))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	return err == nil, err
}

// Load returns the model that a directory holds, from synth.json and the configuration beside it.
// It does not read weights. The error is a *FormatError if the directory was not written by Write,
// else as for New.
func Load(dir string) (*Model, error) {
	path := filepath.Join(dir, RecordName)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &FormatError{Path: dir, Why: "holds no " + RecordName + ", so it is not a synthetic model", Err: err}
	}
	if err != nil {
		return nil, fmt.Errorf("synth: %w", err)
	}
	var r record
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, &FormatError{Path: path, Why: "not valid JSON: " + err.Error(), Err: err}
	}
	if r.Format != recordFormat {
		return nil, &FormatError{Path: path, Why: fmt.Sprintf("format %q is not %q: write the model again", r.Format, recordFormat)}
	}
	s := Shape{Name: r.Shape}
	if s.Config, err = os.ReadFile(filepath.Join(dir, configName)); err != nil {
		return nil, fmt.Errorf("synth: %w", err)
	}
	if s.Generation, err = os.ReadFile(filepath.Join(dir, generationName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("synth: %w", err)
	}
	m, err := New(Options{Shape: s, Seed: r.Seed, Route: r.Route, Topics: r.Topics, Run: r.Run, RowOrder: r.Layout == quant.Rows})
	if err != nil {
		return nil, err
	}
	if got := m.record(); got != r {
		return nil, &FormatError{Path: path, Why: fmt.Sprintf("records %d layers, %d tokens and %d experts, %s of %d, %d and %d",
			r.Layers, r.Vocab, r.Experts, configName, got.Layers, got.Vocab, got.Experts)}
	}
	return m, nil
}
