package expertmem

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/io/readpool"
)

// IO says how experts come into memory.
type IO string

// The ways.
const (
	Auto     IO = "auto"     // whichever of the others suits
	Mmap     IO = "mmap"     // mapped files
	Loaded   IO = "loaded"   // memory that is filled with all experts before anything else begins
	Direct   IO = "direct"   // slots, filled past the page cache
	Buffered IO = "buffered" // slots, filled through the page cache
)

// Streams reports whether experts are read into slots while an engine works. Otherwise all of them
// are in memory from the beginning.
func (io IO) Streams() bool { return io == Direct || io == Buffered }

// directWorkers is how many reads past the page cache run at once. One or two are enough to keep
// the measured disks busy; more only wait (docs/experiments.md).
const directWorkers = 4

// MapBytes is the largest size of all experts at which they are mapped and not read into slots,
// provided that they fit in memory. A mapping costs nothing at the start and is shared with other
// engines through the page cache. That counts for a small model, which decodes thousands of tokens
// a second and is used briefly; if its pages must come from the disk, that takes a few seconds. For
// a larger model it would take long, since page faults reach a tenth of the speed of direct reads.
// Such a model gets memory of the engine's own, in large pages, which the device reads a tenth
// faster and which the system does not take back while the engine is idle (docs/experiments.md).
const MapBytes = 1 << 30

// The reserve is memory that the engine leaves alone: for its heap and scratch, for other programs,
// and for what the governor cannot react to in time. It is a sixteenth of what is available, but at
// least LeastReserve, unless hardly more than that is there.
const (
	reserveShare = 16
	LeastReserve = 256 << 20
)

// ReserveOf returns the part of available memory that is left alone.
func ReserveOf(available int64) int64 {
	return min(max(available/reserveShare, LeastReserve), available/4)
}

// transitShare bounds what of a device's memory for experts is for those in transit: so much less
// is near when one text decodes.
const transitShare = 4

// Shape is the experts of a model.
type Shape struct {
	RecordBytes int // of one expert
	Experts     int // of a layer
	Layers      int // of the model
	MoELayers   int // that have experts
	TopK        int // experts of a token in a layer
}

// All returns the number of experts in the model.
func (s Shape) All() int { return s.MoELayers * s.Experts }

// Stride returns the bytes from slot to slot.
func (s Shape) Stride() int { return (s.RecordBytes + SlotAlign - 1) / SlotAlign * SlotAlign }

// Wishes is what a caller asks of the experts' memory. The zero value asks nothing.
type Wishes struct {
	IO        IO    // "" means Auto
	MustFit   bool  // all experts must be in memory from the beginning
	Bytes     int64 // the most for slots; 0: what is left
	HostBytes int64 // the most of the host's memory; 0: what is left
	Workers   int   // parallel reads; 0: as many as suit
	WaveSlots int   // experts of one submission; 0: 64 or fewer
	// TransitShare bounds what experts in transit take of a device's memory for experts: one part
	// in so many; 0: in transitShare. Only tests set it.
	TransitShare int
}

// Room is the memory that a plan has to do with.
type Room struct {
	Left int64 // bytes that are left for slots
	// bytes of the host's memory that are available, if the device has memory of its own; otherwise
	// 0
	Host      int64
	HostTaken int64 // bytes of the host's memory that are for something else
	// Far says that the device may read experts in the host's memory: it is one, and routes by
	// itself.
	Far bool
	// Least says whether bytes for slots can be had although less is left.
	Least  func(bytes int64) error
	Direct func() error // makes reads bypass the page cache, or says why they cannot
}

// Plan is how experts come into memory, and how many have room there.
type Plan struct {
	IO          IO // not Auto
	Slots       int
	Parts       []int // how many of them on each part of a gpu.Split; nil for other devices
	WaveSlots   int
	HostSlots   int   // the most experts in the host's memory, if slots are a device's own
	HostReserve int64 // bytes of the host's memory that stay free then
	Workers     int   // parallel reads
	Fewer       bool  // fewer at once, where the disk is faster then
	// Near is how many slots there are in the memory of a device of its own, if all experts are
	// loaded into the host's, from which the device reads the others. Otherwise 0. Slots does not
	// count them.
	Near int
	// Transit is how many further slots there are, to which others are copied before a step of many
	// rows needs them.
	Transit   int
	SlotBytes int   // of one record
	Stride    int   // bytes from slot to slot
	Bytes     int64 // of all records
	All       bool  // every expert has a slot
}

// MakePlan chooses how experts are read, the number of slots, and the size of waves.
func MakePlan(s Shape, w Wishes, r Room, log *slog.Logger) (Plan, error) {
	p := Plan{SlotBytes: s.RecordBytes, Stride: s.Stride(), Bytes: int64(s.RecordBytes) * int64(s.All())}
	budget := cmp.Or(w.Bytes, r.Left)
	direct := sync.OnceValue(r.Direct)
	if err := p.chooseIO(s, w, r, budget, direct); err != nil {
		return Plan{}, err
	}
	p.WaveSlots = min(cmp.Or(w.WaveSlots, 64), s.Experts)
	if !p.IO.Streams() {
		p.Workers, p.Slots, p.All = cmp.Or(w.Workers, readpool.DefaultWorkers), s.Layers*s.Experts, true
		if p.Near > 0 {
			p.HostSlots = s.All()
		}
		return p, nil
	}
	if err := p.chooseSlots(s, w, r, budget); err != nil {
		return Plan{}, err
	}
	p.chooseReads(w, direct, log)
	return p, p.chooseHost(s, w, r)
}

// chooseIO chooses whether experts are mapped, loaded or read into slots.
func (p *Plan) chooseIO(s Shape, w Wishes, r Room, budget int64, direct func() error) error {
	own := r.Host > 0 // a device with memory of its own, which cannot map files
	if p.IO = w.IO; p.IO == Mmap && own {
		p.IO = Loaded
	}
	if p.IO == Mmap || p.IO.Streams() {
		return nil
	}
	need := int64(s.All()) * int64(p.Stride)
	fits := need <= budget
	tooLarge := func(advice string) error {
		return fmt.Errorf("expertmem: all experts take %d bytes, but only %d are available for them; %s",
			need, max(0, budget), advice)
	}
	if !fits && r.Far && own && p.IO == Loaded {
		return p.chooseNear(s, w, r, budget)
	}
	switch {
	case !fits && p.IO == Loaded:
		return tooLarge("set Config.ExpertIO to auto")
	case !fits && w.MustFit:
		return tooLarge("set Config.Resident to auto or off")
	case !fits:
		p.IO = Direct
	case p.IO == Loaded || own:
		p.IO = Loaded
	case p.Bytes <= MapBytes:
		p.IO = Mmap
	case w.MustFit:
		p.IO = Loaded
	case direct() != nil:
		p.IO = Mmap
	default:
		p.IO = Direct
	}
	if p.IO == Loaded && !own {
		_ = direct() // else they go through the page cache
	}
	return nil
}

// chooseNear has a device with memory of its own read in the host's what does not fit into its own.
func (p *Plan) chooseNear(s Shape, w Wishes, r Room, budget int64) error {
	stride := int64(p.Stride)
	need, host := int64(s.All())*stride, hostBudget(w, r)
	if need > host {
		return fmt.Errorf("expertmem: all experts take %d bytes; %d are available for them in the "+
			"device's memory and %d in the host's; set Config.ExpertIO to auto",
			need, max(0, budget), host)
	}
	if p.Near = int(budget / stride); p.Near < s.TopK {
		return fmt.Errorf("expertmem: %d bytes of the device's memory hold %d experts of %d "+
			"bytes, a token has %d in a layer; raise Config.ExpertMemory, or free some",
			max(0, budget), max(0, p.Near), stride, s.TopK)
	}
	if t := gpu.FetchLanes * s.Experts; t <= p.Near/cmp.Or(w.TransitShare, transitShare) {
		p.Near, p.Transit = p.Near-t, t
	}
	p.HostReserve = ReserveOf(r.Host)
	return nil
}

// hostBudget returns the bytes of the host's memory that experts of a device with memory of its own
// may take.
func hostBudget(w Wishes, r Room) int64 {
	return cmp.Or(w.HostBytes, max(0, r.Host-ReserveOf(r.Host)-r.HostTaken))
}

// chooseSlots chooses the number of slots.
func (p *Plan) chooseSlots(s Shape, w Wishes, r Room, budget int64) error {
	stride := int64(p.Stride)
	if least := int64(2*s.TopK) * stride; w.Bytes == 0 && budget < least {
		if err := r.Least(least); err != nil {
			return err
		}
		budget = least
	}
	p.Slots = int(min(budget/stride, int64(s.All())))
	p.All = p.Slots == s.All()
	if p.Slots == 0 {
		return fmt.Errorf("expertmem: %d bytes for experts do not hold one of %d bytes; raise Config.ExpertMemory", budget, stride)
	}
	if w.WaveSlots == 0 { // half of the slots, so that one wave is read while another computes
		p.WaveSlots = min(p.WaveSlots, max(1, p.Slots/2))
	}
	if p.Slots < p.WaveSlots {
		return fmt.Errorf("expertmem: %d bytes for experts hold %d of them, and a wave has %d; raise Config.ExpertMemory", budget, p.Slots, p.WaveSlots)
	}
	return nil
}

// Divide divides the slots among the parts of a gpu.Split, of which each computes some layers with
// experts: as evenly as their experts, but no more than a part has room for, in slots; negative
// room is any. Waves are as small as that asks for, if the caller did not choose their size.
func (p *Plan) Divide(experts, room []int, w Wishes, topK int) *PartError {
	all := 0
	for _, n := range experts {
		all += n
	}
	total := 0
	p.Parts = make([]int, len(experts))
	for i, n := range experts {
		if n == 0 {
			continue
		}
		slots := min((p.Slots*n+all-1)/all, n)
		if room[i] >= 0 {
			if w.Bytes == 0 { // the memory of each part is for its own alone
				slots = n
			}
			slots = min(slots, room[i])
		}
		if slots < topK {
			return &PartError{Part: i, Slots: slots, Least: topK}
		}
		p.Parts[i], total = slots, total+slots
		if w.WaveSlots == 0 {
			p.WaveSlots = min(p.WaveSlots, max(1, slots/2))
		} else if slots < p.WaveSlots {
			return &PartError{Part: i, Slots: slots, Least: p.WaveSlots}
		}
	}
	p.Slots, p.All = total, total == all
	return nil
}

// PartError reports that a part of a gpu.Split has too few slots.
type PartError struct{ Part, Slots, Least int }

func (e *PartError) Error() string {
	return fmt.Sprintf("expertmem: there is room for %d experts of its layers, and at least %d are needed", e.Slots, e.Least)
}

// chooseHost chooses how many experts the host's memory may hold for a device with its own memory.
func (p *Plan) chooseHost(s Shape, w Wishes, r Room) error {
	if r.Host == 0 {
		return nil
	}
	p.HostReserve = ReserveOf(r.Host)
	budget := hostBudget(w, r)
	p.HostSlots = int(min(budget/int64(p.Stride), int64(s.All())))
	if p.HostSlots < s.TopK {
		advice := "raise Config.HostMemory, or free some"
		if w.HostBytes == 0 && r.HostTaken > 0 {
			advice = "lower Config.ParkedMemory, or free some"
		}
		return fmt.Errorf("expertmem: %d bytes of the host's memory hold %d experts of %d bytes, a token has %d in a layer; %s", budget, p.HostSlots, p.Stride, s.TopK, advice)
	}
	return nil
}

// chooseReads chooses between direct and buffered reads. It warns if direct reads were asked for
// and are not possible.
func (p *Plan) chooseReads(w Wishes, direct func() error, log *slog.Logger) {
	workers := readpool.DefaultWorkers
	if p.IO == Direct {
		workers = directWorkers
		if err := direct(); err != nil {
			level := slog.LevelInfo
			if w.IO == Direct {
				level = slog.LevelWarn
			}
			log.Log(context.Background(), level, "experts are read through the page cache", "why", err)
			p.IO, workers = Buffered, readpool.DefaultWorkers
		}
	}
	p.Workers, p.Fewer = cmp.Or(w.Workers, workers), w.Workers == 0
}
