package watch

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/moeflux/moeflux-actor/server/fault"
	"github.com/moeflux/moeflux-actor/server/models"
	"github.com/moeflux/moeflux-actor/server/visit"
	"github.com/moeflux/moeflux-actor/server/wire"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// The bounds of what GET /debug/records does.
const (
	mostRecordTime = 10 * time.Minute
	recordsEvery   = 20 * time.Millisecond // the log is looked at, as by --record
)

// Records answers GET /debug/records with a file of records: those that the engine has, or
// with ?seconds=N those of the next N seconds. One at a time.
func (x *Views) Records(w http.ResponseWriter, r *http.Request) {
	e, f := x.engineNamed(r.FormValue("model"))
	var during time.Duration
	if f == nil {
		during, f = readSeconds(r)
	}
	if f == nil && !x.recording.TryLock() {
		f = &fault.Fault{Status: http.StatusTooManyRequests, Type: fault.RateLimit, Code: "busy", Message: "records are being read by somebody else: one at a time", Retry: 5 * time.Second}
	}
	if f != nil {
		visit.Refuse(w, r, f)
		return
	}
	defer x.recording.Unlock()
	// What began late ends with the server, and not after it.
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(x.closing, cancel)()
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", `attachment; filename="moeflux.records"`)
	h.Set("Cache-Control", "no-store")
	if err := writeRecords(ctx, wire.NewPatient(w, x.patience), e, during); err != nil {
		visit.Note(r, fault.ErrGone)
		panic(http.ErrAbortHandler) // a clean end would be a whole file
	}
}

// writeRecords writes what an engine's log has, or, if during is not 0, what it gets in that time.
func writeRecords(ctx context.Context, w io.Writer, e models.Engine, during time.Duration) error {
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
func readSeconds(r *http.Request) (time.Duration, *fault.Fault) {
	text := r.FormValue("seconds")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n > 0 && n <= mostRecordTime.Seconds()) {
		return 0, fault.Invalid("seconds", "seconds must be a number above 0 and at most %v", mostRecordTime.Seconds())
	}
	return time.Duration(n * float64(time.Second)), nil
}

// engineNamed returns the engine of the model that is named; "" means the first one that has an
// engine in memory.
func (x *Views) engineNamed(name string) (models.Engine, *fault.Fault) {
	m, f := x.models.Watchable(name)
	if f != nil {
		return nil, f
	}
	return m.Watched(), nil
}
