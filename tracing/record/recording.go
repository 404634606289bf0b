package record

import "time"

// Recording is records at rest: what a log held at a moment, or what a file has. Each slice is in
// the order in which the records were written, which is that of the end of what they tell.
type Recording struct {
	Meta        Meta
	Handled     []Handled
	Steps       []Step
	StepsEnded  []StepEnded
	Segments    []Segment
	Requests    []Request
	Waits       []Wait
	Uses        []Use
	Reads       []Read
	Guesses     []Guess
	Evictions   []Eviction
	Submissions []Submission
	Levels      []Level
	Picks       []Picks
	Answers     []Answer

	// Forgotten is how many records of a type are missing, by the table's name: the log had no room
	// for them any more when it was read. Nil if nothing is missing.
	Forgotten map[string]uint64
	// Cut says that the file ends amid its records: the program was killed, or the disk was full.
	Cut bool
}

// Bytes returns how many bytes the records take, in memory and in a file.
func (r *Recording) Bytes() (n int64) {
	for _, t := range tables {
		_, records := t.of(r)
		n += int64(records) * int64(t.bytes())
	}
	return n
}

// forgotten notes that records of a table are missing.
func (r *Recording) forgotten(name string, n uint64) {
	if n == 0 {
		return
	}
	if r.Forgotten == nil {
		r.Forgotten = make(map[string]uint64)
	}
	r.Forgotten[name] += n
}

// Meta says what a recording is of.
type Meta struct {
	Program  string    `json:"program"` // and its version
	Reason   string    `json:"reason"`  // why it was written: "record", or what the flight recorder saw
	Epoch    time.Time `json:"epoch"`   // what times are counted from
	Written  time.Time `json:"written"`
	Stages   []string  `json:"stages"`
	Messages []string  `json:"messages"`
	Model    Model     `json:"model"`
	Machine  Machine   `json:"machine"`
	Engine   Engine    `json:"engine"`
	// Settings that were in effect, by the names of the command line's flags without hyphens.
	Settings map[string]string `json:"settings"`
	// Exactness names the settings that change results.
	Exactness string `json:"exactness,omitempty"`
}

// Model is the shape of the model, as far as records need it.
type Model struct {
	Name       string   `json:"name"`
	Layers     int      `json:"layers"`
	LayerKinds []string `json:"layer_kinds"` // [Layers] by mixer
	Routed     []bool   `json:"routed"`      // [Layers] whether it has routed experts
	Experts    int      `json:"experts"`     // of a routed layer
	TopK       int      `json:"top_k"`
	SlotBytes  int64    `json:"slot_bytes"` // of one expert's record
	Vocab      int      `json:"vocab"`
}

// Engine is how the engine was set up, as numbers for whoever replays what it did. Fields mean what
// they mean in the stages' own Configs.
type Engine struct {
	Slots           int      `json:"slots"`                // for experts
	Hosts           []string `json:"hosts,omitempty"`      // addresses of expert hosts, by the numbers of Answer
	SlotParts       []int    `json:"slot_parts,omitempty"` // of these on each of several devices
	Borders         []int    `json:"borders,omitempty"`    // the first layers of all devices but the first
	WaveSlots       int      `json:"wave_slots"`
	RingDepth       int      `json:"ring_depth"`
	ReadWorkers     int      `json:"read_workers"`
	QueuedReads     int      `json:"queued_reads"` // asked for at once, by steps that are not urgent
	LastToken       bool     `json:"last_token"`
	NextGate        bool     `json:"next_gate"`
	Ahead           int      `json:"ahead"`        // layers that are predicted
	AheadRows       int      `json:"ahead_rows"`   // of a step whose rows are predicted one by one
	ScoresAhead     int      `json:"scores_ahead"` // layers whose routers are applied ahead
	ScoresAheadRows int      `json:"scores_ahead_rows"`
	FirstRouted     int      `json:"first_routed"` // layer
	ChunkRows       int      `json:"chunk_rows"`
	StepsInFlight   int      `json:"steps_in_flight"`
	PromptShare     float64  `json:"prompt_share"`
	Preempts        bool     `json:"preempts"` // the device runs urgent work amid other work
	Profile         bool     `json:"profile"`  // it began with counts of use of earlier runs
}

// Host returns the address of an expert host; "" if it was found after this was written.
func (e *Engine) Host(n int) string {
	if n < len(e.Hosts) {
		return e.Hosts[n]
	}
	return ""
}

// Machine is where the engine ran.
type Machine struct {
	OS          string `json:"os"`
	Processor   string `json:"processor"`
	Cores       int    `json:"cores"` // that the process may use
	MemoryBytes int64  `json:"memory_bytes"`
	Device      string `json:"device"`
	Resident    bool   `json:"resident"` // all experts are in memory, and the device routes by itself
}
