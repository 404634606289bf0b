package convert

import (
	"cmp"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/moeflux/moeflux-actor/io/weights"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// denseArray is one tensor of a packed model_weights.bin. Its layout may change if it belongs to a
// quantised matrix.
type denseArray struct {
	name     string
	desc     weights.Descriptor
	from, to quant.Format // equal if nothing changes
	rows     int
	part     quant.Part
}

// planDense decides what becomes of every tensor, in the order of their offsets. Tensors that no
// part of the architecture uses stay as they are.
func planDense(cfg *model.Config, w *weights.File, layout quant.Layout) ([]denseArray, error) {
	m := w.Manifest()
	src := &source{names: map[string]string{}, used: map[string]bool{}}
	arrays := map[string]denseArray{}
	for name, d := range m.Tensors {
		src.names[name] = name
		as := quant.Format{Layout: d.Layout}
		arrays[name] = denseArray{name: name, desc: d, from: as, to: as}
	}
	var errs []error
	for _, s := range dense(cfg, src) {
		if s.role != matrix && s.role != gateMatrix && s.role != floatMatrix {
			continue
		}
		found, err := w.Matrix(s.name, s.rows, s.cols)
		if err != nil {
			errs = append(errs, fmt.Errorf("convert: %w", err))
			continue
		}
		if !found.Format.Codes() {
			continue
		}
		to := found.Format.In(layout, s.rows)
		if s.byHead {
			to.Layout = quant.Rows
		}
		for _, is := range to.Arrays(s.rows, s.cols) {
			name := s.name + "." + is.Part.String()
			a := arrays[name]
			a.from, a.to, a.rows, a.part = found.Format, to, s.rows, is.Part
			if a.part == quant.Weight {
				a.desc.Bits = to.Bits() // others leave it out
			}
			arrays[name] = a
		}
	}
	if err := joinSome(errs); err != nil {
		return nil, err
	}
	return inPlace(arrays)
}

// inPlace lists arrays by their offsets.
func inPlace(arrays map[string]denseArray) ([]denseArray, error) {
	var out []denseArray
	for _, a := range arrays {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b denseArray) int {
		return cmp.Or(cmp.Compare(a.desc.Offset, b.desc.Offset), cmp.Compare(a.name, b.name))
	})
	var errs []error
	for i := 1; i < len(out); i++ {
		if before := &out[i-1]; out[i].desc.Offset < before.desc.Offset+before.desc.Size {
			errs = append(errs, &SourceError{Tensor: out[i].name, Got: fmt.Sprintf("begins at byte %d, inside %q", out[i].desc.Offset, before.name)})
		}
	}
	return out, joinSome(errs)
}

// denseFile writes model_weights.bin.
func (r *repacking) denseFile(w io.Writer, h hash.Hash) error {
	all := r.w.Mapping()
	at := int64(0)
	x := rearranger{w: w, h: h}
	for _, a := range r.dense {
		end := a.desc.Offset + a.desc.Size
		if err := x.copy(all[at:a.desc.Offset]); err != nil { // the gap between two tensors
			return err
		}
		if err := x.array(all[a.desc.Offset:end], a.from, a.to, a.rows, a.part); err != nil {
			return err
		}
		forget(all, at, end)
		at = end
	}
	return x.copy(all[at:])
}

// forget tells the system that part of a mapped file will not be read again soon, so that reading
// through it does not fill memory.
func forget(mapping []byte, from, to int64) {
	page := int64(os.Getpagesize())
	if from, to = from/page*page, to/page*page; from < to {
		_ = unix.Madvise(mapping[from:to], unix.MADV_DONTNEED) // only advice
	}
}

// experts writes the file of one layer. It fails at a record that does not match its checksum.
func (r *repacking) experts(w io.Writer, h hash.Hash, layer int) error {
	was := r.x.Layout()
	record := make([]byte, was.Bytes)
	x := rearranger{w: w, h: h}
	for e := range r.x.Experts() {
		if err := r.x.ReadExpert(layer, e, record); err != nil {
			return fmt.Errorf("convert: %w", err)
		}
		if err := r.x.CheckRecord(layer, e, record); err != nil {
			return fmt.Errorf("convert: %w", err)
		}
		at := 0
		for _, p := range [][2]model.ExpertPart{{was.Gate, r.layout.Gate}, {was.Up, r.layout.Up}, {was.Down, r.layout.Down}} {
			from, to, rows, cols := p[0].Format, p[1].Format, p[0].Rows, p[0].Cols
			for _, a := range from.Arrays(rows, cols) {
				if err := x.array(record[at:at+a.Bytes], from, to, rows, a.Part); err != nil {
					return err
				}
				at += a.Bytes
			}
		}
		if at != len(record) {
			return errors.New("convert: a record has more than the nine known blocks")
		}
	}
	return nil
}

// rearranger writes arrays in another layout, and hashes their original bytes.
type rearranger struct {
	w   io.Writer
	h   hash.Hash
	out []byte
}

// copy writes bytes as they are.
func (x *rearranger) copy(src []byte) error {
	for len(src) > 0 {
		part := src[:min(arrangedBytes, len(src))]
		x.h.Write(part)
		if _, err := x.w.Write(part); err != nil {
			return err
		}
		src = src[len(part):]
	}
	return nil
}

// array writes a part of rows rows.
func (x *rearranger) array(src []byte, from, to quant.Format, rows int, part quant.Part) error {
	if from == to || len(src) == 0 {
		return x.copy(src)
	}
	panel := len(src) / rows * quant.PanelRows
	most := max(1, arrangedBytes/panel) * panel
	for len(src) > 0 {
		piece := src[:min(most, len(src))]
		x.h.Write(piece)
		out, err := x.panels(piece, from, to, panel, part)
		if err != nil {
			return err
		}
		if _, err := x.w.Write(out); err != nil {
			return err
		}
		src = src[len(piece):]
	}
	return nil
}

// panels arranges whole panels on all processors. The result is valid until the next call.
func (x *rearranger) panels(src []byte, from, to quant.Format, panel int, part quant.Part) ([]byte, error) {
	if cap(x.out) < len(src) {
		x.out = make([]byte, len(src))
	}
	out := x.out[:len(src)]
	cols := panel / from.PartBytes(part, quant.PanelRows, from.Group()) * from.Group()
	arrange := from.ToPanels
	if to.Layout == quant.Rows {
		arrange = from.ToRows
	}
	err := parallel(len(src)/panel, panelsAWorker, func(lo, hi int) error {
		arrange(part, out[lo*panel:hi*panel], src[lo*panel:hi*panel], (hi-lo)*quant.PanelRows, cols)
		return nil
	})
	return out, err
}
