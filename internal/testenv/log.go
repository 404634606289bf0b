package testenv

import (
	"log/slog"
	"strings"
	"sync"
)

// Log keeps what is logged, by any number of goroutines. Its zero value is empty.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write adds to the log.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns all of the log.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Logger writes lines of text, from slog.LevelInfo on.
func (l *Log) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// Has reports whether a line has all of the words.
func (l *Log) Has(words ...string) bool {
	for line := range strings.Lines(l.String()) {
		missing := false
		for _, w := range words {
			missing = missing || !strings.Contains(line, w)
		}
		if !missing {
			return true
		}
	}
	return false
}
