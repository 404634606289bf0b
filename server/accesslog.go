package server

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/moeflux/moeflux-actor/server/fault"
	"github.com/moeflux/moeflux-actor/server/visit"
)

// longestPath bounds the path in the log: what is longer was not meant as one.
const longestPath = 100

// log writes the line of a request: names of ours and figures, and never text.
func (s *Server) log(r *http.Request, v *visit.Visit, w *logged, took time.Duration) {
	s.metrics.Visited(visit.RouteOf(r), w.status)
	level, path := slog.LevelInfo, r.URL.Path
	if len(path) > longestPath {
		path = path[:longestPath]
	}
	args := []any{"id", v.ID, "method", r.Method, "path", path, "status", w.status, "bytes", w.bytes, "ms", took.Milliseconds()}
	if v.Trace != "" {
		args = append(args, "trace", v.Trace)
	}
	if v.Key.Name != "" {
		args = append(args, "key", v.Key.Name)
	}
	if v.Tally != nil {
		args = append(args, v.Tally.Figures()...)
	}
	if v.Err != nil {
		how := fault.EndingOf(v.Err)
		args = append(args, "error", how.Code)
		if f := fault.Of(v.Err); f.Status >= http.StatusInternalServerError && how.Code != fault.ClientLeft {
			level = slog.LevelWarn
			args = append(args, "why", f.Message)
		}
	}
	s.o.Logger.Log(r.Context(), level, "request", args...)
}

// logged is a ResponseWriter that knows what was written.
type logged struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (l *logged) WriteHeader(status int) {
	if l.status == 0 {
		l.status = status
	}
	l.ResponseWriter.WriteHeader(status)
}

func (l *logged) Write(b []byte) (int, error) {
	if l.status == 0 {
		l.status = http.StatusOK
	}
	n, err := l.ResponseWriter.Write(b)
	l.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the writer below.
func (l *logged) Unwrap() http.ResponseWriter { return l.ResponseWriter }
