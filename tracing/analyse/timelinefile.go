package analyse

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// event is an entry of the Trace Event Format. Times are in microseconds.
type event struct {
	Name  string         `json:"name"`
	Cat   string         `json:"cat,omitempty"`
	Phase string         `json:"ph"`
	TS    json.Number    `json:"ts"`
	Dur   json.Number    `json:"dur,omitempty"`
	Group int            `json:"pid"`
	Track int            `json:"tid"`
	ID    string         `json:"id,omitempty"`
	Bind  string         `json:"bp,omitempty"`
	Args  map[string]any `json:"args,omitempty"`
}

// micros writes nanoseconds as microseconds, without a loss.
func micros(ns int64) json.Number { return json.Number(fmt.Sprintf("%d.%03d", ns/1000, ns%1000)) }

// timelineFile writes entries.
type timelineFile struct {
	w   *bufio.Writer
	err error
	n   int
}

// Timeline returns a function that writes a recording as a file that ui.perfetto.dev and
// chrome://tracing open: a JSON object of the Trace Event Format, which is what both read. There
// is a track for each sequence and for its critical path, each lane of steps, each stage, each
// queue of the device and each reader. Arrows lead from the guess of an expert, or from the plan
// that wants it, to its read, and from there to the wave that computes with it. Counters tell of
// slots, reads, bytes and requests. With a token other than 0 only what happened while that token
// was made is written; the error says that there is none of that number.
func Timeline(rec *record.Recording, token int) (func(io.Writer) error, error) {
	x := newIndex(rec)
	tokens := x.tokens()
	t, err := newTimeline(x, tokens, token)
	if err != nil {
		return nil, err
	}
	m := &rec.Meta
	other, err := json.Marshal(map[string]any{
		"program": m.Program, "model": m.Model.Name, "settings": m.Settings, "epoch": m.Epoch, "forgotten": rec.Forgotten, "cut": rec.Cut,
	})
	if err != nil {
		return nil, fmt.Errorf("analyse: %w", err)
	}
	return func(w io.Writer) error {
		f := &timelineFile{w: bufio.NewWriterSize(w, 1<<16)}
		fmt.Fprintf(f.w, "{\"displayTimeUnit\":\"ns\",\"otherData\":%s,\"traceEvents\":[\n", other)
		t.emit = f.add
		t.draw(tokens)
		f.w.WriteString("\n]}\n")
		if f.err == nil {
			f.err = f.w.Flush()
		}
		if f.err != nil {
			return fmt.Errorf("analyse: %w", f.err)
		}
		return nil
	}, nil
}

func (f *timelineFile) add(e *entry) {
	if f.err != nil {
		return
	}
	if f.n++; f.n > 1 {
		f.w.WriteString(",\n")
	}
	v := event{Name: e.name, Cat: e.cat, Phase: e.phase, TS: micros(e.ns), Group: e.group, Track: e.track, ID: e.id, Args: e.args}
	switch e.phase {
	case "X":
		v.Dur = micros(e.dur)
	case "t", "f": // they end in what began before them, not in the next slice
		v.Bind = "e"
	}
	raw, err := json.Marshal(&v)
	if err == nil {
		_, err = f.w.Write(raw)
	}
	f.err = err
}
