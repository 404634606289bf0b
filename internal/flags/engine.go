package flags

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/device"
	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/tracing/export"
)

// Engine are the flags of a command that opens one model.
type Engine struct {
	Model string `config:"Model" placeholder:"DIR|FILE.gguf" help:"The packed model directory, or a GGUF file (any part, if there are several), which is used in place. Default: the demo model."`
	Settings
}

// Settings say how a model runs, whichever it is. They are the one place that says what each flag
// is: its name and help; the field that it sets of actors.Config ("config", whose comment is the
// beginning of the help) or of moeflux.Options ("option"); the values that it may have ("oneof").
type Settings struct {
	ExpertsDir string `config:"ExpertsDir" name:"experts-dir" placeholder:"DIR" help:"A folder of expert files in place of the model's own, on another disk perhaps, or of other bits where there are several: a packed_experts folder, or one that holds it. Default: the model's own."`
	CacheDir   string `placeholder:"DIR" help:"Where the demo model is unpacked. Default: moeflux-actor in the user's cache folder."`

	Device      string `option:"Device" oneof:"auto,host,cuda,metal,emu" default:"auto" placeholder:"NAME" help:"What computes. Default: auto, an NVIDIA GPU if one can be used, else the processor; it never takes metal. Others: host (the processor), cuda (an NVIDIA GPU on Linux, with NVRTC of a CUDA toolkit; cuda:1 is the second one, and cuda:0,1 are two that each compute some of the layers, as their memory allows), metal (the GPU of a Mac with Apple silicon; its own tests have not passed on a Mac yet), emu (the GPU kernels on the processor, slowly, to check them; needs a C++ compiler). docs/run.md says what each needs, and which variables of the environment choose kernels and libraries."`
	Threads     int    `option:"Threads" placeholder:"N" help:"Compute threads of the host device. Default: the cores this process may use, as many as a CPU quota allows at the time."`
	PinThreads  bool   `option:"PinThreads" name:"pin-threads" help:"Bind each compute thread of the host device to a core of its own, for a machine that nothing else uses. Linux alone does it."`
	Activations string `option:"Activations" oneof:"int8,f32" placeholder:"KIND" help:"How the device multiplies with quantised matrices: int8 rounds each input to 1/254 of the largest of its group and uses integer dot products; f32 is the exact path, and slower. Routers are exact with both. Default: int8 on the processor, f32 on a GPU."`

	RingDepth        int    `config:"RingDepth" placeholder:"N" help:"Bounds layers begun and not retired, and waves submitted and not retired. 0 means 2. 1 makes every layer wait for the device; above 2 only prefill and several sequences gain. Of several devices each has as many."`
	Prefetch         string `oneof:"off,last-token,next-gate,both" config:"Prefetch" placeholder:"NAME" help:"The predictor of speculative reads. Default: both. With mapped or loaded experts nothing is read ahead. Others: off, last-token (the experts that the same layer used for the row before), next-gate (the next layers' routers applied to this layer's router input)."`
	PrefetchLayers   int    `config:"PrefetchLayers" placeholder:"N" help:"How many layers ahead experts are predicted, 1 or 2. 0 means 2. 1 leaves the disk a layer's time; 2 leaves it two, but the guesses are right less often, and looking ahead costs one more small matrix multiplication a layer."`
	ExpertIO         string `oneof:"auto,mmap,loaded,direct,buffered" config:"ExpertIO" name:"expert-io" placeholder:"NAME" help:"Says how experts are read. Default: auto: models that fit in memory are mapped if their experts take up to 1 GiB, so that they start at once; larger ones get slots, which are read in the background and which no system takes back as it does with mapped pages. A mapping is shared by all engines on one model, slots are each engine's own. loaded reads all experts at Open, which then takes longer, and every token is as fast as the device; a device with memory of its own does so wherever they fit. Where they do not, loaded reads them into the host's memory; the device has copies of those that are used most, and reads the others over the bus. Others: mmap, direct (past the page cache), buffered (through it, as what cannot be read directly is anyway)."`
	Resident         string `oneof:"auto,on,off" config:"Resident" name:"resident" placeholder:"NAME" help:"Says whether the device chooses the experts by itself, so that it never waits for the host within a token. Default: auto: where all experts are mapped, or loaded at Open. on loads those that auto would read into slots. Others: on, off."`
	ExpertMemory     Size   `config:"ExpertMemory" placeholder:"SIZE" help:"The most bytes for expert slots. 0 means what is free at Open, limits of cgroups counted, less the other weights, the state of a sequence, what may be parked (--parked-memory) and a reserve of a sixteenth, at least 256 MiB. Too small costs re-reads; below one wave Open fails. Slots are given up while memory is short, and come back. Like 8GiB, 512MB, or 50% of the machine's memory."`
	HostMemory       Size   `config:"HostMemory" placeholder:"SIZE" help:"The most bytes of host memory for a cache of experts between the disk and a device with memory of its own. It is taken as experts are read, and given back while memory is short. 0 means what is free at Open less what may be parked (--parked-memory) and a reserve. Like 8GiB, 512MB, or 50% of the machine's memory."`
	Profile          string `config:"Profile" placeholder:"FILE" help:"A file that keeps how often each expert of the model was used, from run to run: an engine with expert slots keeps the experts that were used most, and reads them first while the disk has nothing else to do. A file that is missing, damaged or of another model costs a slower start and at most a line in the log. Default: none; the command run has auto, a file for each model in the user's cache folder. Others: off, auto."`
	ReadWorkers      int    `config:"ReadWorkers" placeholder:"N" help:"The number of parallel expert reads. 0 means up to 4 past the page cache, where two or three keep a disk busy and more only wait longer, and up to 8 through it: the engine compares fewer with more while it reads, and keeps to fewer where they are clearly faster."`
	ChunkRows        int    `config:"ChunkRows" placeholder:"N" help:"The most rows of one step. 0 means 512, and up to 2,048 on a GPU with much memory of its own. Larger chunks read each expert less often and cost scratch memory."`
	Ctx              int    `config:"Context" placeholder:"N" help:"The positions a sequence may have. 0 means the model's own."`
	CtxBeyond        bool   `config:"ContextBeyond" name:"ctx-beyond" help:"Allows a context beyond the positions that the model was trained for. Nothing stretches its rotary frequencies: what it writes past its own positions may be nonsense."`
	KV               string `oneof:"f32,int8" config:"KV" name:"kv" placeholder:"KIND" help:"How keys and values are kept. Default: f32. int8 rounds each to 1/254 of the largest of its head (of 64 channels of a compressed vector): a context takes about a quarter of the memory, and attention to a long one less time. With int8 activations the processor rounds queries likewise. It changes results."`
	StateMemory      Size   `config:"StateMemory" placeholder:"SIZE" help:"The most bytes for the states of all sequences: key-value pages, and the recurrent state that each sequence of some models has from its first token, as has each Save and Load while it runs. What does not fit waits. 0 means a quarter of the memory that is free at Open. Too small makes texts wait, and fail where waiting cannot help. Like 512MiB, or 5% of the machine's memory."`
	MaxSequences     int    `config:"MaxSequences" placeholder:"N" help:"The most sequences that have memory for their state at once; further ones wait. 0 means any number that fits in --state-memory. Too small leaves the device idle; too many texts at once make each of them slow."`
	MaxWaiting       int    `config:"MaxWaiting" placeholder:"N" help:"The most requests that wait for memory, besides those of texts that have some and need more. Further ones are refused because the queue is full, those of the lowest class and of the key with most waiting first. 0 means 1024. With a negative number none waits: what does not fit is refused at once for lack of memory. bench has -1 for 0."`
	CheckpointMemory Size   `config:"CheckpointMemory" placeholder:"SIZE" help:"The most bytes for checkpoints and for what is remembered of texts: recurrent states, and pages that no sequence holds. A checkpoint may exceed it while it is being made, because what it replaces is given up only afterwards. 0 means a sixteenth of what is free at Open. Too small costs reading again. Like 512MiB, or 5% of the machine's memory."`
	ParkedMemory     Size   `config:"ParkedMemory" placeholder:"SIZE" help:"The most bytes of host memory for states of sequences that are parked: moved out of the memory for states (--state-memory) because others wait for it, and brought back with the same bits when their texts go on. It is taken as states are parked; until then it stays free, and experts get less. 0 means none: states are parked in files at once. Like 512MiB, or 5% of the machine's memory."`
	StateDir         string `config:"StateDir" placeholder:"DIR" help:"A folder for parked states that do not fit in --parked-memory, which is made if need be. These files are removed when they come back and when the engine is closed; those of a process that was killed are removed by the next engine that uses the folder, which several may do at once. Default: none: nothing is written to disk. Serve also keeps conversations there (--state-disk)."`
	StateDisk        Size   `config:"StateDisk" placeholder:"SIZE" help:"The most bytes in --state-dir for the states of texts that outlast the process, of all engines that use the folder. A conversation is then not read again when memory has forgotten it, nor after a restart. When they take more, those used least recently are removed; 1 GiB of the disk is always left to others. The files are private, and hold the tokens of the texts. 0 means none, but 16GiB for serve with --state-dir, where 1 keeps none. Like 8GiB."`
	ExpertsPerToken  int    `config:"ExpertsPerToken" placeholder:"K" help:"Uses fewer experts than the model's own top-k. 0 means the model's. It changes results."`

	PromptShare float64 `config:"PromptShare" placeholder:"R" help:"The share of time that prompts get while other sequences decode, up to 1. 0 means 0.66 if all experts fit in memory and 0.6 otherwise. With a share of two thirds a token may take three times as long as without prompts, with a half twice as long. More makes prompts quicker and tokens slower; at 1 a token waits for a whole step of a prompt. A prompt beside which nobody decodes has all the time. On the processor a token beside a prompt is computed at once, and answered when the prompt has had its time."`

	VerifyReads string        `oneof:"auto,on,off" config:"VerifyReads" placeholder:"NAME" help:"Compares experts that are read with the checksums taken when they were packed. Default: auto. Wrong bytes are read once more; if they are still wrong the read fails. Mapped experts are not checked. Auto compares each expert when it is read first, and every 16th time after that, if the model has such checksums. Others: on (every read; a model without them does not open), off."`
	ReadTimeout time.Duration `config:"ReadTimeout" placeholder:"TIME" help:"How long the read of one expert may take before the steps that wait for it fail. 0 means 30s. The disk may still answer: the engine goes on then."`

	Hosts         string        `config:"Hosts" placeholder:"LIST|FILE" help:"Names expert hosts, host:port, separated by commas: processes (the command host) that compute experts which are not in memory here. What has a slash or no colon is a file of them, one on each line; # begins a comment. They must have the same model and compute the same bits; one that does not is not asked. Whatever happens to one, its experts are had from another or from the disk, and no result changes by a bit. Opening waits up to a second for hosts that have not answered. Default: none."`
	HostsJoin     string        `config:"HostsJoin" name:"hosts-join" placeholder:"LIST|FILE" help:"Names more expert hosts: host:port, separated by commas, or a file of them. Each tells the engine which others are in its group, and the engine uses them all: also those that join later, and no longer those that have left. Default: none."`
	HostsSum      bool          `config:"HostsSum" name:"hosts-sum" help:"Has each host answer with one row of numbers for each row of a text: the sum of what its experts compute, and not the output of each. That is less for the network to carry. It changes results in the last digits, by which experts are where."`
	HostPatience  time.Duration `config:"HostPatience" name:"host-patience" placeholder:"TIME" help:"How long a host may be silent before what it was asked goes another way. 0 means 250ms. Too short takes a host that is busy for one that is gone."`
	HostsToken    string        `config:"HostsToken" name:"hosts-token" placeholder:"FILE" help:"A file with a text, of at least 16 bytes, that hosts must be told. Default: none."`
	HostsCert     string        `config:"HostsCert" name:"hosts-cert" placeholder:"FILE" help:"A PEM file of the certificate by which hosts know this engine. With --hosts-key and --hosts-ca all that is sent is encrypted, and both sides know each other. Hosts on other machines need it. Default: none."`
	HostsKey      string        `config:"HostsKey" name:"hosts-key" placeholder:"FILE" help:"A PEM file of the key of --hosts-cert."`
	HostsCA       string        `config:"HostsCA" name:"hosts-ca" placeholder:"FILE" help:"A PEM file of the authorities that certificates of hosts must come from."`
	HostsInsecure bool          `config:"HostsInsecure" name:"hosts-insecure" help:"Allows hosts on other machines without encryption: who sees the network reads what is sent, and may change it."`

	Tuned string `option:"Tuned" oneof:"auto,off" placeholder:"MODE" help:"Whether settings that are not given as flags are those that tune kept for this model on this machine. Default: auto, but off with bench and tune. Others: off. None of them changes a result."`

	Trace       string  `default:"off" placeholder:"MODE" help:"Where spans of requests, steps, layers, stages and reads go: off; stdout, stderr or file=FILE (one JSON object for each span, on a line of its own); otlp or otlp=URL (a collector: as OTEL_EXPORTER_OTLP_ENDPOINT and its like say, or the one at http://HOST:PORT or grpc://HOST:PORT)."`
	TraceSample float64 `default:"1" placeholder:"R" help:"The share of traces to record, above 0 and at most 1. A text of run, a window of eval, a prompt of logits and a run of bench are one trace each. Default: 1."`

	LayerTimes  bool          `config:"LayerTimes" name:"layer-times" help:"Has a device that routes by itself, and computes several layers in one go, tell for each of them how long it took, by its own clock: records say so, and spans, whose steps go layer by layer otherwise. Host, CUDA and the emulator have such a clock; others tell of several layers at once. A GPU runs the layers less tightly then, by some microseconds each."`
	Record      string        `config:"Record" placeholder:"FILE" help:"A file that gets all records, as they are made, for the command trace. It is made anew. A disk that is full, slow or hung costs records: what is lost is counted in the log, and slows nothing down. Default: none."`
	RecordLimit Size          `config:"RecordLimit" placeholder:"SIZE" help:"The most bytes of that file, which ends there: what is left out is counted in the log. 0 means 1 GiB, some seven thousand tokens of a streamed model with 48 layers. Whoever reads a file needs as much memory. Like 512MiB."`
	FlightDir   string        `config:"FlightDir" placeholder:"DIR" help:"A folder for the records around what was slow: as a token or a step is found to be slow (--flight-after, --flight-times), what the engine still has of records is written to a file of its own. There are at most 16 files and 256 MiB, of which the oldest give way, and at most one in 10 s. Default: none. SIGUSR1 has a file written at once."`
	FlightAfter time.Duration `config:"FlightAfter" placeholder:"TIME" help:"How long a token, a step, or the wait of a request for its first step may take. 0 means any time."`
	FlightTimes float64       `config:"FlightTimes" placeholder:"R" help:"How many times as long as usual a token or a step may take, by the median of the last hundred of its kind. 0 means 5; with a negative number any time."`

	LogLevel  string `oneof:"debug,info,warn,error" default:"warn" placeholder:"LEVEL" help:"The lowest level that is logged to stderr: debug, info, warn or error."`
	LogFormat string `oneof:"text,json" default:"text" placeholder:"KIND" help:"How log lines look: text or json."`
}

// TakeDir makes the argument of a command the model, where it was given.
func (f *Engine) TakeDir(dir string) error {
	if dir == "" {
		return nil
	}
	if f.Model != "" && f.Model != dir {
		return process.Usagef("DIR and --model name two directories; give one")
	}
	f.Model = dir
	return nil
}

// Check reports values that no model can change. It is not called Validate: the parser of the
// command line would call it while it parses.
func (f *Engine) Check() error {
	for _, s := range engineFlags {
		value := s.of(f).String()
		if len(s.oneof) == 0 || value == "" && s.byDefault == "" {
			continue
		}
		if s.option == "Device" {
			value = device.Kind(value)
		}
		if err := OneOf("--"+s.name, value, s.oneof); err != nil {
			return err
		}
	}
	if err := device.CheckName(f.Device); err != nil {
		return process.Usagef("--device: %v", err)
	}
	if err := export.Check(f.Trace); err != nil {
		return process.Usagef("--trace: %v", err)
	}
	switch {
	case !(f.TraceSample > 0 && f.TraceSample <= 1):
		return process.Usagef("--trace-sample %v: must be above 0 and at most 1", f.TraceSample)
	case f.ReadTimeout < 0:
		return process.Usagef("--read-timeout %v: must be more than 0", f.ReadTimeout)
	case f.StateDisk.Percent != 0:
		return process.Usagef("--state-disk is a size on disk, like 8GiB")
	case f.Threads < 0:
		return process.Usagef("--threads %d: must be 1 or more", f.Threads)
	}
	if info, err := os.Stat(f.CacheDir); err == nil && !info.IsDir() {
		return process.Usagef("--cache-dir %s is not a folder", f.CacheDir)
	}
	if info, err := os.Stat(f.Profile); err == nil && info.IsDir() && f.Profile != ProfileOff && f.Profile != ProfileAuto {
		return process.Usagef("--profile %s is a folder; name a file", f.Profile)
	}
	return nil
}

// config returns the engine's Config without what has to be opened or found first: Model, Device,
// Profile, Tracer and Logger.
func (f *Engine) config(inv *process.Invocation) (c actors.Config, err error) {
	to := reflect.ValueOf(&c).Elem()
	for _, s := range engineFlags {
		if s.config == "" {
			continue
		}
		value := s.of(f)
		if memory, ok := value.Interface().(Size); ok {
			bytes, err := memory.Resolve(inv.Env.Memory)
			if err != nil {
				return c, err
			}
			value = reflect.ValueOf(bytes)
		}
		field := to.FieldByName(s.config)
		field.Set(value.Convert(field.Type()))
	}
	c.Model, c.Profile = "", ""
	return c, nil
}

// Set sets the flag of a name, of which there must be one, as the command line would.
func (f *Engine) Set(name, value string) (err error) {
	at := slices.IndexFunc(engineFlags, func(s flag) bool { return s.name == name })
	switch to := engineFlags[at].of(f).Addr().Interface().(type) {
	case *int:
		if *to, err = strconv.Atoi(value); err != nil || *to < 1 {
			err = errors.New("must be a whole number, 1 or more")
		}
	case *Size:
		err = to.UnmarshalText([]byte(value))
	case *string:
		*to = value
		err = f.Check()
	}
	return err
}

// Given returns the flags that say how the engine runs and that have another value than their
// default, as arguments, but for those that but names.
func (f *Engine) Given(but map[string]string) (args []string) {
	for _, s := range engineFlags {
		value := s.of(f)
		_, leave := but[s.name]
		switch {
		case leave || s.config == "" && s.option == "" || value.IsZero() || fmt.Sprint(value) == s.byDefault:
		case value.Kind() == reflect.Bool:
			args = append(args, "--"+s.name)
		default:
			args = append(args, "--"+s.name, Quoted(fmt.Sprint(value)))
		}
	}
	return args
}

// Logger returns what logs to stderr as the flags say.
func (f *Settings) Logger(stderr io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.LogLevel)); err != nil {
		panic(fmt.Sprintf("log level %q passed the check: %v", f.LogLevel, err))
	}
	options := &slog.HandlerOptions{Level: level}
	if f.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(stderr, options))
	}
	return slog.New(slog.NewTextHandler(stderr, options))
}
