package actors

import "github.com/moeflux/moeflux-actor/actors/expertmem"

// Prefetch names a predictor of speculative reads.
type Prefetch string

// The predictors.
const (
	PrefetchOff Prefetch = "off"
	// the experts that the same layer used for the row before
	PrefetchLastToken Prefetch = "last-token"
	// the next layers' routers applied to this layer's router input
	PrefetchNextGate Prefetch = "next-gate"
	PrefetchBoth     Prefetch = "both" // the two together
)

// ExpertIO says how experts come into memory.
type ExpertIO = expertmem.IO

// The ways.
const (
	// direct, or buffered where that cannot be; mmap for what fits in memory and is small or cannot
	// be read directly; loaded for what fits in the memory of a device that has its own
	ExpertIOAuto = expertmem.Auto
	// the packed files are mapped; every pick is a hit
	ExpertIOMmap = expertmem.Mmap
	// all experts are read at Open, into large pages or the memory of the device; every pick is a
	// hit. What does not fit into a device's own memory it reads in the host's
	ExpertIOLoaded = expertmem.Loaded
	// slots are filled past the page cache; buffered where records or file system do not allow it
	ExpertIODirect = expertmem.Direct
	// slots are filled by positional reads through the page cache
	ExpertIOBuffered = expertmem.Buffered
)

// Resident says whether the device routes by itself.
type Resident string

// The choices.
const (
	ResidentAuto Resident = "auto" // where all experts are in memory at Open
	ResidentOn   Resident = "on"   // all experts must fit; what does not fit does not open
	ResidentOff  Resident = "off"  // the engine's router chooses the experts
)

// KVFormat says how keys and values are kept.
type KVFormat string

// The formats.
const (
	KVF32  KVFormat = "f32"
	KVInt8 KVFormat = "int8" // see gpu.KV
)

// VerifyReads says whether expert reads are compared with checksums.
type VerifyReads = expertmem.Verify

// The choices.
const (
	VerifyAuto = expertmem.VerifyAuto // the first read of an expert and some later ones, if the model has checksums
	VerifyOn   = expertmem.VerifyOn   // every read; a model without checksums does not open
	VerifyOff  = expertmem.VerifyOff
)
