package convert

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/moeflux/moeflux-actor/io/safetensors"
)

// arrival writes the large files of a conversion shard by shard. A block is written when the last
// shard that it needs is there, so how many shards were converted says which blocks are written.
type arrival struct {
	*job
	source  Shards
	shards  []*shard // in the order in which they are converted
	at      map[*safetensors.File]int
	targets []*target
	written []int64 // bytes of the targets that each shard completes the sources of
}

// shard is a shard and how long it is needed.
type shard struct {
	Shard
	name string
	file *safetensors.File
	last int  // index of the shard with which it is needed for the last time, or notNeeded
	here bool // brought and attached
	gone bool // removed
}

// notNeeded is last of a shard with nothing but tensors that are skipped.
const notNeeded = -1

func newArrival(j *job, source Shards, shards []*shard) (*arrival, error) {
	r := &arrival{job: j, source: source, shards: shards, at: map[*safetensors.File]int{}, written: make([]int64, len(shards))}
	for i, s := range shards {
		r.at[s.file] = i
	}
	p := j.in.plan
	for _, l := range p.layers {
		r.targets = append(r.targets, &target{name: layerFile(l.layer), size: p.layerBytes(), blocks: j.layerBlocks(l), layer: l.layer, record: p.recordBytes})
	}
	r.targets = append(r.targets, denseTarget(p))
	for _, t := range r.targets {
		if err := r.account(t); err != nil {
			return nil, err
		}
	}
	for _, c := range p.checks {
		s := r.at[j.in.fileOf(c.tensor.Name)]
		r.shards[s].last = max(r.shards[s].last, s)
	}
	return r, nil
}

// account notes which shards a target needs, and until when.
func (r *arrival) account(t *target) error {
	t.first, t.last = len(r.shards), 0
	return t.blocks(func(b placed) error {
		k := r.completes(b.block)
		t.first, t.last = min(t.first, k), max(t.last, k)
		r.written[k] += b.bytes
		for _, x := range b.needs() {
			s := r.shards[r.at[r.in.fileOf(x.Name)]]
			s.last = max(s.last, k)
		}
		return nil
	})
}

// completes returns the shard with which everything is there that a block needs.
func (r *arrival) completes(b block) int {
	k := 0
	for _, x := range b.needs() {
		k = max(k, r.at[r.in.fileOf(x.Name)])
	}
	return k
}

// needs returns the tensors that a block is computed from.
func (b block) needs() []safetensors.Tensor {
	m := b.src.m
	switch b.op {
	case copyBytes:
		return []safetensors.Tensor{m.array(b.array)}
	case minusEight:
		return []safetensors.Tensor{m.scales}
	}
	if m.enc == recoded {
		return m.recipe.needs
	}
	all := []safetensors.Tensor{m.weight}
	for _, t := range []safetensors.Tensor{m.scales, m.biases} {
		if t.Name != "" {
			all = append(all, t)
		}
	}
	return all
}

// resume checks that what earlier calls wrote is there, and starts over if it is not.
func (r *arrival) resume() error {
	for _, t := range r.targets {
		if t.first < r.out.state.Arrived && r.out.kept(t.name) == 0 && !r.out.hasPart(t) {
			r.out.meter.say(fmt.Sprintf("%s is gone from %s: everything is converted again", t.name, r.out.dir))
			if err := r.out.startOver(); err != nil {
				return err
			}
			break
		}
	}
	for _, n := range r.written[:r.out.state.Arrived] {
		r.out.meter.done += n
	}
	return nil
}

// run converts the shards that were not converted yet, and writes the rest.
func (r *arrival) run(ctx context.Context) error {
	r.sayLeft()
	for k := range r.shards {
		if k >= r.out.state.Arrived && r.shards[k].last != notNeeded {
			if err := r.convert(ctx, k); err != nil {
				return err
			}
		}
		if err := r.remove(k); err != nil {
			return err
		}
	}
	if err := r.seal(ctx); err != nil {
		return err
	}
	return r.rest(ctx)
}

// convert writes all blocks that a shard completes.
func (r *arrival) convert(ctx context.Context, k int) error {
	if err := r.bring(ctx, k); err != nil {
		return err
	}
	r.out.meter.step = fmt.Sprintf("converting %s (%d of %d)", r.shards[k].name, k+1, len(r.shards))
	mine := func(t safetensors.Tensor) bool { return r.at[r.in.fileOf(t.Name)] == k }
	if err := r.in.plan.checkShapes(mine); err != nil {
		return err
	}
	for _, t := range r.targets {
		if t.first <= k && k <= t.last {
			if err := r.fill(ctx, t, k); err != nil {
				return err
			}
		}
	}
	r.out.state.Arrived = k + 1
	if err := r.out.saveState(); err != nil {
		return err
	}
	return r.seal(ctx)
}

// bring has shard k come, and those before it that are needed with it.
func (r *arrival) bring(ctx context.Context, k int) error {
	for _, s := range r.shards[:k+1] {
		if s.here || s.last < k {
			continue
		}
		if ctx.Err() != nil {
			return interrupted(context.Cause(ctx))
		}
		if err := r.source.Bring(ctx, s.name); err != nil {
			return err
		}
		if err := s.file.Attach(); err != nil {
			return fmt.Errorf("convert: %w", err)
		}
		s.here = true
	}
	return nil
}

// remove removes the shards that are not needed after shard k, which is converted.
func (r *arrival) remove(k int) error {
	for _, s := range r.shards[:k+1] {
		if s.last > k || s.gone {
			continue
		}
		if s.here {
			if err := s.file.Detach(); err != nil {
				return fmt.Errorf("convert: %w", err)
			}
			s.here = false
		}
		if err := r.source.Remove(s.name); err != nil {
			return err
		}
		s.gone = true
	}
	return nil
}

// checkSpace compares the most that the disk must hold at a time with what is free.
func (r *arrival) checkSpace(free func(string) (uint64, error)) error {
	const slack = 8 << 20 // manifests, vocab.bin, the file system's own
	var most, done, present int64
	for k := range r.shards {
		done += r.written[k]
		if k < r.out.state.Arrived {
			present = done
			continue
		}
		now := done
		for _, s := range r.shards[:k+1] {
			if s.last >= k {
				now += s.Size
			}
		}
		most = max(most, now)
	}
	need := max(most, done) + slack
	for _, s := range r.in.small {
		need += s.size
	}
	need -= present
	for _, s := range r.shards {
		need -= s.Have
	}
	dir := filepath.Dir(r.out.dir)
	got, err := free(dir)
	if err != nil {
		return fmt.Errorf("convert: free space of %s: %w", dir, err)
	}
	if need > 0 && uint64(need) > got {
		return &SpaceError{Dir: dir, Need: uint64(need), Free: got}
	}
	return nil
}
