package live

// The feed is a stream of server-sent events (GET /debug/live?model=NAME). The first one has the
// name "begin" and a Begin; all others have the name "frame" and a Frame, several a second. A
// listener that connects again gets a new Begin. The stream ends when the model leaves the memory.
//
// Times are whole microseconds on the engine's clock, which begins at Begin.Epoch. Where a field is
// an index, Begin has the names. A list that is empty may be absent.

// Begin is what does not change while the engine runs.
type Begin struct {
	Model     string `json:"model"`     // as clients name it
	Program   string `json:"program"`   // and its version
	Epoch     string `json:"epoch"`     // RFC 3339: what times are counted from
	Exactness string `json:"exactness"` // the settings that change results
	Device    string `json:"device"`
	EveryUS   int64  `json:"every_us"` // from one frame to the next, about

	Layers     int      `json:"layers"`
	LayerKinds []string `json:"layer_kinds"` // [layers] by mixer
	Routed     []bool   `json:"routed"`      // [layers] whether it has routed experts
	Experts    int      `json:"experts"`     // of a routed layer; 0: the model has none
	TopK       int      `json:"top_k"`       // experts that a row picks in a layer
	ExpertSize int64    `json:"expert_size"` // bytes of one expert's record
	// Resident says that all experts are in memory, and that the device routes by itself. Then
	// nothing is read, router and expert-io have little to do, and all cells are InSlot.
	Resident    bool `json:"resident"`
	RingDepth   int  `json:"ring_depth"`
	ReadWorkers int  `json:"read_workers"`

	Stages []string `json:"stages"` // the names of Pipeline.Stages
	Causes []Named  `json:"causes"` // what a moment can be spent on: those of tokens and of idle times
	Works  []string `json:"works"`  // what a bar can be
}

// Named is a name, and what it means as the end of a sentence about a token.
type Named struct {
	Name  string `json:"name"`
	Words string `json:"words"`
}

// Frame is what there is to see at a moment.
type Frame struct {
	AtUS int64 `json:"at_us"`
	// Missed is how many records were forgotten, since the frame before, before they could be read:
	// the frame does not tell of them.
	Missed   uint64    `json:"missed,omitempty"`
	Pipeline Pipeline  `json:"pipeline"`
	Experts  *Cells    `json:"experts,omitempty"`  // nil: no cell has changed
	Requests []Request `json:"requests,omitempty"` // under way, the oldest first; at most 64
	More     int       `json:"more,omitempty"`     // requests under way that are not in Requests
	// Tokens are those that were answered since the frame before, in order; at most 4, the last
	// ones.
	Tokens  []Token `json:"tokens,omitempty"`
	Skipped int     `json:"skipped,omitempty"` // answered tokens that are not in Tokens
}

// Pipeline is what stages, device and disk do. Shares are of the last WindowUS, from 0 to 1.
type Pipeline struct {
	WindowUS int64   `json:"window_us"`
	Stages   []Stage `json:"stages"` // in the order of Begin.Stages
	Device   Busy    `json:"device"`
	Disk     Busy    `json:"disk"`

	TokensPerS float64 `json:"tokens_per_s"` // answered, of all sequences
	RowsPerS   float64 `json:"rows_per_s"`   // evaluated: tokens of prompts and texts
	BytesPerS  float64 `json:"bytes_per_s"`  // read from the disk

	// Levels are those at the end of the last step.
	Ring         int32 `json:"ring"` // waves submitted and not retired
	ReadsQueued  int32 `json:"reads_queued"`
	ReadsRunning int32 `json:"reads_running"`
	ReadBytes    int64 `json:"read_bytes"` // asked for and not there
	Slots        int32 `json:"slots"`
	SlotsUsed    int32 `json:"slots_used"`
	Waiting      int32 `json:"waiting"` // requests without a step, as for memory

	Steps []Step `json:"steps,omitempty"` // under way, the oldest first; at most 16
}

// Stage is what a stage did. The stages of an engine take turns on one line, so the sum of their
// shares is at most 1.
type Stage struct {
	Busy      float64 `json:"busy"`
	PerS      float64 `json:"per_s"`      // messages handled
	MailboxUS float64 `json:"mailbox_us"` // that a message lay there, on average
}

// Busy says for which share of the time something worked, and why it did not.
type Busy struct {
	Busy float64 `json:"busy"`
	// Idle is the rest, the largest share first. Its causes are what the tokens that were answered
	// in that time were spending it on; Caller is that nobody had asked for anything.
	Idle []Share `json:"idle,omitempty"`
}

// Share is a part of a time.
type Share struct {
	Cause int     `json:"cause"` // index into Begin.Causes
	Share float64 `json:"share"`
}

// Step is a step under way.
type Step struct {
	Step    uint64 `json:"step"`
	AgeUS   int64  `json:"age_us"`
	Rows    int32  `json:"rows"`
	Decode  int32  `json:"decode"` // of these: next tokens of texts
	Urgent  bool   `json:"urgent,omitempty"`
	Layer   int32  `json:"layer"`             // that it has come to; Begin.Layers is the head
	Waiting string `json:"waiting,omitempty"` // for the experts of the layer: "experts"
}

// Cells is what has changed of the experts. The cell of an expert is layer*Begin.Experts+expert.
//
// With Full, Cells and Heat have a byte for each expert of the model, and Index is absent. Else
// they have a byte for each expert in Index, and the others are as they were.
type Cells struct {
	Full  bool    `json:"full,omitempty"`
	Index []int32 `json:"index,omitempty"`
	Cells []byte  `json:"cells"` // base64; see Cell
	// Heat is how often the expert was picked lately, compared with the others: 0 is never, 255
	// most often. It is base64, too, and only cells that are sent for another reason, or whose heat
	// has changed by more than 8, are told.
	Heat []byte `json:"heat"`

	InSlot  int `json:"in_slot"` // cells of the whole model, by state
	InHost  int `json:"in_host"`
	Reading int `json:"reading"`
	// What was found in the Pipeline's window: uses of experts, by where they were.
	Hits   int `json:"hits"`
	Late   int `json:"late"`
	Misses int `json:"misses"`
	Wasted int `json:"wasted"` // experts read on a guess that left unused
}

// Cell is where an expert is, in its two lowest bits, and flags.
type Cell byte

// The states, and the flags.
const (
	OnDisk  Cell = 0
	InHost  Cell = 1 // in the host's memory, for a device with memory of its own
	Reading Cell = 2 // on its way into a slot
	InSlot  Cell = 3
	// Where masks the state.
	Where Cell = 3
	// Guessed: it was read, or is being read, on a guess, and nobody has used it yet.
	Guessed Cell = 4
	// Wasted: the last time that it was read on a guess it left unused.
	Wasted Cell = 8
	// Picked: a step has used it since the frame before.
	Picked Cell = 16
)

// Request is a request of a client under way. One that asks for several answers is several.
type Request struct {
	ID     string `json:"id"` // as in the response header and in the log
	Choice int    `json:"choice,omitempty"`
	Path   string `json:"path"`
	Key    string `json:"key,omitempty"` // its name
	Class  string `json:"class"`         // background, normal or interactive
	// State is waiting (no step has had a row of it), reading (its prompt) or writing.
	State string `json:"state"`
	AgeUS int64  `json:"age_us"`
	// QueueUS is how long it waited for its first step, so far if it still waits.
	QueueUS  int64  `json:"queue_us"`
	Sequence uint64 `json:"sequence,omitempty"` // of the engine, as in Token; 0: none yet

	Prompt *Prompt `json:"prompt,omitempty"` // nil: not known yet
	Tokens int     `json:"tokens"`           // written
	Limit  int     `json:"limit,omitempty"`  // of tokens; 0: none
	PerS   float64 `json:"per_s,omitempty"`  // tokens written a second, since the first
	// Cost is what the engine has charged to it, up to the last answer: of a prompt that comes at
	// its end.
	Cost Cost `json:"cost"`
}

// Prompt is how far the reading of a prompt has come.
type Prompt struct {
	Tokens int     `json:"tokens"`
	Cached int     `json:"cached"`            // of these: known before
	Done   int     `json:"done"`              // of these: evaluated or known
	PerS   float64 `json:"per_s,omitempty"`   // tokens evaluated a second
	LeftUS int64   `json:"left_us,omitempty"` // until it is read, at that rate; 0: not known, or read
}

// Cost is a request's share of the machine.
type Cost struct {
	Hit        int64 `json:"hit"` // picks of experts that were in memory
	Late       int64 `json:"late"`
	Missed     int64 `json:"missed"`
	DiskBytes  int64 `json:"disk_bytes"`
	DeviceUS   int64 `json:"device_us"`
	DiskWaitUS int64 `json:"disk_wait_us"`
}

// Token is a token that was answered, or a prompt with the first one, and where its time went.
type Token struct {
	Request  uint64 `json:"request"` // the engine's number of it
	Sequence uint64 `json:"sequence"`
	ID       string `json:"id,omitempty"` // of the client's request, if that is known
	Position int32  `json:"position"`
	Rows     int32  `json:"rows"` // 1 for a token, more for a prompt
	FromUS   int64  `json:"from_us"`
	WallUS   int64  `json:"wall_us"`

	Causes []Share `json:"causes"` // of WallUS, the largest first
	// Path is the critical path: four numbers for each piece of the time, in order: from and to, in
	// microseconds after FromUS, the cause (Begin.Causes) and the layer (-1: none). Pieces shorter
	// than a thousandth of the whole are left out.
	Path []int64 `json:"path"`
	// Bars are what was done for it: four numbers for each bar, by layer, work and time: the
	// layer (Begin.Layers is the head), from and to, in microseconds after FromUS, and the work
	// (Begin.Works). Bars of one kind that nearly touch are one.
	Bars []int64 `json:"bars"`
}
