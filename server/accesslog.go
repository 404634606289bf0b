package server

import (
	"log/slog"
	"net/http"
	"time"
)

// longestPath bounds the path in the log: what is longer was not meant as one.
const longestPath = 100

// log writes the line of a request: names of ours and figures, and never text.
func (s *Server) log(r *http.Request, v *visit, w *logged, took time.Duration) {
	s.metrics.visited(routeOf(r), w.status)
	level, path := slog.LevelInfo, r.URL.Path
	if len(path) > longestPath {
		path = path[:longestPath]
	}
	args := []any{"id", v.id, "method", r.Method, "path", path, "status", w.status, "bytes", w.bytes, "ms", took.Milliseconds()}
	if v.trace != "" {
		args = append(args, "trace", v.trace)
	}
	if v.key.Name != "" {
		args = append(args, "key", v.key.Name)
	}
	if v.tally != nil {
		args = append(args, v.tally.figures()...)
	}
	if v.err != nil {
		how := endedWith(v.err)
		args = append(args, "error", how.code)
		if f := faultOf(v.err); f.Status >= http.StatusInternalServerError && how.code != clientLeft {
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
