package convert

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model"
)

// tensors is where the tensors of a source are.
type tensors interface {
	// Names returns the names of all tensors, sorted.
	Names() []string
	Tensor(name string) (safetensors.Tensor, bool)
	// Drop is told of a part of a tensor that it will not be read again soon.
	Drop(data []byte)
	Close() error
}

// source is the tensors of a checkpoint under their names in the pack.
type source struct {
	ckpt  tensors
	names map[string]string // pack name to the checkpoint's
	used  map[string]bool   // pack names that were taken
	left  left
	// raw means that the checkpoint is known to be as it was trained, not converted by mlx-lm.
	raw bool
	// checks are to be made once the numbers can be read.
	checks []check
	// lessOne means that GPTQ stored one less than each zero point, anyOrder that the inputs of its
	// groups need not be neighbours.
	lessOne, anyOrder bool
	// gguf means that a converter of that format has changed what package ggufmodel says, and tiled
	// that value heads of linear attention are in another order.
	gguf, tiled bool
}

// left counts tensors that a text model does not need.
type left struct{ vision, drafts, inputs int }

// String says what was left out, and why; "" if nothing was.
func (l left) String() string {
	var parts []string
	if l.vision > 0 {
		parts = append(parts, fmt.Sprintf("%d for pictures", l.vision))
	}
	if l.drafts > 0 {
		parts = append(parts, fmt.Sprintf("%d of layers that predict further tokens", l.drafts))
	}
	if l.inputs > 0 {
		parts = append(parts, fmt.Sprintf("%d scales of inputs and of cached keys and values", l.inputs))
	}
	if parts == nil {
		return ""
	}
	return "tensors left out, since text does not need them: " + strings.Join(parts, ", ")
}

// Prefixes of tensors that a text model does not need: extra heads that predict further tokens, and
// vision. "model." may come before them.
var (
	draftPrefixes  = []string{"mtp."}
	visionPrefixes = []string{"visual.", "vision_tower.", "mm_projector.", "multi_modal_projector.", "patch_merge_mlp."}
	// Suffixes of scales by which other engines round inputs, keys and values to fewer bits.
	inputSuffixes = []string{".input_scale", ".input_global_scale", ".k_scale", ".v_scale"}
)

// packName returns the name of a checkpoint's tensor in the pack, but for what is the family's own.
// ok is false for tensors that a text model does not need, which it counts.
func packName(name string, l *left) (pack string, ok bool) {
	switch {
	case strings.HasPrefix(name, "model.language_model."):
		pack = "model." + strings.TrimPrefix(name, "model.language_model.")
	default:
		pack = strings.TrimPrefix(name, "language_model.")
	}
	begins := func(p string) bool { return strings.HasPrefix(strings.TrimPrefix(pack, "model."), p) }
	switch {
	case slices.ContainsFunc(draftPrefixes, begins):
		l.drafts++
		return "", false
	case slices.ContainsFunc(visionPrefixes, begins):
		l.vision++
		return "", false
	}
	if slices.ContainsFunc(inputSuffixes, func(s string) bool { return strings.HasSuffix(pack, s) }) {
		l.inputs++
		return "", false
	}
	return pack, !strings.HasSuffix(pack, ".rotary_emb.inv_freq")
}

// openSource indexes a checkpoint's tensors.
func openSource(ckpt tensors, cfg *model.Config) (*source, error) {
	s := &source{ckpt: ckpt, names: map[string]string{}, used: map[string]bool{}, lessOne: cfg.ZeroPointsLessOne, anyOrder: cfg.GroupsOutOfOrder}
	if g, ok := ckpt.(*ggufTensors); ok {
		s.gguf, s.tiled = true, g.model.TiledHeads()
		s.left.drafts = len(g.model.Unused)
	}
	rename := strings.NewReplacer(cfg.Arch.Checkpoint().Rename...)
	for _, name := range ckpt.Names() {
		pack, ok := packName(name, &s.left)
		if !ok {
			continue
		}
		pack = rename.Replace(pack)
		if other, twice := s.names[pack]; twice {
			return nil, &SourceError{Tensor: name, Got: fmt.Sprintf("is the same tensor of the model as %q", other)}
		}
		s.names[pack] = name
	}
	s.dropNextLayers(cfg.NumHiddenLayers)
	return s, nil
}

// dropNextLayers removes the layers that DeepSeek's family puts after the last to predict further
// tokens. Only they have a matrix that joins hidden state and embedding.
func (s *source) dropNextLayers(first int) {
	for i := first; ; i++ {
		prefix := fmt.Sprintf("model.layers.%d.", i)
		if !s.has(prefix + "eh_proj.weight") {
			return
		}
		for pack := range s.names {
			if strings.HasPrefix(pack, prefix) {
				delete(s.names, pack)
				s.left.drafts++
			}
		}
	}
}

// detectRaw sets raw from the shape of the convolutions among specs: [channels, 1, taps] as
// trained, [channels, taps, 1] as converted by mlx-lm. Nothing else tells the two apart: names and
// element types may be the same.
func (s *source) detectRaw(specs []spec) error {
	var raw, converted string
	for _, sp := range specs {
		if sp.role != conv {
			continue
		}
		t, ok := s.peek(sp.name)
		switch {
		case !ok: // reported when it is taken
		case slices.Equal(t.Shape, []int{sp.rows, 1, sp.cols}):
			raw = t.Name
		case slices.Equal(t.Shape, []int{sp.rows, sp.cols, 1}):
			converted = t.Name
		default:
			return &SourceError{Tensor: t.Name, Got: fmt.Sprintf("%s %v", t.DType, t.Shape),
				Want: fmt.Sprintf("[%d, 1, %d] or [%d, %d, 1]", sp.rows, sp.cols, sp.rows, sp.cols)}
		}
	}
	switch {
	case raw != "" && converted != "":
		return &SourceError{Tensor: raw, Got: fmt.Sprintf("has its taps last, but %q does not: the checkpoint mixes two layouts", converted)}
	case raw == "" && converted == "":
		return fmt.Errorf("convert: the checkpoint has no convolution whose shape would tell whether its norms are zero-centred")
	}
	s.raw = raw != ""
	return nil
}

// detectMean sets raw for a family without convolutions. What mlx-lm has converted has experts
// under a name of its own. There norms hold 1+w, and it would add another 1 to one whose mean is
// below a half when it loads the checkpoint, so that none is written on purpose: such a norm is
// refused. (sanitize in mlx_lm/models/step3p5.py.)
func (s *source) detectMean() {
	s.raw = true
	for _, name := range s.names {
		if strings.Contains(name, ".switch_mlp.") {
			s.raw = false
		}
	}
	if s.raw {
		return
	}
	for pack := range s.names {
		if t, _ := s.peek(pack); strings.HasSuffix(pack, "norm.weight") {
			s.checks = append(s.checks, check{t, func() error { return checkMean(t) }})
		}
	}
}

// checkMean reports a norm of 1+w with a mean below a half.
func checkMean(t safetensors.Tensor) error {
	values := make([]float32, t.Elements())
	if err := t.Floats(values, 0); err != nil {
		return fmt.Errorf("convert: %w", err)
	}
	mean := 0.0
	for _, x := range values {
		mean += float64(x) / float64(len(values))
	}
	if mean < 0.5 {
		return &SourceError{Tensor: t.Name, Got: fmt.Sprintf("a mean of %.2g in a checkpoint that mlx-lm has converted, whose norms are of 1+w", mean), Want: "0.5 or more"}
	}
	return nil
}

// peek returns a tensor under its pack name.
func (s *source) peek(pack string) (safetensors.Tensor, bool) {
	name, ok := s.names[pack]
	if !ok {
		return safetensors.Tensor{}, false
	}
	return s.ckpt.Tensor(name)
}

// has reports whether there is a tensor with this pack name.
func (s *source) has(pack string) bool {
	_, ok := s.names[pack]
	return ok
}

// hasMatrix reports whether there is a matrix with this pack name, which has no ".weight".
func (s *source) hasMatrix(pack string) bool {
	return s.has(pack+".weight") || s.has(pack+".weight_packed") || s.has(pack+".qweight")
}

// skip marks a tensor as known and not needed.
func (s *source) skip(pack string) { s.used[pack] = true }

// take returns a tensor, which must have the given shape, and marks it as used.
func (s *source) take(pack string, shape ...int) (safetensors.Tensor, error) {
	s.used[pack] = true
	t, ok := s.peek(pack)
	if !ok {
		return t, &SourceError{Tensor: pack, Got: "missing", Want: fmt.Sprint(shape)}
	}
	if !slices.Equal(t.Shape, shape) {
		return t, &SourceError{Tensor: t.Name, Got: fmt.Sprintf("%s %v", t.DType, t.Shape), Want: fmt.Sprint(shape)}
	}
	return t, nil
}

// takeFloat is take for numbers that are not quantised.
func (s *source) takeFloat(pack string, shape ...int) (safetensors.Tensor, error) {
	t, err := s.take(pack, shape...)
	if err == nil && !isFloat(t.DType) {
		err = &SourceError{Tensor: t.Name, Got: fmt.Sprintf("%s %v", t.DType, t.Shape), Want: fmt.Sprintf("%v in BF16, F16 or F32", shape)}
	}
	return t, err
}

func isFloat(d safetensors.DType) bool {
	return d == safetensors.BF16 || d == safetensors.F16 || d == safetensors.F32
}

// leftover reports the tensors that nothing took: the computation would leave out part of the
// model.
func (s *source) leftover() []error {
	var names []string
	for pack, name := range s.names {
		if t, ok := s.peek(pack); ok {
			name = t.Name // of a GGUF file
		}
		if !s.used[pack] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var errs []error
	for i, name := range names {
		if i == 10 {
			errs = append(errs, fmt.Errorf("convert: and %d more unknown tensors", len(names)-i))
			break
		}
		errs = append(errs, &SourceError{Tensor: name, Got: "not known in this architecture"})
	}
	return errs
}
