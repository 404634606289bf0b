package runtime

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// The log says once that a span processor does not return.
func TestAHungProcessorIsToldOnce(t *testing.T) {
	var log bytes.Buffer
	now := int64(1)
	w := &spanWriter{log: slog.New(slog.NewTextHandler(&log, nil)), now: func() int64 { return now }, wake: make(chan struct{}, 1)}
	w.look()
	w.polling.Store(now)
	now += int64(hungTime)
	w.look()
	if log.Len() > 0 {
		t.Errorf("after %v the log says %s", hungTime, log.String())
	}
	for range 3 {
		now++
		w.look()
	}
	if n := strings.Count(log.String(), "does not return"); n != 1 {
		t.Errorf("the log says it %d times: %s", n, log.String())
	}
}
