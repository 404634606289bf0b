package wire

import (
	"bytes"
	"net/http"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
)

// Stream writes server-sent events. Each is one Write, so that an error never leaves half of one.
type Stream struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration // a write may take
	Begun    bool
	Wrote    time.Time // when it wrote last
	Err      error     // of the first write that failed; nothing is written after it

	came    time.Time // when the request came
	reading time.Time // when the prompt began to be read
}

// NewStream returns the stream of a request that has just come. A write may take as long as
// patience.
func NewStream(w http.ResponseWriter, patience time.Duration) *Stream {
	return &Stream{w: w, control: http.NewResponseController(w), patience: patience, came: time.Now()}
}

// PromptProgress is how far a prompt has been read, as llama.cpp has it; the last two fields are an
// extension.
type PromptProgress struct {
	Total     int     `json:"total"`
	Cache     int     `json:"cache"`     // tokens that need not be read
	Processed int     `json:"processed"` // tokens, with those
	TimeMS    int64   `json:"time_ms"`   // since the request came
	Rate      float64 `json:"tokens_per_second,omitempty"`
	LeftMS    int64   `json:"left_ms,omitempty"`
}

// Progress returns what a stream tells of a prompt that is being read. The time left is that of the
// rest at the speed so far.
func (s *Stream) Progress(r *moeflux.Reading) *PromptProgress {
	now := time.Now()
	p := &PromptProgress{Total: r.Total, Cache: r.Reused, Processed: r.Known, TimeMS: now.Sub(s.came).Milliseconds()}
	if s.reading.IsZero() {
		s.reading = now
	}
	if took := now.Sub(s.reading).Seconds(); took > 0 && r.Known > r.Reused {
		p.Rate = float64(r.Known-r.Reused) / took
		p.LeftMS = int64(1000 * float64(r.Total-r.Known) / p.Rate)
	}
	return p
}

// Begin sends the headers.
func (s *Stream) Begin() {
	if s.Begun {
		return
	}
	s.Begun = true
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	s.w.WriteHeader(http.StatusOK)
	s.Wrote = time.Now()
}

// Data sends an event without a name.
func (s *Stream) Data(v any) { s.Event("", v) }

// Event sends a value as an event.
func (s *Stream) Event(name string, v any) {
	var b bytes.Buffer
	if name != "" {
		b.WriteString("event: " + name + "\n")
	}
	b.WriteString("data: ")
	b.Write(Encode(v))
	b.WriteByte('\n')
	s.Write(b.Bytes())
}

// Raw sends bytes that are whole events or comments.
func (s *Stream) Raw(text string) { s.Write([]byte(text)) }

// Write sends bytes that are whole events. Err says whether it could.
func (s *Stream) Write(b []byte) {
	s.Begin()
	if s.Err != nil {
		return
	}
	// The writer of a test, and an HTTP/1.0 proxy's, may have no deadlines.
	_ = s.control.SetWriteDeadline(time.Now().Add(s.patience))
	if _, s.Err = s.w.Write(b); s.Err == nil {
		s.Err = s.control.Flush()
	}
	s.Wrote = time.Now()
}
