package tuned

import (
	"strconv"
	"strings"

	"github.com/moeflux/moeflux-actor/actors"
)

// Settings are what tune chooses. The zero value of each leaves it to the engine. None changes a
// result by a bit.
type Settings struct {
	RingDepth      int    `json:"ring_depth,omitempty"`
	Prefetch       string `json:"prefetch,omitempty"`
	PrefetchLayers int    `json:"prefetch_layers,omitempty"`
	ReadWorkers    int    `json:"read_workers,omitempty"`
	Threads        int    `json:"threads,omitempty"` // of the processor
}

// Flag is a setting as a flag of the command, without dashes.
type Flag struct{ Name, Value string }

// Flags returns what is set.
func (s Settings) Flags() []Flag {
	var all []Flag
	add := func(name, value string) {
		if value != "" && value != "0" {
			all = append(all, Flag{name, value})
		}
	}
	add("ring-depth", strconv.Itoa(s.RingDepth))
	add("prefetch", s.Prefetch)
	add("prefetch-layers", strconv.Itoa(s.PrefetchLayers))
	add("read-workers", strconv.Itoa(s.ReadWorkers))
	add("threads", strconv.Itoa(s.Threads))
	return all
}

// String writes what is set as flags of the command; "" if nothing is.
func (s Settings) String() string {
	var words []string
	for _, f := range s.Flags() {
		words = append(words, "--"+f.Name, f.Value)
	}
	return strings.Join(words, " ")
}

// LeftOpen returns those of the settings that a caller has not set.
func (s Settings) LeftOpen(c *actors.Config, threads int) Settings {
	if c.RingDepth != 0 {
		s.RingDepth = 0
	}
	if c.Prefetch != "" {
		s.Prefetch = ""
	}
	if c.PrefetchLayers != 0 {
		s.PrefetchLayers = 0
	}
	if c.ReadWorkers != 0 {
		s.ReadWorkers = 0
	}
	if threads != 0 {
		s.Threads = 0
	}
	return s
}

// fill sets what a Config leaves open, but for the threads, which are its device's.
func (s Settings) fill(c *actors.Config) {
	if s.RingDepth != 0 {
		c.RingDepth = s.RingDepth
	}
	if s.Prefetch != "" {
		c.Prefetch = actors.Prefetch(s.Prefetch)
	}
	if s.PrefetchLayers != 0 {
		c.PrefetchLayers = s.PrefetchLayers
	}
	if s.ReadWorkers != 0 {
		c.ReadWorkers = s.ReadWorkers
	}
	c.Tuned = s.String()
}
