package moeflux

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/device"
	"github.com/moeflux/moeflux-actor/internal/userdirs"
)

// Options say how a model is opened. The zero value is ready for use: it is what the command does
// without a flag.
type Options struct {
	// Device names what computes. "" means auto: an NVIDIA GPU if one can be used, else the
	// processor. Others: host (the processor), cuda (an NVIDIA GPU; cuda:1 is the second one, and
	// cuda:0,1 are two that each compute some of the layers), metal (the GPU of a Mac, which auto
	// never takes), emu (GPU kernels on the processor, to check them). Config.Device takes one that
	// is open already, as package gpu/split makes one of several.
	Device string
	// Threads is how many threads of the processor compute. 0 means the cores that this process may
	// use.
	Threads int
	// PinThreads binds each thread of the processor to a core of its own, for a machine that
	// nothing else uses. Only Linux does it, and all models that are open must agree on it.
	PinThreads bool
	// Activations is how the device multiplies with quantised matrices: int8 rounds each input to
	// 1/254 of the largest of its group; f32 is the exact path, and slower. "" means int8 on the
	// processor and f32 on a GPU.
	Activations string
	// CacheDir keeps compiled GPU kernels, and what the command tune chose. "" means moeflux-actor
	// in the user's cache folder.
	CacheDir string
	// Tuned says whether settings are taken that the command tune kept for this model on this
	// machine, where Config and Threads leave them open: auto (also ""), or off. None of them
	// changes a result. Info.Tuned names those that were taken.
	Tuned string
	// System is the actor system in which the engine lives: that of the host service. nil means one
	// of its own. The system must outlive the model.
	System *actor.ActorSystem
	// Now gives the time to chat templates that print the date. nil means time.Now.
	Now func() time.Time
	// TokensOnly opens a model for its engine alone: without a tokenizer, which need not be there.
	// Generate and Chat fail then.
	TokensOnly bool
	// Config is every other setting of the engine. Its Model is set by Open. Those that programs
	// set first:
	//
	//	Context      int                  // positions that a text may have
	//	ExpertMemory int64                // bytes for experts; default from free memory
	//	StateMemory  int64                // bytes for the states of all texts
	//	MaxSequences int                  // texts at once; others wait
	//	MaxWaiting   int                  // requests that may wait; then *QueueFullError
	//	StateDir     string               // a folder for states of texts that wait
	//	StateDisk    int64                // and bytes there for texts that outlast the process
	//	Profile      string               // a file for a warm start: which experts were used most
	//	Tracer       trace.TracerProvider // OpenTelemetry's; spans are children of that in ctx
	//	Logger       *slog.Logger         // what an operator should know
	Config Config
}

// Config is the engine's settings; see package actors for all of them. The zero value of each is a
// default that suits the machine.
type Config = actors.Config

// device opens what computes, with some threads.
func (o *Options) device(threads int) (gpu.Device, error) {
	c := device.Environment()
	c.Name, c.Threads, c.Pin, c.Activations = o.Device, threads, o.PinThreads, o.Activations
	c.CacheDir, c.Logger = o.cacheDir, o.Config.Logger
	return device.Open(c)
}

// cacheDir returns where to keep what can be made anew.
func (o *Options) cacheDir() (string, error) {
	if o.CacheDir != "" {
		return o.CacheDir, nil
	}
	dir, _, err := userdirs.System().CacheDir()
	return dir, err
}

// engine opens the engine in its own actor system or the host's.
func (o *Options) engine(ctx context.Context) (*actors.Engine, error) {
	if o.System != nil {
		return actors.Spawn(ctx, o.System, o.Config)
	}
	return actors.Open(ctx, o.Config)
}
