package convert

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"

	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/weights"
)

// job writes all files of one conversion. The manifest of the weights, without which nothing opens
// the directory, comes last but for the checksums.
type job struct {
	in   *input
	out  *output
	emit *emitter
	sums *recordSums
}

// files returns the large files, which count for progress, and their sizes.
func (j *job) files() (names []string, total int64) {
	names, total = []string{weights.DataName}, j.in.plan.denseSize
	for _, l := range j.in.plan.layers {
		names = append(names, layerFile(l.layer))
		total += j.in.plan.layerBytes()
	}
	for _, s := range j.in.small {
		names = append(names, s.name)
		total += s.size
	}
	return names, total
}

func layerFile(layer int) string { return expertfile.DirName + "/" + expertfile.LayerName(layer) }

// checkSpace compares what is still to be written of the files with the free space.
func (o *output) checkSpace(free func(string) (uint64, error), names []string, total int64) error {
	const slack = 8 << 20 // manifests, vocab.bin, the file system's own
	need := total + slack
	for _, name := range names {
		need -= o.kept(name)
	}
	dir := filepath.Dir(o.dir)
	got, err := free(dir)
	if err != nil {
		return fmt.Errorf("convert: free space of %s: %w", dir, err)
	}
	if uint64(need) > got {
		return &SpaceError{Dir: dir, Need: uint64(need), Free: got}
	}
	return nil
}

// run writes every file that is not finished yet.
func (j *job) run(ctx context.Context) error {
	if err := j.large(ctx); err != nil {
		return err
	}
	return j.rest(ctx)
}

// large writes the layers and the weights.
func (j *job) large(ctx context.Context) error {
	p, m := j.in.plan, j.out.meter
	j.sayLeft()
	for i, l := range p.layers {
		m.step = fmt.Sprintf("experts of layer %d (%d of %d)", l.layer, i+1, len(p.layers))
		summed := func(w io.Writer) error {
			return j.sums.fill(w, l.layer, func(w io.Writer) error { return j.experts(w, l) })
		}
		if err := j.out.write(ctx, layerFile(l.layer), summed); err != nil {
			return err
		}
	}
	m.step = "weights"
	return j.out.write(ctx, weights.DataName, j.dense)
}

// sayLeft tells what the source has and the target has not.
func (j *job) sayLeft() {
	m := j.out.meter
	if s := j.in.plan.left.String(); s != "" {
		m.step = "experts"
		m.say(s)
	}
}

// rest writes what comes after the large files.
func (j *job) rest(ctx context.Context) error {
	p := j.in.plan
	j.out.meter.step = "small files"
	if err := j.out.json(ctx, expertfile.DirName+"/"+expertfile.LayoutName, p.describe()); err != nil {
		return err
	}
	if err := j.sums.write(ctx, j.out); err != nil {
		return err
	}
	for _, s := range j.in.small {
		if err := j.out.write(ctx, s.name, s.copy); err != nil {
			return err
		}
	}
	if err := j.out.vocab(ctx, j.in.vocab); err != nil {
		return err
	}
	manifest, err := j.manifest()
	if err != nil {
		return err
	}
	if err := j.out.json(ctx, weights.ManifestName, manifest); err != nil {
		return err
	}
	return j.out.checksums(ctx)
}

// checksums writes the checksums of all other files.
func (o *output) checksums(ctx context.Context) error {
	sums := Checksums{Format: packFormat, Files: map[string]fileSum{}}
	for name, s := range o.state.Files {
		if name != ChecksumsName {
			sums.Files[name] = s
		}
	}
	return o.json(ctx, ChecksumsName, sums)
}

// json writes a small file.
func (o *output) json(ctx context.Context, name string, v any) error {
	raw, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return fmt.Errorf("convert: %s: %w", name, err)
	}
	return o.write(ctx, name, func(w io.Writer) error {
		_, err := w.Write(append(raw, '\n'))
		return err
	})
}

// experts writes the file of one layer.
func (j *job) experts(w io.Writer, l *layerExperts) error {
	j.emit.w = w
	for e := range j.in.cfg.NumExperts {
		blocks, err := l.blocks(e)
		if err != nil {
			return err
		}
		var n int64
		for _, b := range blocks {
			if err := j.emit.write(b); err != nil {
				return err
			}
			n += b.bytes
		}
		if n != int64(j.in.plan.recordBytes) {
			panic(fmt.Sprintf("convert: record of %d bytes in a layout of %d", n, j.in.plan.recordBytes))
		}
	}
	return nil
}

// dense writes model_weights.bin.
func (j *job) dense(w io.Writer) error {
	j.emit.w = w
	var at int64
	for _, b := range j.in.plan.dense {
		if gap := b.offset - at; gap > 0 {
			if _, err := w.Write(make([]byte, gap)); err != nil {
				return err
			}
		}
		if err := j.emit.write(b.block); err != nil {
			return err
		}
		at = b.offset + b.bytes
	}
	return nil
}

// manifest returns the content of model_weights.json.
func (j *job) manifest() (*weights.Manifest, error) {
	p := j.in.plan
	m := &weights.Manifest{Model: j.in.name, NumTensors: len(p.dense), Tensors: map[string]weights.Descriptor{}}
	for _, b := range p.dense {
		d := weights.Descriptor{Offset: b.offset, Size: b.bytes, Shape: b.shape, DType: b.dtype}
		if b.codes() {
			d.Bits = b.format.Bits()
		}
		d.Layout = b.format.Layout
		m.Tensors[b.name] = d
	}
	config, err := manifestConfig(j.in)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("convert: %w", err)
	}
	m.Config = raw
	return m, nil
}

// modelName is the last part of the source's path. The whole path would reveal where it was on this
// machine.
func modelName(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return filepath.Base(dir)
}
