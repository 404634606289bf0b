package server

import (
	"bytes"
	"net/http"
	"time"
)

// sse writes server-sent events. Each is one Write, so that an error never leaves half of one.
type sse struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration // a write may take
	begun    bool
	wrote    time.Time // when it wrote last
	err      error     // of the first write that failed; nothing is written after it
}

func newSSE(w http.ResponseWriter, patience time.Duration) *sse {
	return &sse{w: w, control: http.NewResponseController(w), patience: patience}
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
