package analyse

import (
	"cmp"
	"maps"
	"slices"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// Tracks is what a timeline shows of the time of one token, for whoever draws it.
type Tracks struct {
	Token        int
	FromNS, ToNS int64 // what is shown may begin before and end after
	Tracks       []Track
	Arrows       []Arrow
	Counters     []Counter
}

// Track is things that happened in one place, in order of time.
type Track struct {
	Group, Name string
	Slices      []Slice
}

// Slice is something that took time. Kind is token, cause, step, message, submission, read or
// guess.
type Slice struct {
	Name, Kind   string
	FromNS, ToNS int64
}

// Arrow leads from the message that asked for an expert to its read, and to the wave that used it
// if there was one.
type Arrow struct{ Points []Point }

// Point is a time on a track, by its place in Tracks.
type Point struct {
	Track int
	AtNS  int64
}

// Counter is a number over time, in order.
type Counter struct {
	Name   string
	Levels []Level
}

// Level is what a counter stood at from a time on.
type Level struct {
	AtNS  int64
	Value float64
}

// TracksOf returns the tracks of a token, or, if token is 0, of the slowest one that was decoded.
func TracksOf(rec *record.Recording, token int) (*Tracks, error) {
	x := newIndex(rec)
	all := x.tokens()
	k, err := chosen(all, token)
	if err != nil {
		return nil, err
	}
	t, err := newTimeline(x, all, k.Token)
	if err != nil {
		return nil, err
	}
	c := &collector{Tracks: Tracks{Token: k.Token, FromNS: t.from, ToNS: t.to}, tracks: make(map[int]int), arrows: make(map[string]int), counters: make(map[string]int)}
	t.emit = c.add
	t.draw(all)
	for i := range c.Tracks.Tracks {
		slices.SortStableFunc(c.Tracks.Tracks[i].Slices, func(a, b Slice) int { return cmp.Compare(a.FromNS, b.FromNS) })
	}
	return &c.Tracks, nil
}

// collector gathers the entries of a timeline.
type collector struct {
	Tracks
	tracks           map[int]int // places in Tracks by the track's number
	arrows, counters map[string]int
}

func (c *collector) add(e *entry) {
	switch e.phase {
	case "M":
		if e.name == "thread_name" {
			c.tracks[e.track] = len(c.Tracks.Tracks)
			c.Tracks.Tracks = append(c.Tracks.Tracks, Track{Group: groups[e.group], Name: e.args["name"].(string)})
		}
	case "X":
		t := &c.Tracks.Tracks[c.tracks[e.track]]
		t.Slices = append(t.Slices, Slice{e.name, e.cat, e.ns, e.ns + e.dur})
	case "s", "t", "f":
		i, ok := c.arrows[e.id]
		if !ok {
			i = len(c.Arrows)
			c.arrows[e.id], c.Arrows = i, append(c.Arrows, Arrow{})
		}
		c.Arrows[i].Points = append(c.Arrows[i].Points, Point{c.tracks[e.track], e.ns})
	case "C":
		for _, series := range slices.Sorted(maps.Keys(e.args)) {
			c.level(e.name, series, e.ns, e.args[series])
		}
	}
}

// level notes what a counter stands at. One with several numbers is as many counters.
func (c *collector) level(name, series string, ns int64, value any) {
	if name != series && name != series+" in flight" {
		name += " " + series
	}
	i, ok := c.counters[name]
	if !ok {
		i = len(c.Counters)
		c.counters[name], c.Counters = i, append(c.Counters, Counter{Name: name})
	}
	n := 0.0
	switch v := value.(type) {
	case int64:
		n = float64(v)
	case int32:
		n = float64(v)
	}
	c.Counters[i].Levels = append(c.Counters[i].Levels, Level{ns, n})
}
