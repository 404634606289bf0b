package launch

// Sized is a Backend that knows how large its device is. What launches of another one are made for
// is the GPU that they were measured on.
type Sized interface {
	Backend
	// Processors is how many multiprocessors the GPU has: each runs threadgroups of its own.
	Processors() int
}

// measuredProcessors are those of the GPU that limits were measured on, an H200.
const measuredProcessors = 132

// limits say from how many threadgroups on a GPU is busy. They decide how work is cut and change no
// bit of a result. docs/experiments.md has the figures behind them.
type limits struct {
	// enoughSpans: each span of a row is a threadgroup of attention if that makes at least so many
	// full ones; otherwise each chunk is one.
	enoughSpans int
	// fewGroups: with fewer threadgroups than this processors stay idle, so fewer heads share the
	// reading of keys and values.
	fewGroups int
	// attending: so many threads of attention run at once. With twice as many chunks as fill them
	// a threadgroup takes several, one after the other.
	attending int
	// wideTiles: with more tiles of matrices than this a warp has two, which share the limbs.
	wideTiles int
	// stagedTiles: with more tiles of matrices times 32 rows than this there are enough
	// threadgroups whose warps do not share the inputs of a tile.
	stagedTiles int
	// expertWarps: if one tile for each warp would take more warps than this, a warp of an expert's
	// product has two.
	expertWarps int
}

// limitsOf returns the limits of a GPU with n processors: they grow with it.
func limitsOf(n int) limits {
	of := func(measured int) int { return max(1, (measured*n+measuredProcessors/2)/measuredProcessors) }
	return limits{enoughSpans: of(224), fewGroups: of(112), attending: of(67584), wideTiles: of(400),
		stagedTiles: of(1056), expertWarps: of(2112)}
}

// limitsFor returns the limits of a back end's device.
func limitsFor(b Backend) limits {
	if s, ok := b.(Sized); ok {
		return limitsOf(s.Processors())
	}
	return limitsOf(measuredProcessors)
}
