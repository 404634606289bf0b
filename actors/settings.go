package actors

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/moeflux/moeflux-actor/internal/sysmem"
	"github.com/moeflux/moeflux-actor/io/readpool"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages/dispatch"
)

// pageRows is the number of positions in a key-value page.
const pageRows = 64

// directWorkers is how many reads past the page cache run at once. One or two are enough to keep
// the measured disks busy; more only wait (docs/experiments.md).
const directWorkers = 4

// mapBytes is the largest size of all experts at which they are mapped and not read into slots,
// provided that they fit in memory. A mapping costs nothing at the start and is shared with other
// engines through the page cache. That counts for a small model, which decodes thousands of tokens
// a second and is used briefly; if its pages must come from the disk, that takes a few seconds. For
// a larger model it would take long, since page faults reach a tenth of the speed of direct reads.
// Such a model gets memory of the engine's own, in large pages, which the device reads a tenth
// faster and which the system does not take back while the engine is idle (docs/experiments.md).
const mapBytes = 1 << 30

// checkpointShare is the default share of available memory that checkpoints may take: one part in
// checkpointShare.
const checkpointShare = 16

// Info is the settings that an engine uses, after defaults and limits.
type Info struct {
	Name     string     // the model directory's, without its path
	Arch     model.Arch // the model's
	Device   string
	ExpertIO ExpertIO // mmap, direct or buffered
	Resident bool     // the device routes by itself
	Prefetch Prefetch
	// PrefetchLayers is how many layers ahead experts are predicted; 0 if Prefetch is off.
	PrefetchLayers int
	Slots          int // expert slots
	SlotBytes      int // of one expert's record
	// the most experts in the host's memory, if slots are in a device's own memory; otherwise 0
	HostSlots     int
	ExpertBytes   int64 // all experts' records
	WeightBytes   int64 // all other weights; resident
	RingDepth     int
	ReadWorkers   int
	ReadTimeout   time.Duration
	VerifyReads   bool // expert reads are compared with checksums
	ChunkRows     int
	WaveSlots     int
	StepsInFlight int
	Context       int
	TopK          int
	StateBytes    int64 // fixed, per sequence
	KV            KVFormat
	KVBytesPerPos int64 // per position of a sequence
	// StateMemory is the most bytes for key-value pages and for the fixed states of sequences.
	StateMemory int64
	Checkpoints int // most of a sequence
	// CheckpointMemory is the most bytes for checkpoints and for what is remembered.
	CheckpointMemory int64
	Available        int64 // bytes of memory available at Open
	Reserve          int64 // bytes of these that the engine leaves free
	// bytes of the host's memory that the engine leaves free, if the above are a device's own
	HostReserve int64
	kvPages     int
}

// files is what settle needs to know about a model's files.
type files struct {
	weightBytes int64
	expertBytes int // of one record
	moeLayers   int
	direct      func() error // makes reads bypass the page cache, or says why they cannot
	// bytes of the host's memory, if the device has memory of its own; otherwise 0
	host int64
}

// all returns the number of experts in the model.
func (f *files) all(m *model.Config) int { return f.moeLayers * m.NumExperts }

// settle turns a Config into the settings that the engine uses.
func settle(cfg Config, m *model.Config, f files, mem sysmem.Info) (Info, error) {
	i := Info{
		Name: nameOf(cfg.Model), Arch: m.Arch, Device: cfg.Device.Name(), SlotBytes: f.expertBytes, ExpertBytes: int64(f.expertBytes) * int64(m.NumExperts) * int64(f.moeLayers),
		WeightBytes: f.weightBytes, RingDepth: cmp.Or(cfg.RingDepth, 2), ReadWorkers: cfg.ReadWorkers, ChunkRows: cmp.Or(cfg.ChunkRows, 512),
		TopK: cmp.Or(cfg.ExpertsPerToken, m.NumExpertsPerTok), StateBytes: int64(dispatch.RecurrentBytes(m)), ReadTimeout: cfg.ReadTimeout,
		Checkpoints: max(cmp.Or(cfg.Checkpoints, 4), 0), CheckpointMemory: cfg.CheckpointMemory, KVBytesPerPos: int64(dispatch.PageBytes(m, cfg.kv(), pageRows) / pageRows), KV: cfg.KV, Prefetch: cfg.Prefetch, Available: mem.Available, Reserve: reserveOf(mem.Available),
	}
	if i.TopK > m.NumExpertsPerTok {
		return Info{}, fmt.Errorf("actors: %d experts per token, but the model was trained with %d", i.TopK, m.NumExpertsPerTok)
	}
	if i.CheckpointMemory == 0 {
		i.CheckpointMemory = mem.Available / checkpointShare
	}
	if i.Prefetch == "" {
		i.Prefetch = PrefetchBoth
	}
	if i.KV == "" {
		i.KV = KVF32
	}
	if i.ReadTimeout == 0 {
		i.ReadTimeout = readpool.DefaultTimeout
	}
	if err := i.settleExperts(cfg, m, f); err != nil {
		return Info{}, err
	}
	if i.Prefetch != PrefetchOff {
		i.PrefetchLayers = cmp.Or(cfg.PrefetchLayers, 2)
	}
	return i, i.settleState(cfg, m, mem)
}

// settleExperts chooses how experts are read, the number of slots, and the size of waves.
func (i *Info) settleExperts(cfg Config, m *model.Config, f files) error {
	budget := cfg.ExpertMemory
	if budget == 0 {
		budget = i.Available - i.WeightBytes - i.stateShare(cfg, m) - i.Reserve
	}
	direct := sync.OnceValue(f.direct)
	i.ExpertIO = cfg.ExpertIO
	if i.ExpertIO == "" || i.ExpertIO == ExpertIOAuto {
		i.ExpertIO = ExpertIODirect
		need := int64(f.all(m)) * int64(i.stride())
		fits := need <= budget
		if cfg.Resident == ResidentOn {
			if !fits {
				return fmt.Errorf("actors: all experts take %d bytes, but only %d are available for them; set Config.Resident to auto or off", need, max(0, budget))
			}
			i.ExpertIO = ExpertIOMmap
		}
		// a device with memory of its own loads all at Open
		if fits && (i.ExpertBytes <= mapBytes || f.host > 0 || direct() != nil) {
			i.ExpertIO = ExpertIOMmap
		}
	}
	i.WaveSlots = min(cmp.Or(cfg.WaveSlots, 64), m.NumExperts)
	if i.ExpertIO == ExpertIOMmap {
		i.ReadWorkers = cmp.Or(i.ReadWorkers, readpool.DefaultWorkers)
		i.Slots, i.Prefetch = len(m.Layers)*m.NumExperts, PrefetchOff
		i.Resident = cfg.Resident != ResidentOff && !cfg.CountAhead
		i.StepsInFlight = cmp.Or(cfg.StepsInFlight, 1)
		return nil
	}
	stride := int64(i.stride())
	if least := int64(2*i.TopK) * stride; cfg.ExpertMemory == 0 && budget < least {
		if err := i.checkLeast(least); err != nil {
			return err
		}
		budget = least
	}
	i.Slots = int(min(budget/stride, int64(f.all(m))))
	i.StepsInFlight = cmp.Or(cfg.StepsInFlight, 2)
	if i.Slots == f.all(m) {
		i.StepsInFlight = cmp.Or(cfg.StepsInFlight, 1)
	}
	if i.Slots == 0 {
		return fmt.Errorf("actors: %d bytes for experts do not hold one of %d bytes; raise Config.ExpertMemory", budget, stride)
	}
	if cfg.WaveSlots == 0 { // half of the slots, so that one wave is read while another computes
		i.WaveSlots = min(i.WaveSlots, max(1, i.Slots/2))
	}
	if i.Slots < i.WaveSlots {
		return fmt.Errorf("actors: %d bytes for experts hold %d of them, and a wave has %d; raise Config.ExpertMemory", budget, i.Slots, i.WaveSlots)
	}
	i.settleReads(cfg, direct)
	return i.settleHost(cfg, m, f)
}

// settleHost chooses how many experts the host's memory may hold for a device with its own memory.
func (i *Info) settleHost(cfg Config, m *model.Config, f files) error {
	if f.host == 0 {
		return nil
	}
	i.HostReserve = reserveOf(f.host)
	budget := cmp.Or(cfg.HostMemory, f.host-i.HostReserve)
	i.HostSlots = int(min(budget/int64(i.stride()), int64(f.all(m))))
	if i.HostSlots < i.TopK {
		return fmt.Errorf("actors: %d bytes of the host's memory hold %d experts of %d bytes, a token has %d in a layer; raise Config.HostMemory, or free some", budget, i.HostSlots, i.stride(), i.TopK)
	}
	return nil
}

// settleReads chooses between direct and buffered reads. It warns if direct reads were asked for
// and are not possible.
func (i *Info) settleReads(cfg Config, direct func() error) {
	workers := readpool.DefaultWorkers
	if i.ExpertIO == ExpertIODirect {
		workers = directWorkers
		if err := direct(); err != nil {
			level := slog.LevelInfo
			if cfg.ExpertIO == ExpertIODirect {
				level = slog.LevelWarn
			}
			cfg.Logger.Log(context.Background(), level, "experts are read through the page cache", "why", err)
			i.ExpertIO, workers = ExpertIOBuffered, readpool.DefaultWorkers
		}
	}
	i.ReadWorkers = cmp.Or(i.ReadWorkers, workers)
}

// settleState chooses the context and the pool of key-value pages.
func (i *Info) settleState(cfg Config, m *model.Config, mem sysmem.Info) error {
	i.Context = cmp.Or(cfg.Context, m.MaxPositionEmbeddings)
	switch {
	case cfg.Context <= m.MaxPositionEmbeddings:
	case !cfg.ContextBeyond:
		return fmt.Errorf("actors: Config.Context is %d, but the model was trained for %d positions; lower it, or set Config.ContextBeyond, which risks nonsense beyond them",
			cfg.Context, m.MaxPositionEmbeddings)
	case cfg.Context > math.MaxInt32:
		return fmt.Errorf("actors: Config.Context is %d, but must be at most %d", cfg.Context, math.MaxInt32)
	default:
		cfg.Logger.Warn("the context is longer than what the model was trained for; what it writes beyond may be nonsense",
			"context", cfg.Context, "trained_for", m.MaxPositionEmbeddings)
	}
	i.StateMemory = cmp.Or(cfg.StateMemory, mem.Available/4)
	page := int64(dispatch.PageBytes(m, cfg.kv(), pageRows))
	if page == 0 {
		i.kvPages = math.MaxInt32
		if i.StateMemory < i.StateBytes {
			return &ContextMemoryError{Context: i.Context, Need: i.StateBytes, Available: i.StateMemory}
		}
		return nil
	}
	i.kvPages = int(min(i.StateMemory/page, math.MaxInt32))
	need := i.StateBytes + int64((i.Context+pageRows-1)/pageRows)*page
	if need <= i.StateMemory {
		return nil
	}
	// Room is left for a copy of the recurrent state, which saving needs.
	pages := (i.StateMemory - 2*i.StateBytes) / page
	if cfg.Context > 0 || pages <= 0 {
		return &ContextMemoryError{Context: i.Context, Need: need, Available: i.StateMemory, Int8: i.KV == KVF32}
	}
	i.Context = min(i.Context, int(pages)*pageRows)
	return nil
}

// lookAhead says how far router and dispatch look ahead.
type lookAhead struct {
	first    int // the first layer with a router
	rows     int // the most rows of a step that are predicted one by one
	gates    int // the layers whose routers are applied ahead
	gateRows int // the most rows of a step for which they are
}

// nextGate reports whether routers are applied ahead, to predict.
func (i *Info) nextGate() bool { return i.Prefetch == PrefetchNextGate || i.Prefetch == PrefetchBoth }

// lookAhead returns how far to look ahead. Rows are predicted one by one up to the number that uses
// seven eighths of a layer's experts if all are equally likely. More rows use nearly the whole
// layer, so predictions for single rows say little.
func (i *Info) lookAhead(cfg Config, m *model.Config) lookAhead {
	a := lookAhead{rows: 1}
	if moe := m.MoELayers(); len(moe) > 0 {
		a.first = moe[0]
	}
	if i.TopK < m.NumExperts {
		a.rows = int(math.Ceil(math.Log(1.0/8) / math.Log(1-float64(i.TopK)/float64(m.NumExperts))))
	}
	if i.nextGate() {
		a.gates, a.gateRows = i.PrefetchLayers, a.rows
	}
	if cfg.CountAhead {
		a.gates, a.gateRows = 2, i.ChunkRows
	}
	return a
}
