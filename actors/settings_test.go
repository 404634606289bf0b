package actors

import (
	"bytes"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/actors/expertmem"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/sysmem"
	"github.com/moeflux/moeflux-actor/io/synth"
	"github.com/moeflux/moeflux-actor/io/weights"
	"github.com/moeflux/moeflux-actor/model"
)

// namedDevice is a device that settle asks for its name only.
type namedDevice struct{ gpu.Device }

func (namedDevice) Name() string { return "test" }

// unifiedDevice is one that shares the host's memory up to so many bytes.
type unifiedDevice struct {
	gpu.Device
	workingSet int64
}

func (d unifiedDevice) WorkingSet() int64 { return d.workingSet }

// A device that shares the host's memory is given what is available, and no more than it is meant
// to have.
func TestUnifiedMemory(t *testing.T) {
	mem := sysmem.Info{Total: 100, Available: 80}
	for _, c := range []struct {
		dev  gpu.Device
		want int64
	}{{namedDevice{}, 80}, {unifiedDevice{workingSet: 70}, 70}, {unifiedDevice{workingSet: 90}, 80}, {unifiedDevice{}, 80}} {
		if got := unifiedMemory(c.dev, mem); got.Available != c.want || got.Total != 100 {
			t.Errorf("%+v: %+v, want %d available", c.dev, got, c.want)
		}
	}
}

// published is a model of published shape: its configuration and the sizes of its files.
type published struct {
	cfg   *model.Config
	files files
}

func shape(t *testing.T, name string) published {
	t.Helper()
	if p, ok := shapes[name]; ok {
		return p
	}
	s, err := synth.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "model")
	if err := synth.Outline(dir, synth.Options{Shape: s}); err != nil {
		t.Fatal(err)
	}
	cfg, err := weights.ReadConfig(dir)
	if err != nil {
		t.Fatal(err)
	}
	p := published{cfg: cfg, files: files{moeLayers: len(cfg.MoELayers()), direct: func() error { return nil }}}
	switch name { // kernels' byte tables, as TestInspectShapes of the command holds them
	case "qwen3-30b-a3b":
		p.files.expertBytes, p.files.weightBytes = 2654208, 870e6
	case "qwen3.5-35b-a3b":
		p.files.expertBytes, p.files.weightBytes = 1769472, 1390e6
	case "qwen3.5-122b-a10b":
		p.files.expertBytes, p.files.weightBytes = 5308416, 3480e6
	}
	shapes[name] = p
	return p
}

// shapes are those that shape has made; nobody changes them.
var shapes = map[string]published{}

// What fits and is small is mapped. Everything else is read past the page cache, with slots for
// what is left: for all experts of what fits.
func TestSettleMemory(t *testing.T) {
	const gb = 1_000_000_000
	for _, c := range []struct {
		shape       string
		available   int64
		want        ExpertIO
		least, most int64 // bytes of slots
	}{
		{"qwen3-30b-a3b", 23 * gb, ExpertIODirect, 48 * 128 * 2654208, 48 * 128 * 2654208},
		{"qwen3.5-35b-a3b", 23 * gb, ExpertIODirect, 40 * 256 * 1769472, 40 * 256 * 1769472},
		{"qwen3-30b-a3b", 19 * gb, ExpertIODirect, 15 * gb, 16 * gb},
		{"qwen3-30b-a3b", 8.6 * gb, ExpertIODirect, 6.6 * gb, 6.7 * gb},
		{"qwen3-30b-a3b", 4.3 * gb, ExpertIODirect, 2.8 * gb, 2.95 * gb},
		{"qwen3.5-35b-a3b", 4.9 * gb, ExpertIODirect, 2.7 * gb, 2.9 * gb},
		{"qwen3.5-122b-a10b", 23 * gb, ExpertIODirect, 16 * gb, 17 * gb},
	} {
		p := shape(t, c.shape)
		i, err := settle(Config{Device: namedDevice{}}, p.cfg, p.files, sysmem.Info{Total: 24 * gb, Available: c.available})
		if err != nil || i.ExpertIO != c.want {
			t.Errorf("%s in %d bytes: %s, %v; want %s", c.shape, c.available, i.ExpertIO, err, c.want)
			continue
		}
		slots := int64(i.Slots) * int64(i.plan.Stride)
		if c.want == ExpertIODirect && (slots < c.least || slots > c.most || i.ReadWorkers != 4) {
			t.Errorf("%s in %d bytes: %d bytes of slots and %d workers, want %d to %d and %d", c.shape, c.available, slots, i.ReadWorkers, c.least, c.most, 4)
		}
		if sum := i.WeightBytes + slots + i.Reserve; c.want == ExpertIODirect && sum > c.available {
			t.Errorf("%s in %d bytes: weights, slots and reserve are %d", c.shape, c.available, sum)
		}
	}
}

// Models that fit are mapped up to a size, and above it where reads cannot go past the page cache,
// of which slots would be a second copy.
func TestSettleMaps(t *testing.T) {
	p := shape(t, "qwen3-30b-a3b")
	experts := int64(p.files.shape(p.cfg, 1).All())
	round := func() error { return errors.New("the disk is round") }
	for _, c := range []struct {
		name   string
		record int64
		direct func() error
		memory int64
		want   ExpertIO
		steps  int
	}{
		{"a GiB", expertmem.MapBytes / experts / expertmem.SlotAlign * expertmem.SlotAlign, p.files.direct, 8 << 30, ExpertIOMmap, 1},
		{"more", expertmem.MapBytes/experts/expertmem.SlotAlign*expertmem.SlotAlign + expertmem.SlotAlign, p.files.direct, 8 << 30, ExpertIODirect, 1},
		{"more, not directly", expertmem.MapBytes/experts/expertmem.SlotAlign*expertmem.SlotAlign + expertmem.SlotAlign, round, 8 << 30, ExpertIOMmap, 1},
		{"a GiB in too little", expertmem.MapBytes / experts / expertmem.SlotAlign * expertmem.SlotAlign, p.files.direct, 2 << 30, ExpertIODirect, 2},
		{"a GiB in too little, not directly", expertmem.MapBytes / experts / expertmem.SlotAlign * expertmem.SlotAlign, round, 2 << 30, ExpertIOBuffered, 2},
	} {
		f := p.files
		f.expertBytes, f.direct = int(c.record), c.direct
		i, err := settle(Config{Device: namedDevice{}, Logger: slog.New(slog.DiscardHandler)}, p.cfg, f, sysmem.Info{Total: c.memory, Available: c.memory})
		if err != nil || i.ExpertIO != c.want || i.StepsInFlight != c.steps {
			t.Errorf("%s: %s, %d steps in flight, %v; want %s and %d", c.name, i.ExpertIO, i.StepsInFlight, err, c.want, c.steps)
		}
	}
}

// What is to be loaded must fit; a file system without direct reads does no harm.
func TestSettleLoads(t *testing.T) {
	const gb = 1_000_000_000
	p := shape(t, "qwen3-30b-a3b")
	round := p.files
	round.direct = func() error { return errors.New("the disk is round") }
	for _, c := range []struct {
		name   string
		cfg    Config
		files  files
		memory int64
		want   string
	}{
		{"loaded", Config{ExpertIO: ExpertIOLoaded}, p.files, 24 * gb, ""},
		{"loaded, not directly", Config{ExpertIO: ExpertIOLoaded}, round, 24 * gb, ""},
		{"too large", Config{ExpertIO: ExpertIOLoaded}, p.files, 16 * gb, "ExpertIO to auto"},
		{"larger than it may be", Config{ExpertIO: ExpertIOLoaded, ExpertMemory: 8 * gb}, p.files, 24 * gb,
			"ExpertIO to auto"},
		{"resident, too large", Config{Resident: ResidentOn}, p.files, 16 * gb, "Resident to auto or off"},
	} {
		c.cfg.Device = namedDevice{}
		i, err := settle(c.cfg, p.cfg, c.files, sysmem.Info{Total: c.memory, Available: c.memory})
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want an error with %q", c.name, err, c.want)
			}
			continue
		}
		if err != nil || i.ExpertIO != ExpertIOLoaded || !i.Resident || i.Prefetch != PrefetchOff {
			t.Errorf("%s: %s, resident %v, prefetch %s, %v",
				c.name, i.ExpertIO, i.Resident, i.Prefetch, err)
		}
	}
}

// The default rows of a step depend on how much memory a GPU has and on how much a row takes.
func TestSettleChunkRows(t *testing.T) {
	const gb = 1_000_000_000
	for _, c := range []struct {
		shape       string
		host, total int64
		rows, want  int
	}{
		{"qwen3-30b-a3b", 0, 141 * gb, 0, 512}, // the device computes in the host's memory
		{"qwen3-30b-a3b", 100 * gb, 141 * gb, 0, 2048},
		{"qwen3-30b-a3b", 100 * gb, 48 * gb, 0, 2048},
		{"qwen3-30b-a3b", 100 * gb, 24 * gb, 0, 1024},
		{"qwen3-30b-a3b", 100 * gb, 8 * gb, 0, 512},
		{"qwen3.5-122b-a10b", 100 * gb, 80 * gb, 0, 2048},
		{"qwen3-30b-a3b", 100 * gb, 141 * gb, 96, 96},
	} {
		p := shape(t, c.shape)
		f := p.files
		f.host = c.host
		i, err := settle(Config{Device: namedDevice{}, ChunkRows: c.rows, ExpertMemory: 8 << 30}, p.cfg, f, sysmem.Info{Total: c.total, Available: 200 * gb})
		if err != nil || i.ChunkRows != c.want {
			t.Errorf("%s with %d bytes: %d rows a step, %v; want %d", c.shape, c.total, i.ChunkRows, err, c.want)
		}
	}
}

// Wishes go before what seems right.
func TestSettleWishes(t *testing.T) {
	const gb = 1_000_000_000
	p := shape(t, "qwen3-30b-a3b")
	mem := sysmem.Info{Total: 24 * gb, Available: 23 * gb}
	for _, c := range []struct {
		name    string
		cfg     Config
		want    ExpertIO
		slots   int
		workers int
	}{
		{"expert memory for some", Config{ExpertMemory: 2654208 * 100}, ExpertIODirect, 100, 4},
		{"expert memory for all", Config{ExpertMemory: 17 * gb}, ExpertIODirect, 48 * 128, 4},
		{"mapped", Config{ExpertIO: ExpertIOMmap}, ExpertIOMmap, 48 * 128, 8},
		{"loaded", Config{ExpertIO: ExpertIOLoaded}, ExpertIOLoaded, 48 * 128, 8},
		{"loaded by two", Config{ExpertIO: ExpertIOLoaded, ReadWorkers: 2}, ExpertIOLoaded, 48 * 128, 2},
		{"resident", Config{Resident: ResidentOn}, ExpertIOLoaded, 48 * 128, 8},
		{"both", Config{Resident: ResidentOn, ExpertIO: ExpertIOMmap}, ExpertIOMmap, 48 * 128, 8},
		{"buffered", Config{ExpertIO: ExpertIOBuffered, ExpertMemory: 2654208*100 + 5}, ExpertIOBuffered, 100, 8},
		{"direct with all in slots", Config{ExpertIO: ExpertIODirect}, ExpertIODirect, 48 * 128, 4},
		{"workers", Config{ExpertIO: ExpertIODirect, ReadWorkers: 3}, ExpertIODirect, 48 * 128, 3},
		{"a long context", Config{Context: 40960, StateMemory: 20 * gb}, ExpertIODirect, 4755, 4},
	} {
		c.cfg.Device = namedDevice{}
		i, err := settle(c.cfg, p.cfg, p.files, mem)
		if err != nil || i.ExpertIO != c.want || i.Slots != c.slots || i.ReadWorkers != c.workers {
			t.Errorf("%s: %s, %d slots, %d workers, %v; want %s, %d, %d", c.name, i.ExpertIO, i.Slots, i.ReadWorkers, err, c.want, c.slots, c.workers)
		}
	}
}

// What may be parked is left free where it will lie: beside the slots if they are in the host's
// memory, beside what the host's memory keeps of experts if the slots are a device's own, and first
// of all in what a device that shares the host's memory is not meant to have.
func TestSettleParked(t *testing.T) {
	const gb = 1_000_000_000
	p := shape(t, "qwen3-30b-a3b")
	settled := func(parked, host, beside int64, c Config) Info {
		t.Helper()
		f := p.files
		f.host, f.beside, f.direct = host, beside, func() error { return nil }
		c.Device, c.ParkedMemory, c.RecordMemory = namedDevice{}, parked, -1
		i, err := settle(c, p.cfg, f, sysmem.Info{Total: 24 * gb, Available: 12 * gb})
		if err != nil || i.ParkedMemory != parked {
			t.Fatalf("parked %d: %d in Info, %v", parked, i.ParkedMemory, err)
		}
		return i
	}
	const experts = 100 * 2654208
	for _, c := range []struct {
		name          string
		host, beside  int64
		cfg           Config
		slots, inHost int // fewer than with nothing to park
	}{
		{"one memory", 0, 0, Config{}, 100, 0},
		{"half of it not for the device", 0, experts / 2, Config{}, 50, 0},
		{"as much not for the device", 0, 2 * experts, Config{}, 0, 0},
		{"a device's own", 14 * gb, 0, Config{}, 0, 100},
		{"a wish for slots", 0, 0, Config{ExpertMemory: 2 * gb}, 0, 0},
		{"a wish for the host's", 14 * gb, 0, Config{HostMemory: 2 * gb}, 0, 0},
	} {
		without, with := settled(0, c.host, c.beside, c.cfg), settled(experts, c.host, c.beside, c.cfg)
		if slots, inHost := without.Slots-with.Slots, without.HostSlots-with.HostSlots; slots != c.slots || inHost != c.inHost {
			t.Errorf("%s: %d slots and %d of the host less, want %d and %d", c.name, slots, inHost, c.slots, c.inHost)
		}
	}
	f := p.files
	f.host = 8 * gb
	_, err := settle(Config{Device: namedDevice{}, ParkedMemory: 8 * gb}, p.cfg, f, sysmem.Info{Total: 24 * gb, Available: 12 * gb})
	if err == nil || !strings.Contains(err.Error(), "hold 0 experts") || !strings.Contains(err.Error(), "lower Config.ParkedMemory") {
		t.Errorf("all of the host's memory for parked states: %v", err)
	}
}

// Keys and values of 8 bits take a quarter of the memory and the scales, so that a context is about
// four times as long in the same.
func TestSettleKV(t *testing.T) {
	p := shape(t, "qwen3-30b-a3b")
	mem := sysmem.Info{Total: 24 << 30, Available: 23 << 30}
	for _, c := range []struct {
		kv      KVFormat
		want    KVFormat
		bytes   int64 // 48 layers, keys and values of 4 heads of 128
		context int
	}{
		{"", KVF32, 48 * 2 * 512 * 4, 10880},
		{KVF32, KVF32, 48 * 2 * 512 * 4, 10880},
		{KVInt8, KVInt8, 48 * 2 * (512 + 4*4), 40960},
	} {
		i, err := settle(Config{Device: namedDevice{}, KV: c.kv, StateMemory: 2 << 30}, p.cfg, p.files, mem)
		if err != nil || i.KV != c.want || i.KVBytesPerPos != c.bytes || i.Context != c.context {
			t.Errorf("kv %q: %s, %d bytes a position, context %d, %v; want %s, %d, %d", c.kv, i.KV, i.KVBytesPerPos, i.Context, err, c.want, c.bytes, c.context)
		}
	}
	if err := (Config{Model: "m", Device: namedDevice{}, KV: "int4"}).Validate(); err == nil || !strings.Contains(err.Error(), `"int4", but must be f32 or int8`) {
		t.Errorf("kv int4: %v", err)
	}
}

// Where direct reads cannot be, the page cache serves, and the log says why: loudly if they were
// asked for.
func TestSettleFallsBack(t *testing.T) {
	p := shape(t, "qwen3-30b-a3b")
	p.files.direct = func() error { return errors.New("the disk is round") }
	for _, c := range []struct {
		io    ExpertIO
		level string
	}{{ExpertIOAuto, "level=INFO"}, {ExpertIODirect, "level=WARN"}} {
		var log bytes.Buffer
		cfg := Config{Device: namedDevice{}, ExpertIO: c.io, ExpertMemory: 1 << 30, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		i, err := settle(cfg, p.cfg, p.files, sysmem.Info{Available: 8 << 30})
		if err != nil || i.ExpertIO != ExpertIOBuffered || i.ReadWorkers != 8 {
			t.Errorf("%s: %s, %d workers, %v; want buffered and 8", c.io, i.ExpertIO, i.ReadWorkers, err)
		}
		if got := log.String(); !strings.Contains(got, c.level) || !strings.Contains(got, "the disk is round") {
			t.Errorf("%s: the log says %q, want %s and why", c.io, got, c.level)
		}
	}
}

// A model for which there is not enough memory is refused with what it needs, unless somebody
// insists.
func TestSettleTooLittle(t *testing.T) {
	p := shape(t, "qwen3-30b-a3b")
	mem := sysmem.Info{Total: 1 << 30, Available: 900 << 20}
	_, err := settle(Config{Device: namedDevice{}}, p.cfg, p.files, mem)
	var few *MemoryError
	if !errors.As(err, &few) || few.Available != mem.Available || few.Weights != p.files.weightBytes || few.Slots != 16*2654208 ||
		few.Records != 16<<20 ||
		few.Need != few.Weights+few.State+few.Slots+few.Reserve+few.Records || few.Need <= few.Available {
		t.Fatalf("got %+v, want a *MemoryError", err)
	}
	for _, part := range []string{"963 MiB", "records 16", "900 are available", "Config.ExpertMemory"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
	mem.Available = few.Need
	i, err := settle(Config{Device: namedDevice{}}, p.cfg, p.files, mem)
	if err != nil || i.Slots != 16 {
		t.Errorf("in just what is needed: %d slots, %v; want 16", i.Slots, err)
	}
	parking := Config{Device: namedDevice{}, ParkedMemory: 300 << 20}
	if _, err = settle(parking, p.cfg, p.files, mem); !errors.As(err, &few) || few.Parked != 300<<20 || few.Need != mem.Available+few.Parked ||
		!strings.Contains(err.Error(), "parked states 300)") || !strings.Contains(err.Error(), "lower Config.ParkedMemory") {
		t.Errorf("in just that, and 300 MiB for parked states: %+v", err)
	}
	mem.Available = few.Need
	if i, err = settle(parking, p.cfg, p.files, mem); err != nil || i.Slots != 16 {
		t.Errorf("in 300 MiB more: %d slots, %v; want 16", i.Slots, err)
	}
	mem.Available = 100 << 20
	i, err = settle(Config{Device: namedDevice{}, ExpertMemory: 20 * 2654208, Context: 64, StateMemory: 1 << 30}, p.cfg, p.files, mem)
	if err != nil || i.Slots != 20 {
		t.Errorf("with --expert-memory: %d slots, %v; want 20", i.Slots, err)
	}
}
