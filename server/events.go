package server

import (
	"bytes"
	"net/http"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
)

// sse writes server-sent events. Each is one Write, so that an error never leaves half of one.
type sse struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration // a write may take
	begun    bool
	wrote    time.Time // when it wrote last
	err      error     // of the first write that failed; nothing is written after it

	came    time.Time // when the request came
	reading time.Time // when the prompt began to be read
}

func newSSE(w http.ResponseWriter, patience time.Duration) *sse {
	return &sse{w: w, control: http.NewResponseController(w), patience: patience, came: time.Now()}
}

// promptProgress is how far a prompt has been read, as llama.cpp has it; the last two fields are an
// extension.
type promptProgress struct {
	Total     int     `json:"total"`
	Cache     int     `json:"cache"`     // tokens that need not be read
	Processed int     `json:"processed"` // tokens, with those
	TimeMS    int64   `json:"time_ms"`   // since the request came
	Rate      float64 `json:"tokens_per_second,omitempty"`
	LeftMS    int64   `json:"left_ms,omitempty"`
}

// progress returns what a stream tells of a prompt that is being read. The time left is that of the
// rest at the speed so far.
func (s *sse) progress(r *moeflux.Reading) *promptProgress {
	now := time.Now()
	p := &promptProgress{Total: r.Total, Cache: r.Reused, Processed: r.Known, TimeMS: now.Sub(s.came).Milliseconds()}
	if s.reading.IsZero() {
		s.reading = now
	}
	if took := now.Sub(s.reading).Seconds(); took > 0 && r.Known > r.Reused {
		p.Rate = float64(r.Known-r.Reused) / took
		p.LeftMS = int64(1000 * float64(r.Total-r.Known) / p.Rate)
	}
	return p
}

// begin sends the headers.
func (s *sse) begin() {
	if s.begun {
		return
	}
	s.begun = true
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	s.w.WriteHeader(http.StatusOK)
	s.wrote = time.Now()
}

// data sends an event without a name.
func (s *sse) data(v any) { s.event("", v) }

// event sends a value as an event.
func (s *sse) event(name string, v any) {
	var b bytes.Buffer
	if name != "" {
		b.WriteString("event: " + name + "\n")
	}
	b.WriteString("data: ")
	b.Write(encode(v))
	b.WriteByte('\n')
	s.write(b.Bytes())
}

// raw sends bytes that are whole events or comments.
func (s *sse) raw(text string) { s.write([]byte(text)) }

func (s *sse) write(b []byte) {
	s.begin()
	if s.err != nil {
		return
	}
	// The writer of a test, and an HTTP/1.0 proxy's, may have no deadlines.
	_ = s.control.SetWriteDeadline(time.Now().Add(s.patience))
	if _, s.err = s.w.Write(b); s.err == nil {
		s.err = s.control.Flush()
	}
	s.wrote = time.Now()
}
