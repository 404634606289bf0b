package actors_test

import (
	"errors"
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/stages"
)

func (h *history) length() int {
	if h.r.IntN(3) == 0 {
		return 1 + h.r.IntN(140)
	}
	return 1 + h.r.IntN(8)
}

func (h *history) appendTokens(x *edited) error {
	return h.eval(x, h.some(h.length()), 0, h.r.IntN(2) == 0)
}

// resume gives a sequence a text that begins as some text that was seen, and wants at least what is
// certain to be there.
func (h *history) resume(x *edited) error {
	var text []int32
	if len(h.texts) > 0 && h.r.IntN(4) > 0 {
		text = h.texts[h.r.IntN(len(h.texts))]
		text = text[:h.r.IntN(len(text)+1)]
	}
	if y := h.seqs[h.r.IntN(len(h.seqs))]; h.r.IntN(2) == 0 {
		text = y.tokens
	}
	text = append(slices.Clip(text), h.some(h.length())...)
	if len(text) > 250 {
		return nil
	}
	h.texts = append(h.texts, text)
	least := h.certain(x, text)
	n, err := x.s.Resume(ctx, text)
	if err != nil {
		return err
	}
	if n < least || n >= len(text) {
		return fmt.Errorf("%d of %d tokens need not be read, want at least %d, and one to be left", n, len(text), least)
	}
	h.counts["certain tokens"] += least
	if n <= len(x.tokens) && x.unknown == 0 && slices.Equal(x.tokens[:n], text[:n]) {
		x.checkpoints = slices.DeleteFunc(slices.Clone(x.checkpoints), func(p int) bool { return p > n })
	} else {
		old := x.tokens
		x.checkpoints = slices.DeleteFunc(slices.Clone(x.checkpoints), func(p int) bool {
			return p > n || p > 0 && (x.unknown > 0 || !slices.Equal(old[:p], text[:p]))
		})
	}
	x.tokens, x.unknown = slices.Clone(text[:n]), 0
	return h.eval(x, text[n:], n, true)
}

// certain returns how much of a text is to be had for certain, without what was remembered.
func (h *history) certain(x *edited, text []int32) (best int) {
	most := len(text) - 1
	offer := func(tokens []int32) {
		n := 0
		for n < min(len(tokens), most) && tokens[n] == text[n] {
			n++
		}
		if h.hybrid && n < len(tokens) {
			return
		}
		best = max(best, n)
	}
	for _, y := range h.seqs {
		if y.e != x.e || y.unknown > 0 {
			continue
		}
		offer(y.tokens)
		for _, p := range y.checkpoints {
			offer(y.tokens[:p])
		}
	}
	return best
}

func (h *history) checkpoint(x *edited) error {
	pos := len(x.tokens)
	var full *stages.CheckpointMemoryError
	switch err := x.s.Checkpoint(ctx, pos); {
	case errors.As(err, &full) && h.tight:
		return nil
	case err != nil:
		return err
	}
	x.checkpoints = slices.DeleteFunc(slices.Clone(x.checkpoints), func(p int) bool { return p == pos })
	x.checkpoints = append(x.checkpoints, pos)
	for len(x.checkpoints) > x.most {
		i := slices.IndexFunc(x.checkpoints[:len(x.checkpoints)-1], func(p int) bool { return p > 0 })
		if i < 0 {
			break
		}
		x.checkpoints = slices.Delete(x.checkpoints, i, i+1)
	}
	var wrong *stages.CheckpointPosError
	if err := x.s.Checkpoint(ctx, pos+1); !errors.As(err, &wrong) || wrong.Len != pos {
		return fmt.Errorf("a checkpoint at %d of %d positions: %w", pos+1, pos, err)
	}
	return nil
}

// setMost changes how many checkpoints a sequence keeps, from the next one on.
func (h *history) setMost(x *edited) error {
	x.most = h.r.IntN(6)
	return x.s.SetMaxCheckpoints(ctx, x.most)
}

// cut takes the model back.
func (x *edited) cut(pos int) {
	x.tokens, x.unknown = slices.Clone(x.tokens[:pos]), min(x.unknown, pos)
	x.checkpoints = slices.DeleteFunc(slices.Clone(x.checkpoints), func(p int) bool { return p > pos })
}

func (h *history) restore(x *edited) error {
	// Budgets may have taken checkpoints since the model looked last.
	d, err := x.s.Describe(ctx)
	if err != nil {
		return err
	}
	var none *stages.NoCheckpointError
	if len(d.Checkpoints) == 0 || h.r.IntN(4) == 0 {
		pos := len(x.tokens) + 1
		if err := x.s.RestoreTo(ctx, pos); !errors.As(err, &none) || none.Pos != pos {
			return fmt.Errorf("no checkpoint at %d: %w", pos, err)
		}
		return nil
	}
	pos := d.Checkpoints[h.r.IntN(len(d.Checkpoints))]
	if err := x.s.RestoreTo(ctx, pos); err != nil {
		return err
	}
	x.cut(pos)
	return nil
}

func (h *history) forget(x *edited) error {
	pos := h.r.IntN(len(x.tokens) + 2)
	if n := len(x.checkpoints); n > 0 && h.r.IntN(2) == 0 {
		pos = x.checkpoints[h.r.IntN(n)]
	}
	x.checkpoints = slices.DeleteFunc(slices.Clone(x.checkpoints), func(p int) bool { return p == pos })
	return x.s.ForgetCheckpoint(ctx, pos)
}

func (h *history) truncate(x *edited) error {
	pos := h.r.IntN(len(x.tokens)+3) - 1
	to := min(max(pos, 0), len(x.tokens))
	err := x.s.Truncate(ctx, pos)
	var linear *stages.CannotTruncateLinear
	if h.hybrid && to > 0 && to < len(x.tokens) && !(h.windows && err == nil) {
		if !errors.As(err, &linear) || linear.Pos != to || linear.PosMax != len(x.tokens) || linear.Nearest > to {
			return fmt.Errorf("truncate to %d of %d: %w", to, len(x.tokens), err)
		}
		h.counts["cannot truncate"]++
		return nil
	}
	if err == nil {
		if h.windows && to > 0 && to < len(x.tokens) {
			h.counts["cut within a window"]++
		}
		x.cut(to)
	}
	return err
}

func (h *history) rewind(x *edited) error {
	pos := h.r.IntN(len(x.tokens)+3) - 1
	to := min(max(pos, 0), len(x.tokens))
	d, err := x.s.Describe(ctx)
	if err != nil {
		return err
	}
	least := to
	if h.hybrid && to < len(x.tokens) {
		least = 0
		for _, p := range d.Checkpoints {
			if p <= to {
				least = max(least, p)
			}
		}
	}
	got, err := x.s.Rewind(ctx, pos)
	if err != nil {
		return err
	}
	if got > to || got < least {
		return fmt.Errorf("rewound to %d, want %d to %d", got, least, to)
	}
	x.cut(got)
	return nil
}

// fork puts a fork in the place of another sequence of the engine, or of the sequence itself.
func (h *history) fork(x *edited) error {
	s, err := x.s.Fork(ctx)
	if err != nil {
		return err
	}
	y := &edited{s: s, e: x.e, tokens: slices.Clone(x.tokens), unknown: x.unknown, most: 4}
	for i, z := range h.seqs {
		if z != x && z.e == x.e && h.r.IntN(2) == 0 {
			h.seqs[i] = y
			if err := z.s.Close(); err != nil {
				return err
			}
			return h.check(y)
		}
	}
	return s.Close()
}

func (h *history) save(x *edited) error {
	plain := h.r.IntN(3) == 0 && x.e.Model().Indexers() == 0 && x.e.Model().Sliding == nil
	if x.unknown > 0 {
		plain = true
	}
	f := file{raw: save(h.t, x.s, actors.SaveOptions{Plain: plain}), tokens: slices.Clone(x.tokens), plain: plain}
	h.files = append(h.files, f)
	return nil
}

func (h *history) load(x *edited) error {
	if len(h.files) == 0 {
		return nil
	}
	f := h.files[h.r.IntN(len(h.files))]
	o := actors.LoadOptions{InPlace: h.r.IntN(2) == 0}
	if f.plain {
		o.Accept = 1
	}
	if err := load(x.s, f.raw, o); err != nil {
		return err
	}
	old, oldUnknown := x.tokens, x.unknown
	x.tokens, x.unknown = slices.Clone(f.tokens), 0
	if f.plain {
		x.unknown = len(f.tokens)
	}
	x.checkpoints = slices.DeleteFunc(slices.Clone(x.checkpoints), func(p int) bool {
		return p > 0 && (x.unknown > 0 || oldUnknown > 0 || p > len(x.tokens) || !slices.Equal(old[:p], x.tokens[:p]))
	})
	return nil
}

func (h *history) reset(x *edited) error {
	x.tokens, x.unknown, x.checkpoints = nil, 0, nil
	return x.s.Reset(ctx)
}
