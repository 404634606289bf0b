package actors

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/moeflux/moeflux-actor/actors/expertmem"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/sysmem"
	"github.com/moeflux/moeflux-actor/io/readpool"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/dispatch"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// pageRows is the number of positions in a key-value page.
const pageRows = 64

// The default shares of time of prompts while other sequences decode, if all experts are in memory
// and if not. A token takes hardly three times as long then as without prompts
// (docs/experiments.md). Tokens that wait for the disk vary more, so they get a little more time.
const (
	promptShareInMemory = 0.66
	promptShareStreamed = 0.6
)

// checkpointShare is the default share of available memory that checkpoints may take: one part in
// checkpointShare.
const checkpointShare = 16

// Info is the settings that an engine uses, after defaults and limits. It is flat like Config,
// whose fields it answers, and because it is written to reports and logs as it is.
type Info struct {
	Name   string     // the model directory's, without its path
	Arch   model.Arch // the model's
	Device string
	// Threads is how many threads of the processor compute at Open; 0 on another device.
	Threads int
	// Activations is how the device holds the inputs of products with quantised matrices: "f32", or
	// "int8" where it rounds them.
	Activations string
	// Exactness names the settings that change results, and nothing else, in one line:
	// "experts=q4g64 weights=bf16 activations=f32 kv=f32 top-k=8 device=host/avx512". Of one model,
	// engines with the same line give the same bits.
	Exactness string
	ExpertIO  ExpertIO // mmap, loaded, direct or buffered
	Resident  bool     // the device routes by itself
	Prefetch  Prefetch
	// PrefetchLayers is how many layers ahead experts are predicted; 0 if Prefetch is off.
	PrefetchLayers int
	Slots          int // expert slots; those of NearSlots, where there are such
	SlotBytes      int // of one expert's record
	// NearSlots is how many experts have room in a device's own memory, if all were loaded into the
	// host's, where the device reads the others; otherwise 0.
	NearSlots int
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
	PromptShare   float64
	Context       int
	TopK          int
	StateBytes    int64 // fixed, per sequence
	KV            KVFormat
	KVBytesPerPos int64 // per position of a sequence
	// StateMemory is the most bytes for key-value pages and for the fixed states of sequences.
	StateMemory  int64
	MaxSequences int // that have memory for their state at once; 0: any number that fits
	MaxWaiting   int // requests that wait for memory
	Checkpoints  int // most of a sequence
	// CheckpointMemory is the most bytes for checkpoints and for what is remembered.
	CheckpointMemory int64
	// ParkedMemory is the most bytes of the host's memory for parked states. Experts leave it free.
	ParkedMemory int64
	// RecordMemory is the bytes for records, and RecordSteps about how many of the last steps that
	// decode one row they tell of in full.
	RecordMemory int64
	RecordSteps  int
	// Tuned names the settings that the command tune chose for this model on this machine, as flags
	// of the command; "" if there are none.
	Tuned     string
	Available int64 // bytes of memory available at Open
	Reserve   int64 // bytes of these that the engine leaves free
	// bytes of the host's memory that the engine leaves free, if the above are a device's own
	HostReserve int64
	kvPages     int
	plan        expertmem.Plan // what the settings of experts come from
}

// files is what settle needs to know about a model's files.
type files struct {
	weightBytes int64
	expertBytes int // of one record
	moeLayers   int
	direct      func() error // makes reads bypass the page cache, or says why they cannot
	// bytes of the host's memory, if the device has memory of its own; otherwise 0
	host int64
	// bytes of the host's memory that are available but are not for the device, if it shares the
	// host's memory up to a limit (gpu.Unified)
	beside int64
}

// shape returns the experts of the model.
func (f *files) shape(m *model.Config, topK int) expertmem.Shape {
	return expertmem.Shape{RecordBytes: f.expertBytes, Experts: m.NumExperts, Layers: len(m.Layers), MoELayers: f.moeLayers, TopK: topK}
}

// settle turns a Config into the settings that the engine uses.
func settle(cfg Config, m *model.Config, f files, mem sysmem.Info) (Info, error) {
	i := Info{
		Name: nameOf(cfg.Model), Arch: m.Arch, Device: cfg.Device.Name(), Tuned: cfg.Tuned,
		WeightBytes: f.weightBytes, RingDepth: cmp.Or(cfg.RingDepth, 2), ChunkRows: cmp.Or(cfg.ChunkRows, chunkRows(m, f, mem)),
		TopK: cmp.Or(cfg.ExpertsPerToken, m.NumExpertsPerTok), StateBytes: int64(dispatch.RecurrentBytes(m, cfg.kv(), pageRows)), ReadTimeout: cfg.ReadTimeout,
		MaxSequences: cfg.MaxSequences, MaxWaiting: max(cmp.Or(cfg.MaxWaiting, 1024), 0),
		Checkpoints: max(cmp.Or(cfg.Checkpoints, 4), 0), CheckpointMemory: cfg.CheckpointMemory, ParkedMemory: cfg.ParkedMemory, RecordMemory: max(cmp.Or(cfg.RecordMemory, record.DefaultBytes), 0), KVBytesPerPos: int64(dispatch.PageBytes(m, cfg.kv(), pageRows) / pageRows), KV: cfg.KV, Prefetch: cfg.Prefetch, Available: mem.Available, Reserve: expertmem.ReserveOf(mem.Available),
	}
	first := gpu.PartsOf(cfg.Device)[0]
	i.Activations = gpu.ActivationsF32
	if r, ok := first.(gpu.Rounding); ok {
		i.Activations = r.Activations()
	}
	if p, ok := first.(gpu.Processor); ok {
		i.Threads = p.Threads()
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

// chunkRows returns the default of ChunkRows. A large GPU reads prompts faster in larger steps, as
// each expert then has more rows. Memory stands for speed: on a small GPU, other requests would
// wait too long for a large step to end.
func chunkRows(m *model.Config, f files, mem sysmem.Info) int {
	const least, most, share = 512, 2048, 96
	rows := least
	for f.host > 0 && rows < most && dispatch.LaneBytes(m, m.NumExpertsPerTok, 2*rows, true) <= mem.Total/share {
		rows *= 2
	}
	return rows
}

// settleExperts chooses how experts are read, the number of slots, and the size of waves.
func (i *Info) settleExperts(cfg Config, m *model.Config, f files) error {
	w := wishes(cfg)
	beside := f.beside
	parked, records := hostShare(i.ParkedMemory, f, &beside), hostShare(i.RecordMemory, f, &beside)
	routes := cfg.Resident != ResidentOff && !cfg.CountAhead
	r := expertmem.Room{
		Far:  routes && len(gpu.PartsOf(cfg.Device)) == 1,
		Left: i.Available - i.WeightBytes - i.stateShare(cfg, m) - parked - records - i.Reserve, Host: f.host, HostTaken: i.ParkedMemory + i.RecordMemory,
		Least: func(slots int64) error { return i.checkLeast(slots, parked, records) }, Direct: f.direct,
	}
	p, err := expertmem.MakePlan(f.shape(m, i.TopK), w, r, cfg.Logger)
	if err != nil {
		return err
	}
	i.plan = p
	i.ExpertIO, i.WaveSlots, i.ReadWorkers = p.IO, p.WaveSlots, p.Workers
	i.Slots, i.NearSlots = cmp.Or(p.Near, p.Slots), p.Near
	i.HostSlots, i.HostReserve = p.HostSlots, p.HostReserve
	i.SlotBytes, i.ExpertBytes = p.SlotBytes, p.Bytes
	i.Resident = !p.IO.Streams() && routes
	i.RecordSteps = recordSteps(i.RecordMemory, m, i.TopK, i.Resident)
	i.StepsInFlight, i.PromptShare = cmp.Or(cfg.StepsInFlight, 2), cmp.Or(cfg.PromptShare, promptShareStreamed)
	if p.All {
		i.StepsInFlight, i.PromptShare = cmp.Or(cfg.StepsInFlight, len(gpu.PartsOf(cfg.Device))), cmp.Or(cfg.PromptShare, promptShareInMemory)
	}
	if !p.IO.Streams() {
		i.Prefetch = PrefetchOff
	}
	return nil
}

// transit returns the first slot of experts in transit; 0: there are none.
func (i *Info) transit(m *model.Config) stages.SlotID {
	if i.plan.Transit == 0 {
		return 0
	}
	return stages.SlotID(len(m.Layers)*m.NumExperts + i.NearSlots)
}

// wishes returns what a caller asks of the experts' memory.
func wishes(cfg Config) expertmem.Wishes {
	return expertmem.Wishes{
		IO: cfg.ExpertIO, MustFit: cfg.Resident == ResidentOn, Bytes: cfg.ExpertMemory, HostBytes: cfg.HostMemory, Workers: cfg.ReadWorkers, WaveSlots: cfg.WaveSlots,
		TransitShare: cfg.transitShare,
	}
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

// lastToken reports whether the picks of the row before predict.
func (i *Info) lastToken() bool {
	return i.Prefetch == PrefetchLastToken || i.Prefetch == PrefetchBoth
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
