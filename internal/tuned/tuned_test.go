package tuned

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// slot is the bytes of a slot of the fixture, which has 32 experts.
const slot = 24576

// world is a model, a folder, and how devices are opened.
type world struct {
	t       *testing.T
	cache   string
	cfg     actors.Config
	devices []int // threads of those that were opened
	open    int
}

// closing counts devices that are open.
type closing struct {
	*host.Device
	w *world
}

func (d closing) Close() error {
	d.w.open--
	return d.Device.Close()
}

func newWorld(t *testing.T) *world {
	return &world{t: t, cache: t.TempDir(), cfg: actors.Config{
		Model: fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0), ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 20 * slot, Context: 64,
	}}
}

func (w *world) device(threads int) (gpu.Device, error) {
	if threads == 0 {
		threads = 2
	}
	w.devices, w.open = append(w.devices, threads), w.open+1
	d, err := host.New(host.Config{Threads: threads})
	return closing{d, w}, err
}

func (w *world) path() string {
	w.t.Helper()
	path, err := Path(w.cache, &w.cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	return path
}

// keep keeps settings as tune does.
func (w *world) keep(s Settings) *Kept {
	w.t.Helper()
	d, _ := w.device(0)
	defer d.Close()
	cfg := w.cfg
	cfg.Device = d
	info, err := actors.Plan(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	k, err := New(&cfg, &info, s, Found{Gain: 0.1, Pairs: 6, P: 0.01, Test: "a test", At: time.Unix(1, 0)})
	if err == nil {
		err = k.Save(w.path())
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.devices = nil
	return k
}

// resolve opens an engine as the Config says and returns what it runs with.
func (w *world) resolve(change func(*Opening)) (info actors.Info, why string) {
	w.t.Helper()
	o := Opening{Cache: w.cache, Config: w.cfg, Device: w.device}
	if change != nil {
		change(&o)
	}
	cfg, why, err := o.resolve()
	if err != nil {
		w.t.Fatal(err)
	}
	if info, err = actors.Plan(cfg); err != nil {
		w.t.Fatal(err)
	}
	if err := cfg.Device.Close(); err != nil || w.open != 0 {
		w.t.Errorf("%d devices are still open, %v", w.open, err)
	}
	return info, why
}

var all = Settings{RingDepth: 3, Prefetch: "last-token", PrefetchLayers: 1, ReadWorkers: 7, Threads: 1}

// What does not fit is a line in the log, if there is one.
func TestLogged(t *testing.T) {
	w := newWorld(t)
	w.keep(all)
	var log strings.Builder
	w.cfg.KV, w.cfg.Logger = actors.KVInt8, slog.New(slog.NewTextHandler(&log, nil))
	o := Opening{Cache: w.cache, Config: w.cfg, Device: w.device}
	cfg, err := o.Resolve()
	if err != nil || cfg.Tuned != "" || strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "keys and values was f32") {
		t.Errorf("%q is taken, %v; the log says %q", cfg.Tuned, err, log.String())
	}
	cfg.Device.Close()
}

// What is kept is taken, and only where the caller leaves it open.
func TestTaken(t *testing.T) {
	w := newWorld(t)
	if i, why := w.resolve(nil); i.Tuned != "" || why != "" {
		t.Errorf("nothing is kept, but %q is taken, %q", i.Tuned, why)
	}
	w.keep(all)
	i, why := w.resolve(nil)
	const flags = "--ring-depth 3 --prefetch last-token --prefetch-layers 1 --read-workers 7 --threads 1"
	if i.RingDepth != 3 || i.Prefetch != actors.PrefetchLastToken || i.PrefetchLayers != 1 || i.ReadWorkers != 7 || i.Threads != 1 || i.Tuned != flags || why != "" {
		t.Errorf("%+v, %q; want %s", i, why, flags)
	}
	i, _ = w.resolve(func(o *Opening) {
		o.Config.RingDepth, o.Config.Prefetch, o.Config.ReadWorkers, o.Threads = 2, actors.PrefetchBoth, 4, 2
	})
	if i.RingDepth != 2 || i.Prefetch != actors.PrefetchBoth || i.ReadWorkers != 4 || i.Threads != 2 || i.Tuned != "--prefetch-layers 1" {
		t.Errorf("what the caller gives does not win: %+v", i)
	}
	if i, why := w.resolve(func(o *Opening) { o.Cache = "" }); i.Tuned != "" || i.RingDepth != 2 || why != "" {
		t.Errorf("without a folder %q is taken, %q", i.Tuned, why)
	}
	own, err := host.New(host.Config{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	if i, why := w.resolve(func(o *Opening) { o.Config.Device = own }); i.Tuned != "" || !strings.Contains(why, "for --threads 1, and the device was opened with 2") {
		t.Errorf("a device of the caller's with other threads: %q is taken, %q", i.Tuned, why)
	}
}

// Kept settings are for what they were measured with. Each difference is said, and nothing is
// taken then.
func TestMisfits(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Kept)
		now    func(*Opening)
		why    string
	}{
		{"program", func(k *Kept) { k.Program = "older" }, nil, "the program was older"},
		{"processor", func(k *Kept) { k.Machine.Processor = "a 6502" }, nil, "the processor was a 6502"},
		{"cores", func(k *Kept) { k.Machine.Cores += 3 }, nil, "the number of cores was"},
		{"memory", func(k *Kept) { k.Machine.MemoryBytes *= 2 }, nil, "a machine with"},
		{"system", func(k *Kept) { k.Machine.OS = "plan9" }, nil, "the system was plan9"},
		{"device", func(k *Kept) { k.Engine.Device = "a GPU" }, nil, "the device was a GPU"},
		{"top k", nil, func(o *Opening) { o.Config.ExpertsPerToken = 1 }, "the number of experts a token"},
		{"kv", nil, func(o *Opening) { o.Config.KV = actors.KVInt8 }, "the format of keys and values was f32 when they were chosen, and is int8 now"},
		{"mapped", nil, func(o *Opening) { o.Config.ExpertIO, o.Config.ExpertMemory = actors.ExpertIOMmap, 0 }, "expert slots"},
		{"slots", nil, func(o *Opening) { o.Config.ExpertMemory = 10 * slot }, "they are for 20 expert slots, now there are 10"},
		{"damaged", func(k *Kept) { k.Settings.Prefetch = "psychic" }, nil, `they are damaged: actors: Config.Prefetch is "psychic"`},
		{"version", func(k *Kept) { k.Version = 2 }, nil, "another version of this program"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			k := w.keep(all)
			if c.change != nil {
				c.change(k)
				if err := k.Save(w.path()); err != nil {
					t.Fatal(err)
				}
			}
			if i, why := w.resolve(c.now); i.Tuned != "" || i.RingDepth != 2 || !strings.Contains(why, c.why) {
				t.Errorf("%q is taken, why %q, want %q", i.Tuned, why, c.why)
			}
		})
	}
	w := newWorld(t)
	w.keep(all)
	if i, why := w.resolve(func(o *Opening) { o.Config.ExpertMemory = 18 * slot }); i.Tuned == "" || why != "" {
		t.Errorf("a few slots less: %q is taken, %q", i.Tuned, why)
	}
}

// A file that tune did not write is told, and opens the engine without.
func TestFiles(t *testing.T) {
	for _, c := range []struct{ name, text, why string }{
		{"empty", "", "is damaged"}, {"cut", `{"version": 1, "prog`, "is damaged"}, {"a field more", `{"version": 1, "speed": "high"}`, "is damaged"}, {"newer", `{"version": 2, "speed": "high"}`, "another version"},
	} {
		w := newWorld(t)
		if err := errors.Join(os.MkdirAll(filepath.Dir(w.path()), 0o777), os.WriteFile(w.path(), []byte(c.text), 0o666)); err != nil {
			t.Fatal(err)
		}
		if i, why := w.resolve(nil); i.Tuned != "" || !strings.Contains(why, c.why) {
			t.Errorf("%s: %q is taken, %q; want %q", c.name, i.Tuned, why, c.why)
		}
	}
	w := newWorld(t)
	if err := os.MkdirAll(w.path(), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, why := w.resolve(nil); !strings.Contains(why, "is not a file that tune wrote") {
		t.Errorf("a folder: %q", why)
	}
	w = newWorld(t)
	k := w.keep(all)
	if got, err := Load(w.path()); err != nil || got.Settings != all || got.Found.Pairs != 6 || !got.Found.At.Equal(k.Found.At) {
		t.Errorf("%+v, %v", got, err)
	}
	for i, want := range []bool{true, false} {
		if was, err := Remove(w.path()); was != want || err != nil {
			t.Errorf("removing, time %d: %v, %v", i+1, was, err)
		}
	}
	if _, err := Load(w.path()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a removed file: %v", err)
	}
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := k.Save(filepath.Join(blocked, "tuned", "x.json")); err == nil {
		t.Error("a file below a file was written")
	}
}
