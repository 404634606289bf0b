// Package actors is the pipeline as callers use it: Open, the Engine and its Sequences, Config and
// Info. It opens a model's files, chooses settings, wires the stages together, and closes
// everything in order. What runs below it is in packages of its own: actors/runtime runs the stages
// as actors, actors/expertmem has the memory of experts, their reads and the governor,
// actors/parking keeps states that have no place in the device's memory, actors/recall keeps what
// is remembered of texts on disk, actors/remote asks expert hosts, and actors/metering counts where
// time goes.
//
// Open makes an engine with an actor system of its own. Spawn makes one in the system of a host
// service. Both give plain Go methods. A caller who would rather send messages sends them to
// Engine.PID, as requests or with a PID as Caller: the messages of package stages whose comment
// says "Caller to ...". Any other request is answered by a *MessageError.
//
// A shell (runtime/shell.go) is all that an actor is. It hands each message to its stage's core and
// does what the core has written into the outbox. It never blocks: reads run in io/readpool,
// kernels on the device's own threads, and both come back as messages. Credits that the cores keep
// bound what is in flight; mailboxes have no capacity. All stages of an engine take turns in one
// line (runtime/line.go), so only one runs at a time.
//
// # Where an expert's bytes go
//
// The device picks experts. stages/router sends a plan of them to stages/expertio, which finds a
// slot for each and puts the reads that are needed into its outbox. From there:
//
//	shell.perform      actors/runtime/shell.go  takes the reads out of the outbox
//	Memory.Read        actors/expertmem/reads.go  one slotRead for each, its target the slot's memory
//	readpool.Pool      io/readpool  a worker reads the record; the slot's bytes are the pool's
//	checkedReads       actors/expertmem/verify.go  compares checksums, if that is asked for
//	File.ReadExpert    io/expertfile  from the disk (or the page cache) to the slot: the only copy
//	                   before the product, where slots are host memory
//	slotRead.end, tell actors/expertmem/reads.go  sends ExpertsRead to expert-IO
//	Core.expertsRead   stages/expertio/core.go  the slot is resident
//	Core.sendWave      stages/expertio/send.go  WaveResident, with the slots, to dispatch
//	Core.waveResident  stages/dispatch/waves.go  makes a table of the wave's experts (network.expert
//	                   in bind.go; Memory.View says where a slot lies) and encodes a gpu.Experts
//	queue.run          gpu/host/queue.go  runs what was submitted: executor.run in exec.go, runs.go
//	runExperts         gpu/host/experts.go  multiplies: multiply in matmul.go, for codes mulPanels in
//	                   panels.go and panels_*.s, with AMX tiles.go, else mulBlocks or mulPlain
//	Core.ticketDone    stages/combine  sends the slots home: SlotsReleased to expert-IO
//
// On a device with memory of its own a read goes through the host's memory and is uploaded before
// tell: stages/tier decides (hostTier in tier.go), and slotRead.upload in reads.go uploads, on the
// queue of staged.go. On such a device a wave's products are kernels:
//
//	queue.Submit       gpu/launch/queue.go  encodes them: experts in experts.go
//	limbExperts        gpu/launch/limbs.go  affine codes on an NVIDIA GPU, from sm_80 on
//	stream.Launch      gpu/cuda/stream.go  launches a kernel, perhaps in a graph (graph.go)
//	limbs_experts.cu   gpu/cuda/override  multiplies, by product.cu or staged.cu, and limbs.cu
//	experts.metal      shaders  multiplies all else
//
// If all experts are loaded, loadSlots (actors/expertmem/load.go) fills the slots when the engine
// opens, in large pages or in a GPU's memory, and encodeRouted (stages/dispatch/whole.go) lets the
// device choose among them. Mapped experts are read by nobody: their slots are views of the files.
//
// # Where to look
//
//	engine.go    Engine; close.go how it ends
//	open.go      opens an engine's files, in order; plan.go stops before memory is taken
//	wiring.go    makes its memory, cores and actors, and connects them
//	config.go    what a caller may set, choices.go what of; settings.go and memory.go make Info of it
//	sequence.go  Sequence; evaluate.go, history.go, state.go and generate.go what it does
//	split.go     divides the layers among several devices; hosts.go finds the expert hosts
//	patience.go  calls that return though a file, a reader or a writer hangs
//	profile.go   counts of use that outlast a run
//
// # Adding a message
//
// The end of the documentation of package stages lists every place.
//
// # Failure
//
// A panic in a stage, or an error that a core returns, is a bug of this program: the supervisor
// stops all actors, every caller gets a *BrokenError, and nothing restarts with half a state. An
// engine that somebody else stops, or whose actor system is shut down, gives a *StoppedError.
package actors
