package forecast

import (
	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/figures"
	"github.com/moeflux/moeflux-actor/model"
)

// Report says what an engine would run with on this machine, how fast, and why.
type Report struct {
	Model    string     `json:"model"`
	Arch     model.Arch `json:"architecture"`
	Machine  Machine    `json:"machine"`
	Memory   *Memory    `json:"memory"`              // null if there was too little to measure it
	Disk     []DiskRate `json:"disk"`                // records of the experts, by mode and depth
	DiskNote string     `json:"disk_note,omitempty"` // what could not be measured
	Plan     Plan       `json:"plan"`
	// of one text that decodes; null if something that it needs is unknown
	Forecast *Forecast `json:"forecast"`
	// experts on several machines; null if Config.Hosts names none
	Hosts *Hosts `json:"hosts"`
	// the reasons. They, and Plan.Advice, name settings as Config.ReadWorkers.
	Why []string `json:"why"`

	reading *DiskRate // to which the engine comes by itself; nil: that of its read workers
}

// Machine is the memory that there is, in bytes.
type Machine struct {
	// what this process may use: the machine's memory, or the cgroup's limit
	Memory      int64 `json:"memory"`
	Free        int64 `json:"free"`         // of Memory; cached file pages count as free
	MemoryLimit int64 `json:"memory_limit"` // of the cgroup; 0 for none
}

// Plan is what the engine would run with, or why it would not run.
type Plan struct {
	figures.Settings
	Advice       string  `json:"advice"`  // a setting to run with, which the plan assumes; "" for none
	Variant      string  `json:"variant"` // of the host device's kernels
	Threads      int     `json:"threads"`
	ExpertMemory int64   `json:"expert_memory"` // of all slots; 0 without slots
	Profile      string  `json:"profile"`       // of the use of experts; "" for none
	SlotShare    float64 `json:"slot_share"`    // of all experts
	Resident     int64   `json:"resident"`      // weights that stay in memory
	Streamed     int64   `json:"streamed"`      // all experts
}

// Subject is what Examine looks at.
type Subject struct {
	Config   actors.Config // of the engine, with an open device
	Machine  Machine
	Threads  int      // of the processor that were asked for; 0 for those that it may use
	Kernels  string   // of the processor
	Variants []string // all that there are of these
	// Note is told what the user should know.
	Note func(format string, args ...any)
}
