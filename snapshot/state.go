package snapshot

// BufferBytes is the size of a buffer through which a state goes. It is one row where a row takes
// more.
const BufferBytes = 512 << 10

// Part is one of the two or three things that a layer keeps. All values are float32, little-endian,
// dense within a row, unless the shape says that rows are codes.
type Part uint8

// The parts, in the order they have within a layer's body: keys before values, latents before
// rotated keys and those before keys of the indexer, convolution before recurrence. Positions
// ascend.
const (
	// a row per position, [KVHeads, HeadDim]: as attended to, so after norm and rotation
	Keys    Part = iota
	Values       // a row per position, [KVHeads, HeadDim]
	Latents      // a row per position, [KVLoraRank]: after the norm
	// a row per position, [RopeDim]: after the rotation, channels in the order of the checkpoint
	RotatedKeys
	// ConvRows rows, [ConvDim]: the last inputs, before convolution and activation, oldest first;
	// zeros if there was none
	Convolution
	Recurrence // ValueHeads rows, [ValueDim, KeyDim]
	IndexKeys  // a row per position, [IndexDim]: of the layer's indexer, after norm and rotation
)

var partNames = [...]string{"keys", "values", "latents", "rotated keys", "convolution", "recurrence", "keys of the indexer"}

// String returns the part's name, in the plural where it has many rows.
func (p Part) String() string {
	if int(p) < len(partNames) {
		return partNames[p]
	}
	return "unknown part"
}

// Source is a state that is being written out. It does not change meanwhile: no step of its
// sequence runs.
type Source interface {
	// ReadRows fills dst with whole rows of a part of a layer, from row first on. It is
	// asked for each row once, in the order of the file: layers ascending, parts in the order that
	// Part names, rows ascending. len(dst) is at least one row and has nothing to do with pages.
	// Of a layer with a window it is asked for the rows of the last positions alone; row first is
	// still that of position first. dst is the caller's again when ReadRows returns.
	ReadRows(layer int, p Part, first int, dst []byte) error
}

// Target is a fresh state that is being filled and not yet in use. Until [File.Fill] has returned
// nil, what it holds is not a state and must be thrown away.
type Target interface {
	// WriteRows takes whole rows, in the order and number that ReadRows has them. src is the
	// caller's again when WriteRows returns.
	WriteRows(layer int, p Part, first int, src []byte) error
}
