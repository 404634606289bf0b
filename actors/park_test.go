package actors_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/snapshot"
	"github.com/moeflux/moeflux-actor/stages"
)

// parkedFiles returns the files of parked states below a folder.
func parkedFiles(t *testing.T, dir string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".state") {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func states(t testing.TB, e *actors.Engine) stages.StateStats {
	t.Helper()
	st, err := e.Stats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return st.States
}

// TestPark parks texts again and again, to host memory and to files: they go on with the bits of a
// text that nobody disturbed, and the memory for states is free meanwhile.
func TestPark(t *testing.T) {
	for _, c := range []struct {
		model string
		kv    actors.KVFormat
	}{{fixtures.Qwen35MoEQ4, ""}, {fixtures.Qwen3MoEBF16, ""}, {fixtures.Qwen3MoEBF16, actors.KVInt8}, {fixtures.Qwen35MoEQ4, actors.KVInt8}, {fixtures.DeepseekV3Q4, ""}, {fixtures.DeepseekV3Q4, actors.KVInt8},
		{fixtures.GlmMoEDSASharedBF16, ""}, {fixtures.GlmMoEDSASharedBF16, actors.KVInt8}, {fixtures.GptOssBF16, ""}, {fixtures.MiMoV2FlashBF16, actors.KVInt8},
		{fixtures.MiniMaxM3BF16, ""}, {fixtures.MiniMaxM3BF16, actors.KVInt8}, {fixtures.Step35BF16, ""}, {fixtures.Step35BF16, actors.KVInt8}} {
		if !testenv.Share(t, c.model+string(c.kv), testenv.Rounds(6, 3, 1)) {
			continue
		}
		dir := fixtures.Packed(t, c.model, 0)
		dev := device(t, 2)
		base := open(t, actors.Config{Model: dir, Device: dev, KV: c.kv})
		const n, first, parts = 3, 70, 4
		text := func(i int) []int32 { return prompt(uint64(i), first+parts*3, base.Model().VocabSize) }
		var want [n][][]float32
		for i := range n {
			s := sequence(t, base)
			eval(t, s, text(i)[:first]...)
			for _, token := range text(i)[first:] {
				want[i] = append(want[i], eval(t, s, token))
			}
		}
		size, err := sequence(t, base).Size(ctx, actors.SaveOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, place := range []struct {
			name   string
			memory int64
			files  bool
			far    bool
		}{{"memory", 1 << 30, false, false}, {"files", 0, true, false}, {"both", size + 1<<20, true, false}, {"memory of a far device", 1 << 30, false, true}, {"files of a far device", 0, true, true}} {
			t.Run(fmt.Sprintf("%s/%s/%s", c.model, c.kv, place.name), func(t *testing.T) {
				cfg := actors.Config{Model: dir, Device: dev, KV: c.kv, ParkedMemory: place.memory}
				if place.files {
					cfg.StateDir = filepath.Join(t.TempDir(), "below")
				}
				if place.far {
					cfg.Device = &farDevice{dev}
				}
				e := open(t, cfg)
				var seqs [n]*actors.Sequence
				for i := range n {
					seqs[i] = sequence(t, e)
					eval(t, seqs[i], text(i)[:first]...)
				}
				for part := range parts {
					for _, s := range seqs {
						if err := s.Park(ctx); err != nil {
							t.Fatal(err)
						}
					}
					st, used := states(t, e), place.memory > 0
					if p, _ := pages(t, e); p != 0 || st.Parked != n || st.ParkedHost > place.memory || used != (st.ParkedHost > 0) || place.files != (st.ParkedDisk > 0) && place.name != "both" {
						t.Fatalf("all are parked, but %d pages are in use: %+v", p, st)
					}
					i := e.Info()
					most := n * (i.StateBytes + int64(first+3*part)*i.KVBytesPerPos + 1000) // of each a header and a seal
					if held := st.ParkedHost + st.ParkedDisk; held > most {
						t.Fatalf("parked states take %d bytes, in the device's memory less than %d", held, most)
					}
					if place.name == "files" { // what has returned is removed in the background
						for late := time.Now().Add(10 * time.Second); len(parkedFiles(t, cfg.StateDir)) != n; time.Sleep(time.Millisecond) {
							if time.Now().After(late) {
								t.Fatalf("files %v", parkedFiles(t, cfg.StateDir))
							}
						}
					}
					for i, s := range seqs {
						if s.Len() != first+3*part {
							t.Fatalf("%d positions", s.Len())
						}
						for k := 3 * part; k < 3*part+3; k++ {
							if !slices.Equal(eval(t, s, text(i)[first+k]), want[i][k]) {
								t.Fatalf("text %d: other logits at %d", i, first+k)
							}
						}
					}
					if st := states(t, e); st.Parked != 0 || st.Parkings != st.Returns {
						t.Fatalf("none is parked: %+v", st)
					}
				}
				if err := e.Close(ctx); err != nil {
					t.Fatal(err)
				}
				if place.files && len(parkedFiles(t, cfg.StateDir)) > 0 {
					t.Errorf("files are left: %v", parkedFiles(t, cfg.StateDir))
				}
			})
		}
	}
}

// TestParkFaults damages what is parked, and takes the place to park away. It is the sequence's own
// trouble.
func TestParkFaults(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	text := prompt(1, 70, 100)
	cfg := actors.Config{Model: dir, StateDir: t.TempDir()}
	e := open(t, cfg)
	park := func() (broken, beside *actors.Sequence) {
		broken, beside = sequence(t, e), sequence(t, e)
		for _, s := range []*actors.Sequence{broken, beside} {
			eval(t, s, text...)
			if err := s.Park(ctx); err != nil {
				t.Fatal(err)
			}
		}
		return broken, beside
	}
	want := eval(t, func() *actors.Sequence { s := sequence(t, e); eval(t, s, text...); return s }(), 7)
	for what, damage := range map[string]func(path string) error{
		"truncated": func(path string) error { return os.Truncate(path, 1000) },
		"removed":   os.Remove,
		"changed": func(path string) error {
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			raw[len(raw)/2] ^= 1
			return os.WriteFile(path, raw, 0o600)
		},
	} {
		broken, beside := park()
		files := parkedFiles(t, cfg.StateDir)
		slices.SortFunc(files, func(a, b string) int { return stateNumber(t, a) - stateNumber(t, b) })
		if err := damage(files[len(files)-2]); err != nil {
			t.Fatal(err)
		}
		_, err := broken.Eval(ctx, []int32{7})
		var lost *stages.ParkedError
		var poisoned *stages.PoisonedError
		if !errors.As(err, &lost) || !errors.As(err, &poisoned) || poisoned.Seq == 0 {
			t.Errorf("%s: %v, want a ParkedError", what, err)
		}
		if what == "changed" && !errors.Is(err, snapshot.ErrChecksum) {
			t.Errorf("%s: %v, want ErrChecksum", what, err)
		}
		if !slices.Equal(eval(t, beside, 7), want) {
			t.Errorf("%s: the sequence beside has other logits", what)
		}
		if err := broken.Reset(ctx); err != nil {
			t.Fatal(err)
		}
		if eval(t, broken, text...); !slices.Equal(eval(t, broken, 7), want) {
			t.Errorf("%s: other logits after a reset", what)
		}
	}
	s, _ := park()
	eval(t, s, 7)
	folders, err := filepath.Glob(filepath.Join(cfg.StateDir, "parked-*"))
	if err != nil || len(folders) != 1 {
		t.Fatal(folders, err)
	}
	if err := os.RemoveAll(folders[0]); err != nil {
		t.Fatal(err)
	}
	if err := s.Park(ctx); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("parked in a folder that is gone: %v", err)
	}
	eval(t, s, 8) // the state has stayed
}

func stateNumber(t *testing.T, path string) (n int) {
	t.Helper()
	if _, err := fmt.Sscanf(filepath.Base(path), "%d.state", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestParkNowhere has no room for parked states, or too little.
func TestParkNowhere(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen3MoEBF16, 0)
	for _, memory := range []int64{0, 1000} {
		s := sequence(t, open(t, actors.Config{Model: dir, ParkedMemory: memory}))
		eval(t, s, 1, 2, 3)
		var full *stages.ParkFullError
		if err := s.Park(ctx); !errors.As(err, &full) || full.Max != memory || full.Need <= memory {
			t.Errorf("with %d bytes: %v", memory, err)
		}
		eval(t, s, 4)
	}
}

// TestStateDirShared has two engines park in one folder, where a third one was killed.
func TestStateDirShared(t *testing.T) {
	dir, place := fixtures.Packed(t, fixtures.Qwen3MoEBF16, 0), t.TempDir()
	dead := filepath.Join(place, "parked-123")
	if err := errors.Join(os.Mkdir(dead, 0o700), os.WriteFile(filepath.Join(dead, "1.state"), []byte("left"), 0o600)); err != nil {
		t.Fatal(err)
	}
	one := open(t, actors.Config{Model: dir, StateDir: place})
	if left := parkedFiles(t, place); len(left) > 0 {
		t.Errorf("a dead process's %v are left", left)
	}
	s := sequence(t, one)
	eval(t, s, 1, 2, 3)
	if err := s.Park(ctx); err != nil {
		t.Fatal(err)
	}
	two := open(t, actors.Config{Model: dir, StateDir: place})
	if err := two.Close(ctx); err != nil || len(parkedFiles(t, place)) != 1 {
		t.Errorf("another engine came and went: %v, %v", err, parkedFiles(t, place))
	}
	eval(t, s, 4)
	file := filepath.Join(place, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if e, err := actors.Open(ctx, actors.Config{Model: dir, Device: device(t, 1), StateDir: file}); err == nil || !strings.Contains(err.Error(), "StateDir") {
		t.Errorf("a file as a folder: %v, %v", e, err)
	}
}

// TestParkedByNeed has sixteen texts take turns in memory for four: who rests makes room for who
// goes on, and all have the bits of texts that nobody disturbed. Without a place to park, the fifth
// is refused.
func TestParkedByNeed(t *testing.T) {
	for _, name := range []string{fixtures.Qwen35MoEQ4, fixtures.Qwen3MoEBF16} {
		dir := fixtures.Packed(t, name, 0)
		dev := device(t, 2)
		base := open(t, actors.Config{Model: dir, Device: dev})
		info := base.Info()
		const texts, first, parts = 16, 20, 3
		text := func(i int) []int32 { return prompt(uint64(i), first+parts, base.Model().VocabSize) }
		for place, cfg := range map[string]actors.Config{"memory": {ParkedMemory: 1 << 30}, "files": {StateDir: t.TempDir()}, "nowhere": {}} {
			t.Run(name+"/"+place, func(t *testing.T) {
				cfg.Model, cfg.Device, cfg.StateMemory = dir, dev, 4*(info.StateBytes+64*info.KVBytesPerPos)
				e := open(t, cfg)
				var seqs []*actors.Sequence
				for i := range texts {
					s := sequence(t, e)
					seqs = append(seqs, s)
					_, err := s.Eval(ctx, text(i)[:first])
					var full *stages.StateMemoryError
					if place == "nowhere" && i >= 4 {
						if !errors.As(err, &full) {
							t.Fatalf("text %d of 4: %v", i, err)
						}
						return
					} else if err != nil {
						t.Fatal(err)
					}
				}
				var all sync.WaitGroup
				for i, s := range seqs {
					all.Go(func() {
						whole := sequence(t, base)
						eval(t, whole, text(i)[:first]...)
						for k := first; k < first+parts; k++ {
							got, err := s.Eval(ctx, text(i)[k:k+1])
							if err != nil || !slices.Equal(got, eval(t, whole, text(i)[k])) {
								t.Errorf("text %d at %d: %v, or other logits", i, k, err)
								return
							}
						}
					})
				}
				all.Wait()
				if st := states(t, e); st.Returns < texts-4 || st.Parked < texts-4 {
					t.Errorf("%+v", st)
				}
			})
		}
	}
}
