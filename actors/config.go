package actors

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/moeflux/moeflux-actor/actors/expertmem"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/io/readpool"
	"github.com/moeflux/moeflux-actor/stages"
)

// Config sizes an engine. Only Model and Device must be set; the zero value of every other field is
// ready for use. None of the fields from RingDepth to PromptShare changes a result by a bit.
//
// It has many fields because it is flat: each is one setting, which stands alone, is named in
// errors, and is one flag of the command. Structs within it would add names and no order.
type Config struct {
	// Model is the packed model directory, or a GGUF file (any part, if there are several), which
	// is used in place.
	Model string
	// ExpertsDir is a folder of expert files in place of the model's own, on another disk perhaps,
	// or of other bits where there are several: a packed_experts folder, or one that holds it. ""
	// means the model's own.
	ExpertsDir string
	// Partial opens a model whose expert files are not all there, to look into what is there
	// (Chunk.Probe): a layer without its file fails when it is computed. Experts are read buffered,
	// and nothing is read ahead of need at the beginning.
	Partial bool
	// Device computes. It stays the caller's, who closes it after the engine. One that is several
	// (package gpu/split) has its layers divided among them, by their memory; all experts must have
	// room there.
	Device gpu.Device

	// RingDepth bounds layers begun and not retired, and waves submitted and not retired. 0 means
	// 2. 1 makes every layer wait for the device; above 2 only prefill and several sequences gain.
	// Of several devices each has as many.
	RingDepth int
	// Prefetch is the predictor of speculative reads. "" means both. With mapped or loaded experts
	// nothing is read ahead.
	Prefetch Prefetch
	// PrefetchLayers is how many layers ahead experts are predicted, 1 or 2. 0 means 2. 1 leaves
	// the disk a layer's time; 2 leaves it two, but the guesses are right less often, and looking
	// ahead costs one more small matrix multiplication a layer.
	PrefetchLayers int
	// ExpertIO says how experts are read. "" means auto: models that fit in memory are mapped if
	// their experts take up to 1 GiB, so that they start at once; larger ones get slots, which are
	// read in the background and which no system takes back as it does with mapped pages. A mapping
	// is shared by all engines on one model, slots are each engine's own. loaded reads all experts
	// at Open, which then takes longer, and every token is as fast as the device; a device with
	// memory of its own does so wherever they fit. Where they do not, loaded reads them into the
	// host's memory; the device has copies of those that are used most, and reads the others over
	// the bus.
	ExpertIO ExpertIO
	// Resident says whether the device chooses the experts by itself, so that it never waits for
	// the host within a token. "" means auto: where all experts are mapped, or loaded at Open. on
	// loads those that auto would read into slots.
	Resident Resident
	// ExpertMemory is the most bytes for expert slots. 0 means what is free at Open, limits of
	// cgroups counted, less the other weights, the state of a sequence, what may be parked
	// (ParkedMemory) and a reserve of a sixteenth, at least 256 MiB. Too small costs re-reads;
	// below one wave Open fails. Slots are given up while memory is short, and come back.
	ExpertMemory int64
	// HostMemory is the most bytes of host memory for a cache of experts between the disk and a
	// device with memory of its own. It is taken as experts are read, and given back while memory
	// is short. 0 means what is free at Open less what may be parked (ParkedMemory) and a reserve.
	HostMemory int64
	// Profile is a file that keeps how often each expert of the model was used, from run to run: an
	// engine with expert slots keeps the experts that were used most, and reads them first while
	// the disk has nothing else to do. A file that is missing, damaged or of another model costs a
	// slower start and at most a line in the log. "" means none.
	Profile string
	// ReadWorkers is the number of parallel expert reads. 0 means up to 4 past the page cache,
	// where two or three keep a disk busy and more only wait longer, and up to 8 through it: the
	// engine compares fewer with more while it reads, and keeps to fewer where they are clearly
	// faster.
	ReadWorkers int
	// ReadTimeout is how long the read of one expert may take before the steps that wait for it
	// fail. 0 means 30s. The disk may still answer: the engine goes on then.
	ReadTimeout time.Duration
	// VerifyReads compares experts that are read with the checksums taken when they were packed. ""
	// means auto. Wrong bytes are read once more; if they are still wrong the read fails. Mapped
	// experts are not checked.
	VerifyReads VerifyReads
	// ChunkRows is the most rows of one step. 0 means 512, and up to 2,048 on a GPU with much
	// memory of its own. Larger chunks read each expert less often and cost scratch memory.
	ChunkRows int
	// WaveSlots is the most experts computed by one submission. 0 means 64, or all experts of a
	// layer if fewer.
	WaveSlots int
	// StepsInFlight is how many steps of one kind, decoding or reading prompts, may be in the
	// pipeline at once, of different sequences. 0 means 1 for each device if all experts fit in
	// memory, so that each has a step to compute, and 2 otherwise, where one step computes while
	// another waits for the disk. Sequences that decode share one step all the same, as long as
	// that is quicker.
	StepsInFlight int
	// PromptShare is the share of time that prompts get while other sequences decode, up to 1. 0
	// means 0.66 if all experts fit in memory and 0.6 otherwise. With a share of two thirds a token
	// may take three times as long as without prompts, with a half twice as long. More makes
	// prompts quicker and tokens slower; at 1 a token waits for a whole step of a prompt. A prompt
	// beside which nobody decodes has all the time. On the processor a token beside a prompt is
	// computed at once, and answered when the prompt has had its time.
	PromptShare float64

	// Context is the positions a sequence may have. 0 means the model's own.
	Context int
	// ContextBeyond allows a context beyond the positions that the model was trained for. Nothing
	// stretches its rotary frequencies: what it writes past its own positions may be nonsense.
	ContextBeyond bool
	// KV is how keys and values are kept. "" means f32. int8 rounds each to 1/254 of the largest of
	// its head (of 64 channels of a compressed vector): a context takes about a quarter of the
	// memory, and attention to a long one less time. With int8 activations the processor rounds
	// queries likewise. It changes results.
	KV KVFormat
	// StateMemory is the most bytes for the states of all sequences: key-value pages, and the
	// recurrent state that each sequence of some models has from its first token, as has each Save
	// and Load while it runs. What does not fit waits. 0 means a quarter of the memory that is free
	// at Open. Too small makes texts wait, and fail where waiting cannot help.
	StateMemory int64
	// MaxSequences is the most sequences that have memory for their state at once; further ones
	// wait. 0 means any number that fits in StateMemory. Too small leaves the device idle; too many
	// texts at once make each of them slow.
	MaxSequences int
	// MaxWaiting is the most requests that wait for memory, besides those of texts that have some
	// and need more. Further ones are refused because the queue is full, those of the lowest class
	// and of the key with most waiting first. 0 means 1024. With a negative number none waits: what
	// does not fit is refused at once for lack of memory.
	MaxWaiting int
	// Checkpoints is how many checkpoints a sequence keeps, unless Sequence.SetMaxCheckpoints says
	// otherwise. The newest and that at position 0 count, but are kept in any case. 0 means 4;
	// negative means none but these two.
	Checkpoints int
	// CheckpointMemory is the most bytes for checkpoints and for what is remembered of texts:
	// recurrent states, and pages that no sequence holds. A checkpoint may exceed it while it is
	// being made, because what it replaces is given up only afterwards. 0 means a sixteenth of what
	// is free at Open. Too small costs reading again.
	CheckpointMemory int64
	// ParkedMemory is the most bytes of host memory for states of sequences that are parked: moved
	// out of the memory for states (StateMemory) because others wait for it, and brought back with
	// the same bits when their texts go on. It is taken as states are parked; until then it stays
	// free, and experts get less. 0 means none: states are parked in files at once.
	ParkedMemory int64
	// StateDir is a folder for parked states that do not fit in ParkedMemory, which is made if need
	// be. These files are removed when they come back and when the engine is closed; those of a
	// process that was killed are removed by the next engine that uses the folder, which several
	// may do at once. "" means none: nothing is written to disk.
	StateDir string
	// StateDisk is the most bytes in StateDir for the states of texts that outlast the process, of
	// all engines that use the folder. A conversation is then not read again when memory has
	// forgotten it, nor after a restart. When they take more, those used least recently are
	// removed; 1 GiB of the disk is always left to others. The files are private, and hold the
	// tokens of the texts. 0 means none.
	StateDisk int64
	// ExpertsPerToken uses fewer experts than the model's own top-k. 0 means the model's. It
	// changes results.
	ExpertsPerToken int

	// Hosts names expert hosts, host:port, separated by commas: processes (the command host) that
	// compute experts which are not in memory here. What has a slash or no colon is a file of them,
	// one on each line; # begins a comment. They must have the same model and compute the same
	// bits; one that does not is not asked. Whatever happens to one, its experts are had from
	// another or from the disk, and no result changes by a bit. Opening waits up to a second for
	// hosts that have not answered. "" means none.
	Hosts string
	// HostsJoin names more expert hosts: host:port, separated by commas, or a file of them. Each
	// tells the engine which others are in its group, and the engine uses them all: also those that
	// join later, and no longer those that have left. "" means none.
	HostsJoin string
	// HostsSum has each host answer with one row of numbers for each row of a text: the sum of what
	// its experts compute, and not the output of each. That is less for the network to carry. It
	// changes results in the last digits, by which experts are where.
	HostsSum bool
	// HostPatience is how long a host may be silent before what it was asked goes another way. 0
	// means 250ms. Too short takes a host that is busy for one that is gone.
	HostPatience time.Duration
	// HostsToken is a file with a text, of at least 16 bytes, that hosts must be told. "" means
	// none.
	HostsToken string
	// HostsCert is a PEM file of the certificate by which hosts know this engine. With HostsKey and
	// HostsCA all that is sent is encrypted, and both sides know each other. Hosts on other
	// machines need it. "" means none.
	HostsCert string
	// HostsKey is a PEM file of the key of HostsCert.
	HostsKey string
	// HostsCA is a PEM file of the authorities that certificates of hosts must come from.
	HostsCA string
	// HostsInsecure allows hosts on other machines without encryption: who sees the network reads
	// what is sent, and may change it.
	HostsInsecure bool

	// CountAhead makes the engine count how well the routers of the next two layers predict their
	// picks (Stats), for every row. It costs two small matrix multiplications a layer; the
	// predictors next-gate and both count what they look at anyway.
	CountAhead bool
	// Verify compares every file of the model with its checksum manifest at Open. It reads the
	// whole model.
	Verify bool

	// Tuned names the settings in this Config, as flags of the command, that were chosen by
	// measuring on this machine and not by the caller. It changes nothing: Info has it.
	Tuned string

	// RecordMemory is the bytes for records of what the engine does (Engine.Records). The oldest
	// records give way. 0 means 16 MiB, some eighty tokens; negative means none. What needs
	// records of a longer time, as of a prompt, needs more.
	RecordMemory int64
	// LayerTimes has a device that routes by itself, and computes several layers in one go, tell
	// for each of them how long it took, by its own clock: records say so, and spans, whose steps
	// go layer by layer otherwise. Host, CUDA and the emulator have such a clock; others tell of
	// several layers at once. A GPU runs the layers less tightly then, by some microseconds each.
	LayerTimes bool
	// Record is a file that gets all records, as they are made, for the command trace. It is made
	// anew. A disk that is full, slow or hung costs records: what is lost is counted in the log,
	// and slows nothing down. "" means none.
	Record string
	// RecordLimit is the most bytes of that file, which ends there: what is left out is counted in
	// the log. 0 means 1 GiB, some seven thousand tokens of a streamed model with 48 layers.
	// Whoever reads a file needs as much memory.
	RecordLimit int64
	// FlightDir is a folder for the records around what was slow: as a token or a step is found to
	// be slow (FlightAfter, FlightTimes), what the engine still has of records is written to a file
	// of its own. There are at most 16 files and 256 MiB, of which the oldest give way, and at most
	// one in 10 s. "" means none.
	FlightDir string
	// FlightAfter is how long a token, a step, or the wait of a request for its first step may
	// take. 0 means any time.
	FlightAfter time.Duration
	// FlightTimes is how many times as long as usual a token or a step may take, by the median of
	// the last hundred of its kind. 0 means 5; with a negative number any time.
	FlightTimes float64
	// Tracer makes spans of requests whose caller's span is sampled. They are made of records
	// (RecordMemory), in a goroutine that nobody waits for. nil means no tracing.
	Tracer trace.TracerProvider
	// Logger gets what an operator should know. nil means silence.
	Logger *slog.Logger

	memory      expertmem.Meter // nil means the system's
	memoryEvery time.Duration   // how often the governor looks; 0 means once a second
	wrapCore    wrapCore        // nil means the stages as they are; tests break them with it
	// nil means the files as they are; tests break reads with it
	wrapReads    func(readpool.Source) readpool.Source
	windowPages  int // see dispatch.Config
	transitShare int // see expertmem.Wishes
}

// wrapCore puts something before a stage.
type wrapCore func(stages.StageID, stages.Core) stages.Core

// Validate reports every field that cannot be, in one error.
func (c Config) Validate() error {
	var errs []error
	bad := func(cond bool, format string, args ...any) {
		if cond {
			errs = append(errs, fmt.Errorf("actors: "+format, args...))
		}
	}
	bad(c.Model == "", "Config.Model is empty; name a packed model directory or a GGUF file")
	bad(c.Tracer != nil && c.RecordMemory < 0, "Config.Tracer makes spans of records, and Config.RecordMemory is %d: there are none", c.RecordMemory)
	bad(c.Device == nil, "Config.Device is nil; open a device first, for example with gpu/host")
	bad(c.RingDepth < 0 || c.RingDepth > 64, "Config.RingDepth is %d, but must be 1 to 64", c.RingDepth)
	switch c.Prefetch {
	case "", PrefetchOff, PrefetchLastToken, PrefetchNextGate, PrefetchBoth:
	default:
		bad(true, "Config.Prefetch is %q, but must be off, last-token, next-gate or both", c.Prefetch)
	}
	whole := c.ExpertIO == ExpertIOMmap || c.ExpertIO == ExpertIOLoaded || c.Resident == ResidentOn
	bad(c.Partial && (whole || c.ExpertIO == ExpertIODirect), "Config.Partial is set, but Config.ExpertIO is %q and Config.Resident %q; leave both to auto", c.ExpertIO, c.Resident)
	bad(c.PrefetchLayers < 0 || c.PrefetchLayers > 2, "Config.PrefetchLayers is %d, but must be 1 or 2", c.PrefetchLayers)
	switch c.ExpertIO {
	case "", ExpertIOAuto, ExpertIOMmap, ExpertIOLoaded, ExpertIODirect, ExpertIOBuffered:
	default:
		bad(true, "Config.ExpertIO is %q, but must be auto, mmap, loaded, direct or buffered",
			c.ExpertIO)
	}
	switch c.Resident {
	case "", ResidentAuto, ResidentOff:
	case ResidentOn:
		bad(c.ExpertIO.Streams(), "Config.Resident is on, but Config.ExpertIO is %s; "+
			"leave it to auto, or set mmap or loaded", c.ExpertIO)
		bad(c.CountAhead, "Config.Resident is on, and Config.CountAhead is set; a device that routes by itself does not ask routers ahead")
	default:
		bad(true, "Config.Resident is %q, but must be auto, on or off", c.Resident)
	}
	bad(c.ExpertMemory < 0, "Config.ExpertMemory is %d bytes, but must be 0 or more", c.ExpertMemory)
	bad(c.HostMemory < 0, "Config.HostMemory is %d bytes, but must be 0 or more", c.HostMemory)
	bad(c.ReadWorkers < 0 || c.ReadWorkers > 1024, "Config.ReadWorkers is %d, but must be 1 to 1024", c.ReadWorkers)
	bad(c.ReadTimeout < 0, "Config.ReadTimeout is %v, but must be 0 or more", c.ReadTimeout)
	switch c.VerifyReads {
	case "", VerifyAuto, VerifyOn, VerifyOff:
	default:
		bad(true, "Config.VerifyReads is %q, but must be auto, on or off", c.VerifyReads)
	}
	bad(c.ChunkRows < 0 || c.ChunkRows > 65536, "Config.ChunkRows is %d, but must be 1 to 65536", c.ChunkRows)
	bad(c.WaveSlots < 0, "Config.WaveSlots is %d, but must be 0 or more", c.WaveSlots)
	bad(c.StepsInFlight < 0 || c.StepsInFlight > 16, "Config.StepsInFlight is %d, but must be 1 to 16", c.StepsInFlight)
	bad(!(c.PromptShare >= 0 && c.PromptShare <= 1), "Config.PromptShare is %v, but must be 0 to 1", c.PromptShare)
	bad(c.Context < 0, "Config.Context is %d, but must be 0 or more", c.Context)
	switch c.KV {
	case "", KVF32, KVInt8:
	default:
		bad(true, "Config.KV is %q, but must be f32 or int8", c.KV)
	}
	bad(c.StateMemory < 0, "Config.StateMemory is %d bytes, but must be 0 or more", c.StateMemory)
	bad(c.MaxSequences < 0, "Config.MaxSequences is %d, but must be 0 or more", c.MaxSequences)
	bad(c.CheckpointMemory < 0, "Config.CheckpointMemory is %d bytes, but must be 0 or more", c.CheckpointMemory)
	bad(c.ParkedMemory < 0, "Config.ParkedMemory is %d bytes, but must be 0 or more", c.ParkedMemory)
	bad(c.StateDisk < 0, "Config.StateDisk is %d bytes, but must be 0 or more", c.StateDisk)
	bad(c.StateDisk > 0 && c.StateDir == "", "Config.StateDisk is %d bytes, but Config.StateDir names no folder for them", c.StateDisk)
	bad(c.RecordMemory < 0 && c.Record != "", "Config.RecordMemory is negative, so that there are no records for Config.Record")
	bad(c.RecordMemory < 0 && c.FlightDir != "", "Config.RecordMemory is negative, so that there are no records for Config.FlightDir")
	bad(c.RecordLimit < 0, "Config.RecordLimit is %d bytes, but must be 0 or more", c.RecordLimit)
	bad(c.FlightAfter < 0, "Config.FlightAfter is %v, but must be 0 or more", c.FlightAfter)
	bad(c.FlightTimes != c.FlightTimes || c.FlightTimes > 0 && c.FlightTimes < 1, "Config.FlightTimes is %v, but must be 1 or more, 0, or negative", c.FlightTimes)
	bad(c.ExpertsPerToken < 0, "Config.ExpertsPerToken is %d, but must be 0 or more", c.ExpertsPerToken)
	bad(c.HostPatience < 0, "Config.HostPatience is %v, but must be 0 or more", c.HostPatience)
	bad(c.HostsSum && c.Hosts == "" && c.HostsJoin == "", "Config.HostsSum is about expert hosts, but neither Config.Hosts nor Config.HostsJoin names any")
	_, err := c.hostAddrs()
	return errors.Join(append(errs, err)...)
}

// kv returns the device's name for how keys and values are kept.
func (c Config) kv() gpu.KVFormat {
	if c.KV == KVInt8 {
		return gpu.KVInt8
	}
	return gpu.KVF32
}
