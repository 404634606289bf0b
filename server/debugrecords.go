package server

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// The bounds of what GET /debug/records does.
const (
	mostRecordTime = 10 * time.Minute
	recordsEvery   = 20 * time.Millisecond // the log is looked at, as by --record
)

// debugRecords answers GET /debug/records with a file of records: those that the engine has, or
// with ?seconds=N those of the next N seconds. One at a time.
func (s *Server) debugRecords(w http.ResponseWriter, r *http.Request) {
	e, f := s.engineNamed(r.FormValue("model"))
	var during time.Duration
	if f == nil {
		during, f = readSeconds(r)
	}
	if f == nil && !s.recording.TryLock() {
		f = &fault{Status: http.StatusTooManyRequests, Type: rateLimit, Code: "busy", Message: "records are being read by somebody else: one at a time", Retry: 5 * time.Second}
	}
	if f != nil {
		note(r, f)
		writeFault(w, f, formOf(r))
		return
	}
	defer s.recording.Unlock()
	// What began late ends with the server, and not after it.
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.doors.shutting, cancel)()
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", `attachment; filename="moeflux.records"`)
	h.Set("Cache-Control", "no-store")
	if err := writeRecords(ctx, &patientWriter{w: w, control: http.NewResponseController(w), patience: s.o.Patience}, e, during); err != nil {
		note(r, errGone)
		panic(http.ErrAbortHandler) // a clean end would be a whole file
	}
}

// writeRecords writes what an engine's log has, or, if during is not 0, what it gets in that time.
func writeRecords(ctx context.Context, w io.Writer, e Engine, during time.Duration) error {
	meta, log := e.RecordMeta(), e.Records()
	meta.Reason, meta.Written = "debug/records", time.Now()
	out, err := record.NewWriter(w, meta)
	if err != nil {
		return err
	}
	if during == 0 {
		return out.Drain(log)
	}
	out.Skip(log)
	look, over := time.NewTicker(recordsEvery), time.After(during)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			if err := out.Drain(log); err != nil {
				return err
			}
		case <-over:
			return out.Drain(log)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// readSeconds reads the time for which records are wanted; 0 if none is given.
func readSeconds(r *http.Request) (time.Duration, *fault) {
	text := r.FormValue("seconds")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n > 0 && n <= mostRecordTime.Seconds()) {
		return 0, invalid("seconds", "seconds must be a number above 0 and at most %v", mostRecordTime.Seconds())
	}
	return time.Duration(n * float64(time.Second)), nil
}

// engineNamed returns the engine of the model that is named; "" means the first one that has an
// engine in memory.
func (s *Server) engineNamed(name string) (Engine, *fault) {
	m, f := s.watchable(name)
	if f != nil {
		return nil, f
	}
	return m.engine(), nil
}

// watchable returns the model that is named, whose engine is in memory.
func (s *Server) watchable(name string) (*Served, *fault) {
	if name != "" {
		m, f := s.model(name)
		if f == nil && m.engine() == nil {
			f = noEngine
		}
		return m, f
	}
	for i := range s.o.Models {
		if m := &s.o.Models[i]; m.engine() != nil {
			return m, nil
		}
	}
	return nil, noEngine
}

var noEngine = &fault{Status: http.StatusConflict, Type: invalidRequest, Code: "no_engine", Message: "there is no engine to look at: the model is not in memory now"}

// patientWriter gives each write a time.
type patientWriter struct {
	w        io.Writer
	control  *http.ResponseController
	patience time.Duration
}

// Write writes what a client has to take within the time.
func (p *patientWriter) Write(b []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(p.patience)) // the writer of a test may have none
	n, err := p.w.Write(b)
	if err == nil {
		err = p.control.Flush()
	}
	return n, err
}
