package actors_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/io/readpool"
)

// moodyDisk reads, fails, or does not answer until it reads again.
type moodyDisk struct {
	readpool.Source
	mood *atomic.Int32
}

const (
	diskReads int32 = iota
	diskFails
	diskHangs
)

var errPlanted = errors.New("the planted error of a disk")

func (d *moodyDisk) ReadExpert(layer, expert int, dst []byte) error {
	for d.mood.Load() == diskHangs {
		time.Sleep(time.Millisecond)
	}
	if d.mood.Load() == diskFails {
		return errPlanted
	}
	return d.Source.ReadExpert(layer, expert, dst)
}

// TestTraceOutcomes has requests answered, refused, failed and cancelled, and wants the span of
// each to say so, with the error that its caller was given.
func TestTraceOutcomes(t *testing.T) {
	var mood atomic.Int32
	cfg := actors.Config{ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 1 << 17, WaveSlots: 2, Context: 64}
	cfg = actors.WithReads(cfg, func(src readpool.Source) readpool.Source { return &moodyDisk{src, &mood} })
	want := make(map[string]error) // by outcome
	tr := runTraced(t, cfg, func(ctx context.Context, e *actors.Engine) {
		s, failing, gone := sequence(t, e), sequence(t, e), sequence(t, e)
		note := func(outcome string, err error) { want[outcome] = err }
		_, err := s.Eval(ctx, []int32{1})
		note("answered", err)
		_, err = s.Eval(ctx, prompt(1, 65, 512))
		note("refused", err)
		mood.Store(diskFails)
		_, err = failing.Eval(ctx, prompt(2, 20, 512))
		note("failed", err)
		mood.Store(diskHangs)
		steps := len(e.Records().Recording().Steps)
		ctx, cancel := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { _, err := gone.Eval(ctx, prompt(3, 20, 512)); done <- err }()
		for len(e.Records().Recording().Steps) == steps {
			time.Sleep(time.Millisecond)
		}
		cancel()
		mood.Store(diskReads)
		note("cancelled", <-done)
	})
	if want["answered"] != nil || !errors.Is(want["failed"], errPlanted) || !errors.Is(want["cancelled"], context.Canceled) || want["refused"] == nil {
		t.Fatalf("the callers were told %v: the test shows nothing", want)
	}
	for _, s := range tr.spans {
		if s.Name != "moeflux.eval" {
			continue
		}
		checkAttributes(t, s)
		outcome := text(s, "moeflux.outcome")
		err, ok := want[outcome]
		delete(want, outcome)
		switch {
		case !ok:
			t.Errorf("a request was %s, once more or for nothing", outcome)
		case err == nil:
			if s.Status.Code == codes.Error || text(s, "error.type") != "" || len(s.Events) != 0 {
				t.Errorf("%s: the span has status %+v, %v, %v", outcome, s.Status, s.Attributes, s.Events)
			}
		case s.Status.Code != codes.Error || s.Status.Description == "" || !strings.Contains(err.Error(), s.Status.Description) || text(s, "error.type") == "" || len(s.Events) != 1:
			t.Errorf("%s: the caller was told %q, the span has status %+v, %v, %v", outcome, err, s.Status, s.Attributes, s.Events)
		}
	}
	if len(want) != 0 {
		t.Errorf("no span tells of %v", want)
	}
}

// text returns an attribute that is a string.
func text(s tracetest.SpanStub, key string) string {
	for _, a := range s.Attributes {
		if string(a.Key) == key {
			return a.Value.AsString()
		}
	}
	return ""
}
