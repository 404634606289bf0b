package convert_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/durable"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/safetensors"
)

// far is a checkpoint in shards elsewhere, of which it brings one after another.
type far struct {
	from, dir string
	brought   []string // names, one for each call of Bring
	most      int64    // bytes of the shards that were in dir at a time
	now       int64
	fail      func(name string) error // of Bring; nil for none
	sum       string
}

// inShards writes a checkpoint's tensors to n shards in a new directory, in the order of a
// permutation, and returns the source of its shards.
func inShards(t *testing.T, src string, n int, order func([]string)) *far {
	t.Helper()
	c, err := safetensors.OpenDir(src)
	check(t, err)
	defer c.Close()
	names := c.Names()
	order(names)
	f := &far{from: t.TempDir(), dir: filepath.Join(t.TempDir(), filepath.Base(src)), sum: "1"}
	check(t, os.Mkdir(f.dir, 0o777))
	weightMap := map[string]string{}
	for i := range n {
		var list []safetensors.Tensor
		file := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, n)
		for _, name := range names[len(names)*i/n : len(names)*(i+1)/n] {
			x, _ := c.Tensor(name)
			list = append(list, x)
			weightMap[name] = file
		}
		check(t, safetensors.WriteFile(filepath.Join(f.from, file), list, nil))
	}
	raw, err := json.Marshal(map[string]any{"weight_map": weightMap})
	check(t, err)
	writeFile(t, filepath.Join(f.dir, safetensors.IndexName), raw)
	entries, err := os.ReadDir(src)
	check(t, err)
	for _, e := range entries {
		if !strings.Contains(e.Name(), ".safetensors") {
			writeFile(t, filepath.Join(f.dir, e.Name()), readFile(t, filepath.Join(src, e.Name())))
		}
	}
	return f
}

func inOrder([]string) {}

func shuffled(seed uint64) func([]string) {
	return func(names []string) {
		rand.New(rand.NewPCG(seed, 1)).Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	}
}

func (f *far) Describe(_ context.Context, name string) (convert.Shard, error) {
	x, err := safetensors.Open(filepath.Join(f.from, name))
	if err != nil {
		return convert.Shard{}, err
	}
	defer x.Close()
	info, err := os.Stat(filepath.Join(f.from, name))
	if err != nil {
		return convert.Shard{}, err
	}
	s := convert.Shard{Header: bytes.Clone(x.Header()), Size: info.Size(), Sum: f.sum}
	if info, err := os.Stat(filepath.Join(f.dir, name)); err == nil {
		s.Have = info.Size()
	}
	return s, nil
}

func (f *far) Bring(_ context.Context, name string) error {
	f.brought = append(f.brought, name)
	if f.fail != nil {
		if err := f.fail(name); err != nil {
			return err
		}
	}
	raw, err := os.ReadFile(filepath.Join(f.from, name))
	if err == nil {
		err = os.WriteFile(filepath.Join(f.dir, name), raw, 0o666)
	}
	f.now += int64(len(raw))
	f.most = max(f.most, f.now)
	return err
}

func (f *far) Remove(name string) error {
	path := filepath.Join(f.dir, name)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	f.now -= info.Size()
	return os.Remove(path)
}

func (f *far) convert(ctx context.Context, dst string, o convert.Options) error {
	return convert.ConvertArriving(ctx, convert.Arriving{Dir: f.dir, Name: filepath.Base(f.dir), Shards: f}, dst, unsafely(o))
}

// largest returns the size of the largest shard.
func (f *far) largest(t *testing.T) (n int64) {
	t.Helper()
	entries, err := os.ReadDir(f.from)
	check(t, err)
	for _, e := range entries {
		info, err := e.Info()
		check(t, err)
		n = max(n, info.Size())
	}
	return n
}

// empty checks that no shard is left.
func (f *far) empty(t *testing.T) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(f.dir, "*.safetensors*"))
	if err != nil || !slices.Equal(left, []string{filepath.Join(f.dir, safetensors.IndexName)}) {
		t.Errorf("left of the shards: %v, %v", left, err)
	}
}

// However a checkpoint is divided into shards, what arrives piece by piece becomes the same bytes.
// Shards in the order of the layers are removed before the next one comes, but for those that a
// matrix lies across.
func TestArriving(t *testing.T) {
	options := []convert.Options{{}, {Bits: 4, ExpertBits: 2}, {RowOrder: true}}
	for i, name := range fixtures.All() {
		src, o := fixtures.Dir(t, name), options[i%len(options)]
		want := mustConvert(t, src, o)
		for n, order := range map[int]func([]string){1: inOrder, 5: shuffled(uint64(i)), 7: inOrder} {
			f := inShards(t, src, n, order)
			dst := filepath.Join(t.TempDir(), "pack")
			if err := f.convert(t.Context(), dst, o); err != nil {
				t.Fatalf("%s, %+v, %d shards: %v", name, o, n, err)
			}
			sameTree(t, dst, want)
			f.empty(t)
			if !slices.IsSorted(f.brought) || len(slices.Compact(slices.Clone(f.brought))) != len(f.brought) {
				t.Errorf("%s, %d shards: brought %q, want each once", name, n, f.brought)
			}
			if n == 7 && f.most > 2*f.largest(t) {
				t.Errorf("%s: %d bytes of shards at a time, the largest has %d", name, f.most, f.largest(t))
			}
		}
	}
}

// Codes of 4 bits and floats of 8 arrive like other numbers. What can only be checked by reading
// them is checked when they come.
func TestArrivingEncoded(t *testing.T) {
	kimi, _ := newKimi()
	tiled := newDeepseek("deepseek_v3")
	for e := range exExperts {
		for _, name := range usual {
			tiled.tile(fmt.Sprintf("model.layers.1.mlp.experts.%d.%s.weight", e, name))
		}
	}
	for i, c := range []*checkpoint{kimi, tiled} {
		src := c.write(t)
		dst := filepath.Join(t.TempDir(), "pack")
		check(t, inShards(t, src, 6, shuffled(uint64(i))).convert(t.Context(), dst, convert.Options{}))
		sameTree(t, dst, mustConvert(t, src, convert.Options{}))
	}
	for i, form := range []string{"gptq", "ct-nvfp4", "mlx-mixed", "fp8-tiles"} {
		src, dst := fixtures.Quantised(t)[form], filepath.Join(t.TempDir(), "pack")
		check(t, inShards(t, src, 6, shuffled(uint64(i))).convert(t.Context(), dst, convert.Options{}))
		sameTree(t, dst, mustConvert(t, src, convert.Options{}))
	}
	shape := "model.layers.1.mlp.experts.1.up_proj.weight_shape"
	kimi.tensors[shape].Data[0]++
	err := inShards(t, kimi.write(t), 6, shuffled(1)).convert(t.Context(), filepath.Join(t.TempDir(), "pack"), convert.Options{})
	var bad *convert.SourceError
	if !errors.As(err, &bad) || bad.Tensor != shape {
		t.Errorf("a matrix of another shape than it says: %v", err)
	}
	order := fixtures.Path(t, "quantised/"+fixtures.OutOfOrder)
	err = inShards(t, order, 6, shuffled(2)).convert(t.Context(), filepath.Join(t.TempDir(), "pack"), convert.Options{})
	if !errors.As(err, &bad) || !strings.HasSuffix(bad.Tensor, ".g_idx") {
		t.Errorf("groups of inputs that are no neighbours: %v", err)
	}
}

// A shard in which everything is skipped is not asked for.
func TestArrivingSkips(t *testing.T) {
	c := newCheckpoint(safetensors.BF16)
	c.add("visual.patch.weight", safetensors.BF16, 4)
	f := inShards(t, c.write(t), len(c.tensors), inOrder)
	check(t, f.convert(t.Context(), filepath.Join(t.TempDir(), "pack"), convert.Options{}))
	if len(f.brought) != len(c.tensors)-1 || slices.Contains(f.brought, fmt.Sprintf("model-%05[1]d-of-%05[1]d.safetensors", len(c.tensors))) {
		t.Errorf("brought %d of %d shards, the last %s", len(f.brought), len(c.tensors), f.brought[len(f.brought)-1])
	}
}

// copyTree copies a directory with all that is in it.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	check(t, os.CopyFS(to, os.DirFS(from)))
}

// Whenever the process is killed, the same call goes on from what the disk held at that moment, and
// makes the same bytes.
func TestArrivingKilled(t *testing.T) {
	src := fixtures.Dir(t, fixtures.Qwen35MoEBF16)
	want := mustConvert(t, src, convert.Options{Bits: 4})
	count := 0
	o := convert.Options{Bits: 4, Progress: func(convert.Progress) { count++ }}
	check(t, inShards(t, src, 5, inOrder).convert(t.Context(), filepath.Join(t.TempDir(), "pack"), o))
	for i := 0; i < count; i += count/9 + 1 {
		f := inShards(t, src, 5, shuffled(uint64(i)))
		dst, killed := filepath.Join(t.TempDir(), "pack"), t.TempDir()
		calls := 0
		o.Progress = func(convert.Progress) {
			if calls++; calls == i+1 {
				copyTree(t, dst+".partial", filepath.Join(killed, "pack.partial"))
				copyTree(t, f.dir, filepath.Join(killed, filepath.Base(f.dir)))
			}
		}
		check(t, f.convert(t.Context(), dst, o))
		sameTree(t, dst, want)
		f.dir = filepath.Join(killed, filepath.Base(f.dir))
		again := 0
		o.Progress = func(convert.Progress) { again++ }
		if err := f.convert(t.Context(), filepath.Join(killed, "pack"), o); err != nil {
			t.Fatalf("killed at call %d of %d: %v", i, count, err)
		}
		sameTree(t, filepath.Join(killed, "pack"), want)
		f.empty(t)
		if i > count*4/5 && again >= calls {
			t.Errorf("killed at call %d of %d: all was done again in %d", i, calls, again)
		}
	}
}

// dies makes the source fail once it brought n shards.
func (f *far) dies(n int) error {
	broken := errors.New("the line is dead")
	f.fail = func(string) error {
		if len(f.brought) > n {
			return broken
		}
		return nil
	}
	return broken
}

// recovers undoes dies, and forgets what was brought.
func (f *far) recovers() { f.fail, f.brought = nil, nil }

// A conversion that is cancelled, or whose source fails, keeps what was converted.
func TestArrivingInterrupted(t *testing.T) {
	src := fixtures.Dir(t, fixtures.Qwen35MoEQ4)
	want := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	for n := range 5 {
		f := inShards(t, src, 6, inOrder)
		dst := filepath.Join(t.TempDir(), "pack")
		broken := f.dies(n)
		if err := f.convert(t.Context(), dst, convert.Options{}); !errors.Is(err, broken) {
			t.Fatalf("got %v, want the error of the source", err)
		}
		notWhole(t, dst)
		f.recovers()
		ctx, cancel := context.WithCancel(t.Context())
		err := f.convert(ctx, dst, convert.Options{Progress: func(p convert.Progress) {
			if strings.Contains(p.Step, fmt.Sprintf("(%d of 6)", n+2)) {
				cancel()
			}
		}})
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("cancelled at shard %d: %v", n+2, err)
		}
		notWhole(t, dst)
		check(t, f.convert(t.Context(), dst, convert.Options{}))
		if i := slices.Index(f.brought, "model-00001-of-00006.safetensors"); n > 1 && i >= 0 {
			t.Errorf("the first shard came again after %d were converted: %q", n, f.brought)
		}
		sameTree(t, dst, want)
	}
}

// full is a file system whose files take no more than some bytes.
type full struct {
	durable.OS
	left *int
}

func (d full) Edit(path string, perm fs.FileMode) (durable.Edited, error) {
	f, err := d.OS.Edit(path, perm)
	return fullFile{f, d.left}, err
}

type fullFile struct {
	durable.Edited
	left *int
}

func (f fullFile) WriteAt(p []byte, at int64) (int, error) {
	if *f.left -= len(p); *f.left < 0 {
		return 0, syscall.ENOSPC
	}
	return f.Edited.WriteAt(p, at)
}

// If the disk is full at any point, the error says so. With space, the conversion continues and
// gives the same bytes.
func TestArrivingDiskFull(t *testing.T) {
	src := fixtures.Dir(t, fixtures.Qwen35MoEQ4)
	want := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	for _, room := range []int{0, 1000, 450_000, 1_000_000, 2_200_000} {
		f := inShards(t, src, 4, inOrder)
		dst := filepath.Join(t.TempDir(), "pack")
		o := convert.Options{}.WithFiles(full{left: &room})
		err := convert.ConvertArriving(t.Context(), convert.Arriving{Dir: f.dir, Name: filepath.Base(f.dir), Shards: f}, dst, o)
		var bad *convert.WriteError
		if !errors.As(err, &bad) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "disk is full") || bad.Path == "" {
			t.Fatalf("got %v, want a *WriteError of ENOSPC", err)
		}
		notWhole(t, dst)
		check(t, f.convert(t.Context(), dst, convert.Options{}))
		sameTree(t, dst, want)
	}
}

// What an earlier call wrote is not trusted when the source is another one, or when it is gone.
func TestArrivingStartsOver(t *testing.T) {
	src := fixtures.Dir(t, fixtures.Qwen35MoEQ4)
	want := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	for what, change := range map[string]func(f *far, partial string){
		"another sum": func(f *far, _ string) { f.sum = "2" },
		"another config": func(f *far, _ string) {
			path := filepath.Join(f.dir, "config.json")
			writeFile(t, path, append(readFile(t, path), '\n'))
		},
		"a part is gone": func(_ *far, partial string) { check(t, os.Remove(filepath.Join(partial, "model_weights.bin.part"))) },
		"a part is cut": func(_ *far, partial string) {
			check(t, os.Truncate(filepath.Join(partial, "model_weights.bin.part"), 100))
		},
		"a layer is gone": func(_ *far, partial string) {
			check(t, os.Remove(filepath.Join(partial, "packed_experts", "layer_00.bin")))
		},
	} {
		f := inShards(t, src, 6, inOrder)
		dst := filepath.Join(t.TempDir(), "pack")
		if broken := f.dies(5); !errors.Is(f.convert(t.Context(), dst, convert.Options{}), broken) {
			t.Fatal("it did not fail")
		}
		f.recovers()
		change(f, dst+".partial")
		check(t, f.convert(t.Context(), dst, convert.Options{}))
		if len(f.brought) != 6 {
			t.Errorf("%s: brought %q, want all", what, f.brought)
		}
		if what == "another config" {
			check(t, os.WriteFile(filepath.Join(dst, "config.json"), readFile(t, filepath.Join(want, "config.json")), 0o600))
			check(t, os.WriteFile(filepath.Join(dst, "checksums.json"), readFile(t, filepath.Join(want, "checksums.json")), 0o600))
		}
		sameTree(t, dst, want)
	}
}

// lying describes shards otherwise than they are.
type lying struct {
	*far
	change func(*convert.Shard)
}

func (l lying) Describe(ctx context.Context, name string) (convert.Shard, error) {
	s, err := l.far.Describe(ctx, name)
	l.change(&s)
	return s, err
}

// Shards that are not as they were described, and sources that do not answer.
func TestArrivingRefuses(t *testing.T) {
	src := fixtures.Dir(t, fixtures.Qwen35MoEQ4)
	broken := errors.New("no answer")
	for what, change := range map[string]func(*convert.Shard){
		"size":   func(s *convert.Shard) { s.Size++ },
		"header": func(s *convert.Shard) { s.Header = bytes.Replace(s.Header, []byte("BF16"), []byte("F16 "), 1) },
		"names": func(s *convert.Shard) {
			s.Header = bytes.ReplaceAll(s.Header, []byte("norm"), []byte("nerm"))
		},
		"hole": func(s *convert.Shard) { s.Header = []byte("{}") },
	} {
		f := inShards(t, src, 3, inOrder)
		dst := filepath.Join(t.TempDir(), "pack")
		err := convert.ConvertArriving(t.Context(), convert.Arriving{Dir: f.dir, Name: "x", Shards: lying{f, change}}, dst, convert.Options{})
		if !is[*safetensors.FormatError](err) {
			t.Errorf("%s: got %v, want a *safetensors.FormatError", what, err)
		}
		if len(f.brought) > 0 {
			t.Errorf("%s: brought %q", what, f.brought)
		}
		gone(t, dst)
	}
	f := inShards(t, src, 3, inOrder)
	asked := 0
	f.sum = "x"
	err := convert.ConvertArriving(t.Context(), convert.Arriving{Dir: f.dir, Name: "x", Shards: deaf{f, &asked, broken}}, filepath.Join(t.TempDir(), "pack"), convert.Options{})
	if !errors.Is(err, broken) || asked != 1 || strings.Count(err.Error(), "\n") > 0 {
		t.Errorf("asked %d times of shards, got %v", asked, err)
	}
	for _, name := range []string{"model-00002-of-00003.safetensors"} { // what comes is not what was described
		f := inShards(t, src, 3, inOrder)
		f.fail = func(n string) error {
			if n == name {
				raw := readFile(t, filepath.Join(f.from, n))
				writeFile(t, filepath.Join(f.from, n), raw[:len(raw)-1])
			}
			return nil
		}
		if err := f.convert(t.Context(), filepath.Join(t.TempDir(), "pack"), convert.Options{}); !is[*safetensors.FormatError](err) {
			t.Errorf("a shard that is too short: %v", err)
		}
	}
}

type deaf struct {
	*far
	asked *int
	err   error
}

func (d deaf) Describe(context.Context, string) (convert.Shard, error) {
	*d.asked++
	return convert.Shard{}, d.err
}

// The disk must hold the target and what is needed of shards at a time, less what it holds already.
func TestArrivingSpace(t *testing.T) {
	src := fixtures.Dir(t, fixtures.Qwen35MoEQ4)
	f := inShards(t, src, 4, inOrder)
	dst := filepath.Join(t.TempDir(), "pack")
	free := func(n uint64) convert.Options {
		return convert.Options{FreeSpace: func(string) (uint64, error) { return n, nil }}
	}
	need := func() uint64 {
		t.Helper()
		err := f.convert(t.Context(), dst, free(0))
		var space *convert.SpaceError
		if !errors.As(err, &space) || space.Dir != filepath.Dir(dst) {
			t.Fatalf("got %v, want a *SpaceError", err)
		}
		return space.Need
	}
	whole := need()
	gone(t, dst+".partial")
	var target int64
	for _, content := range tree(t, fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)) {
		target += int64(len(content))
	}
	if least := uint64(target); whole < least || whole > least+uint64(2*f.largest(t))+8<<20 {
		t.Errorf("%d bytes needed for a target of %d and shards of %d", whole, least, f.largest(t))
	}
	broken := f.dies(2)
	if err := f.convert(t.Context(), dst, free(whole)); !errors.Is(err, broken) {
		t.Fatalf("with just enough room: %v", err)
	}
	f.recovers()
	if rest := need(); rest >= whole-uint64(target/4) {
		t.Errorf("%d bytes needed after two of four shards, %d before", rest, whole)
	}
	check(t, f.convert(t.Context(), dst, convert.Options{}))
}
