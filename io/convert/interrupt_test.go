package convert_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/moeflux/moeflux-actor/internal/durable"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/io/weights"
)

// notWhole checks that an interrupted conversion left nothing that looks like a model.
func notWhole(t *testing.T, dst string) {
	t.Helper()
	gone(t, dst)
	if f, err := weights.Open(dst + ".partial"); err == nil {
		f.Close()
		t.Error("the weights of a half-made pack open")
	}
	if err := convert.Verify(context.Background(), dst+".partial"); err == nil {
		t.Error("a half-made pack verifies")
	}
	cfg := config(t, fixtures.Dir(t, fixtures.Qwen35MoEQ4))
	if f, err := expertfile.Open(dst, cfg); err == nil {
		f.Close()
		t.Error("the experts of a half-made pack open")
	}
}

// A conversion that is cancelled at any point leaves nothing that looks complete. When continued,
// it gives the bytes of one that was never interrupted.
func TestConvertCancelAndResume(t *testing.T) {
	src := fixtures.Dir(t, fixtures.Qwen35MoEQ4)
	want := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	steps := 0
	count := convert.Options{Progress: func(convert.Progress) { steps++ }}
	mustConvert(t, src, count)
	for i := 0; i < steps; i += steps/24 + 1 {
		dst := filepath.Join(t.TempDir(), "pack")
		ctx, cancel := context.WithCancelCause(context.Background())
		why := fmt.Errorf("stopped at call %d of %d", i, steps)
		calls := 0
		err := convert.Convert(ctx, src, dst, unsafely(convert.Options{Progress: func(convert.Progress) {
			if calls++; calls > i {
				cancel(why)
			}
		}}))
		if calls == steps && err == nil {
			continue // stopped after the last byte was counted
		}
		if !errors.Is(err, why) {
			t.Fatalf("stopped at %d: got %v, want %v", i, err, why)
		}
		notWhole(t, dst)
		kept := len(tree(t, dst+".partial")) - 1 // but for the record of progress
		resumed := 0
		var first convert.Progress
		if err := convert.Convert(context.Background(), src, dst, unsafely(convert.Options{Progress: func(p convert.Progress) {
			if resumed++; resumed == 1 {
				first = p
			}
		}})); err != nil {
			t.Fatalf("stopped at %d, taken up: %v", i, err)
		}
		if kept > 0 && resumed >= steps {
			t.Errorf("stopped at %d: %d files were kept, but %d steps of %d done again (first %+v)", i, kept, resumed, steps, first)
		}
		gone(t, dst+".partial")
		sameTree(t, dst, want)
	}
	// Before anything began.
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dst := filepath.Join(t.TempDir(), "pack")
	if err := convert.Convert(ctx, src, dst, convert.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: got %v", err)
	}
	notWhole(t, dst)
}

// disk is a disk of limited size, shared by all files that were opened on it.
type disk struct {
	mu   sync.Mutex
	left int
	sync error // what Sync returns once the room is used up; nil if it works
}

type diskFile struct {
	*os.File
	disk *disk
}

func (d *disk) create(path string) (durable.File, error) {
	f, err := os.Create(path)
	return &diskFile{f, d}, err
}

func (f *diskFile) Write(p []byte) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	n := min(len(p), f.disk.left)
	f.disk.left -= n
	if m, err := f.File.Write(p[:n]); err != nil {
		return m, err
	}
	if n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

func (f *diskFile) Sync() error {
	if f.disk.left < 1000 {
		return f.disk.sync
	}
	return nil
}

// If the disk is full at any point, the error says so. With space, the conversion continues and
// gives the same bytes.
func TestConvertDiskFull(t *testing.T) {
	src := fixtures.Dir(t, fixtures.Qwen35MoEQ4)
	want := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	for _, room := range []int{0, 1, 1000, 100_000, 450_000, 1_000_000, 2_200_000, 2_390_000, 2_430_000} {
		dst := filepath.Join(t.TempDir(), "pack")
		d := &disk{left: room}
		err := convert.Convert(context.Background(), src, dst, convert.Options{}.WithCreate(d.create))
		var bad *convert.WriteError
		if !errors.As(err, &bad) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "disk is full") || bad.Path == "" {
			t.Fatalf("room for %d bytes: got %v, want a *WriteError of ENOSPC", room, err)
		}
		notWhole(t, dst)
		for name := range tree(t, dst+".partial") {
			if strings.HasSuffix(name, ".tmp") {
				t.Errorf("room for %d bytes: %s takes up room", room, name)
			}
		}
		if err := convert.Convert(context.Background(), src, dst, unsafely(convert.Options{})); err != nil {
			t.Fatalf("room for %d bytes, taken up: %v", room, err)
		}
		sameTree(t, dst, want)
	}
	// Some file systems report it only when the data is flushed.
	dst := filepath.Join(t.TempDir(), "pack")
	d := &disk{left: 140_000, sync: syscall.EDQUOT}
	if err := convert.Convert(context.Background(), src, dst, convert.Options{}.WithCreate(d.create)); !is[*convert.WriteError](err) {
		t.Errorf("quota at Sync: got %v", err)
	}
	notWhole(t, dst)
}

// A file system that is too small is reported before anything is written. Files that exist already
// count.
func TestConvertFreeSpace(t *testing.T) {
	src := fixtures.Dir(t, fixtures.Qwen35MoEQ4)
	dst := filepath.Join(t.TempDir(), "pack")
	free := func(n uint64) convert.Options {
		return convert.Options{FreeSpace: func(string) (uint64, error) { return n, nil }}
	}
	err := convert.Convert(context.Background(), src, dst, free(1_000_000))
	var space *convert.SpaceError
	if !errors.As(err, &space) || space.Free != 1_000_000 || space.Need < 2_300_000 || space.Dir != filepath.Dir(dst) {
		t.Fatalf("got %v, want a *SpaceError that needs some 2.4 MB and the slack", err)
	}
	gone(t, dst)
	gone(t, dst+".partial")
	need := space.Need
	d := &disk{left: 1_000_000}
	if err := convert.Convert(context.Background(), src, dst, free(need).WithCreate(d.create)); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("exactly enough space is told: got %v, want it to be tried", err)
	}
	if err := convert.Convert(context.Background(), src, dst, free(0)); !errors.As(err, &space) || space.Need > need-800_000 {
		t.Errorf("taken up: got %v, want less needed than %d", err, need)
	}
	if err := convert.Convert(context.Background(), src, dst, free(space.Need)); err != nil {
		t.Errorf("taken up with room for the rest: %v", err)
	}
	broken := errors.New("no answer")
	if err := convert.Convert(context.Background(), src, filepath.Join(t.TempDir(), "x"), convert.Options{FreeSpace: func(string) (uint64, error) { return 0, broken }}); !errors.Is(err, broken) {
		t.Errorf("free space unknown: got %v", err)
	}
}

// halfway leaves a conversion that was interrupted after some layers and returns its target.
func halfway(t *testing.T, src string, o convert.Options) string {
	t.Helper()
	dst := filepath.Join(t.TempDir(), "pack")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o.Progress = func(p convert.Progress) {
		if p.Done > p.Total/2 {
			cancel()
		}
	}
	if err := convert.Convert(ctx, src, dst, unsafely(o)); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want it cancelled", err)
	}
	return dst
}

// Whatever happens to the prepared directory, the result is right.
func TestConvertResumesSafely(t *testing.T) {
	src := fixtures.Dir(t, fixtures.Qwen35MoEQ4)
	want := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	layer := filepath.Join("packed_experts", "layer_00.bin")
	for name, harm := range map[string]func(partial string){
		"nothing": func(string) {},
		"a crash in the middle of a file": func(p string) {
			writeFile(t, filepath.Join(p, "packed_experts", "layer_05.bin.tmp"), []byte("half"))
		},
		"a file that is not recorded":         func(p string) { writeFile(t, filepath.Join(p, "packed_experts", "layer_07.bin"), []byte("x")) },
		"a recorded file that became shorter": func(p string) { writeFile(t, filepath.Join(p, layer), []byte("x")) },
		"a recorded file that is gone":        func(p string) { check(t, os.Remove(filepath.Join(p, layer))) },
		"a recorded file that became a link": func(p string) {
			check(t, os.Remove(filepath.Join(p, layer)))
			check(t, os.Symlink(filepath.Join(want, layer), filepath.Join(p, layer)))
		},
		"a record that cannot be read": func(p string) { writeFile(t, filepath.Join(p, convert.StateName), []byte("{")) },
		"an empty record":              func(p string) { writeFile(t, filepath.Join(p, convert.StateName), nil) },
		"a record with a path outside": func(p string) {
			path := filepath.Join(p, convert.StateName)
			var s map[string]any
			readJSON(t, path, &s)
			s["files"].(map[string]any)["../../victim"] = map[string]any{"size": 1, "sha256": ""}
			raw, err := json.Marshal(s)
			check(t, err)
			writeFile(t, path, raw)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dst := halfway(t, src, convert.Options{})
			harm(dst + ".partial")
			if err := convert.Convert(context.Background(), src, dst, unsafely(convert.Options{})); err != nil {
				t.Fatal(err)
			}
			sameTree(t, dst, want)
			if err := convert.Verify(context.Background(), dst); err != nil {
				t.Error(err)
			}
		})
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Finished files from another source or other options are not reused.
func TestConvertResumesOnlyTheSame(t *testing.T) {
	c := newCheckpoint(safetensors.BF16)
	first := c.write(t)
	want := mustConvert(t, first, convert.Options{Bits: 4})
	dst := halfway(t, first, convert.Options{})
	check(t, convert.Convert(context.Background(), first, dst, convert.Options{Bits: 4}))
	sameBytes(t, "other bits", readFile(t, filepath.Join(dst, weights.DataName)), readFile(t, filepath.Join(want, weights.DataName)))
	sameTree(t, filepath.Join(dst, "packed_experts"), filepath.Join(want, "packed_experts"))

	o := convert.Options{Bits: 4, ExpertBits: 2}
	dst = halfway(t, first, convert.Options{Bits: 4})
	check(t, convert.Convert(context.Background(), first, dst, o))
	sameTree(t, dst, mustConvert(t, first, o))

	// The same names, shapes and sizes with other numbers, and a later time.
	for _, x := range c.tensors {
		for i := range x.Data {
			x.Data[i] ^= 1
		}
	}
	second := c.write(t)
	later := time.Now().Add(time.Hour)
	check(t, os.Chtimes(filepath.Join(second, "model.safetensors"), later, later))
	want = mustConvert(t, second, convert.Options{})
	dst = halfway(t, first, convert.Options{})
	writeFile(t, filepath.Join(dst+".partial", "packed_experts", "layer_09.bin"), []byte("of a deeper model"))
	check(t, convert.Convert(context.Background(), second, dst, convert.Options{}))
	sameTree(t, dst, want)
}

// Two conversions to one directory exclude each other.
func TestConvertBusy(t *testing.T) {
	src := fixtures.Dir(t, fixtures.Qwen35MoEBF16)
	dst := filepath.Join(t.TempDir(), "pack")
	var inner error
	once := false
	err := convert.Convert(context.Background(), src, dst, convert.Options{Progress: func(convert.Progress) {
		if !once {
			once = true
			inner = convert.Convert(context.Background(), src, dst, convert.Options{})
		}
	}})
	if err != nil || !errors.Is(inner, convert.ErrBusy) {
		t.Errorf("got %v and, within it, %v, want nil and ErrBusy", err, inner)
	}
}

// A source that is truncated while it is read gives an error, not a crash.
func TestConvertSourceTruncatedMeanwhile(t *testing.T) {
	for _, bits := range []int{0, 4} {
		dir := newCheckpoint(safetensors.BF16).write(t)
		dst := filepath.Join(t.TempDir(), "pack")
		once := false
		err := convert.Convert(context.Background(), dir, dst, convert.Options{Bits: bits, Progress: func(convert.Progress) {
			if !once {
				once = true
				check(t, os.Truncate(filepath.Join(dir, "model.safetensors"), 4096))
			}
		}})
		var write *convert.WriteError
		if err == nil || errors.As(err, &write) || !strings.Contains(err.Error(), "source") {
			t.Errorf("bits %d: got %v, want an error that blames the source", bits, err)
		}
		gone(t, dst)
		for name := range tree(t, dst+".partial") {
			if strings.HasSuffix(name, ".tmp") {
				t.Errorf("bits %d: %s is left", bits, name)
			}
		}
	}
}

// A file under its final name is complete at every moment.
func TestConvertFilesAppearWhole(t *testing.T) {
	src := fixtures.Dir(t, fixtures.Qwen35MoEQ4)
	want := tree(t, fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0))
	dst := filepath.Join(t.TempDir(), "pack")
	calls := 0
	check(t, convert.Convert(context.Background(), src, dst, unsafely(convert.Options{Progress: func(convert.Progress) {
		if calls++; calls%20 != 0 {
			return
		}
		for name, content := range tree(t, dst+".partial") {
			if whole, ok := want[name]; ok && content != whole {
				t.Fatalf("%s has %d bytes after %d calls, want %d or no such file", name, len(content), calls, len(whole))
			}
		}
	}})))
	if calls < 100 {
		t.Errorf("looked after %d calls only", calls)
	}
}

// Progress never goes back, ends at the total, and reports what is left out.
func TestConvertProgress(t *testing.T) {
	c := newCheckpoint(safetensors.BF16)
	dir := c.write(t)
	writeFile(t, filepath.Join(dir, "tokenizer.json"), []byte(`{"model":{"type":"Unigram"}}`))
	var last convert.Progress
	var warnings []string
	dst := mustConvert(t, dir, convert.Options{Progress: func(p convert.Progress) {
		if p.Done < last.Done || p.Total <= 0 || p.Done > p.Total || p.Step == "" {
			t.Errorf("%+v after %+v", p, last)
		}
		if p.Warning != "" {
			warnings = append(warnings, p.Warning)
		}
		last = p
	}})
	if last.Done != last.Total {
		t.Errorf("the last is %+v", last)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "vocab.bin") || !strings.Contains(warnings[0], "tokenizer.json") {
		t.Errorf("warnings %q, want one about vocab.bin", warnings)
	}
	gone(t, filepath.Join(dst, "vocab.bin"))
	if err := convert.Verify(context.Background(), dst); err != nil {
		t.Error(err)
	}
}

// A disk that is really full, if one can be mounted: a memory file system of 1 MiB. Otherwise
// TestConvertDiskFull shows the same with a file that refuses writes.
func TestConvertSmallFileSystem(t *testing.T) {
	src := fixtures.Dir(t, fixtures.Qwen35MoEQ4)
	dir := t.TempDir()
	// as if other programs filled it meanwhile
	o := convert.Options{FreeSpace: func(string) (uint64, error) { return 1 << 40, nil }}
	if err := mountSmall(dir); err != nil {
		t.Logf("no file system of our own (%v): a file that refuses stands in", err)
		o = o.WithCreate((&disk{left: 1 << 20}).create)
	} else {
		t.Cleanup(func() { check(t, unix.Unmount(dir, 0)) })
		if err := convert.Convert(context.Background(), src, filepath.Join(dir, "small"), convert.Options{}); !is[*convert.SpaceError](err) {
			t.Errorf("1 MiB free: got %v, want a *SpaceError", err)
		}
	}
	dst := filepath.Join(dir, "pack")
	err := convert.Convert(context.Background(), src, dst, o)
	if !is[*convert.WriteError](err) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v, want a *WriteError of ENOSPC", err)
	}
	notWhole(t, dst)
}
