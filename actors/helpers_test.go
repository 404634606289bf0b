package actors_test

import (
	"context"
	"io"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu/host"
)

// cacheDir holds the packed demo model while the tests run.
var cacheDir string

func TestMain(m *testing.M) {
	var err error
	if cacheDir, err = os.MkdirTemp("", "moeflux-actors-"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(cacheDir)
		os.Exit(code)
	}))
}

// device makes a host device that lives as long as the test.
func device(tb testing.TB, threads int) *host.Device { return deviceVariant(tb, threads, "") }

func deviceVariant(tb testing.TB, threads int, variant string) *host.Device {
	tb.Helper()
	d, err := host.New(host.Config{Threads: threads, Variant: variant})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := d.Close(); err != nil {
			tb.Errorf("closing the device: %v", err)
		}
	})
	return d
}

// fewRecords is the memory for records of an engine that a test opens for something else. Clearing
// the usual one takes a sixth of a short engine's life.
const fewRecords = 256 << 10

// open opens an engine that lives as long as the test. The device is made if cfg has none.
func open(tb testing.TB, cfg actors.Config) *actors.Engine {
	tb.Helper()
	if cfg.Device == nil {
		cfg.Device = device(tb, 2)
	}
	e, err := actors.Open(context.Background(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			tb.Errorf("closing the engine: %v", err)
		}
	})
	return e
}

// sequence opens a sequence that lives as long as the test.
func sequence(tb testing.TB, e *actors.Engine) *actors.Sequence {
	tb.Helper()
	s, err := e.NewSequence(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("closing a sequence: %v", err)
		}
	})
	return s
}

func eval(tb testing.TB, s *actors.Sequence, tokens ...int32) []float32 {
	tb.Helper()
	logits, err := s.Eval(context.Background(), tokens)
	if err != nil {
		tb.Fatal(err)
	}
	return logits
}

// greedy decodes n tokens after the prompt and returns them.
func greedy(s *actors.Sequence, prompt []int32, n int) ([]int32, error) {
	var ids []int32
	for id, err := range s.Generate(context.Background(), prompt, actors.GenerateOptions{MaxTokens: n, IgnoreEOS: true}) {
		if err != nil {
			return ids, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func argmax(v []float32) int32 {
	return int32(slices.Index(v, slices.Max(v)))
}

// quietSystem makes an actor system as a service may have one; dead letters fail the test.
func quietSystem(tb testing.TB) *actor.ActorSystem {
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.NewTextHandler(io.Discard, nil))
	}))
	sub := system.EventStream.Subscribe(func(ev any) {
		if d, ok := ev.(*actor.DeadLetterEvent); ok {
			tb.Errorf("dead letter: %T", d.Message)
		}
	})
	tb.Cleanup(func() {
		system.EventStream.Unsubscribe(sub)
		system.Shutdown()
	})
	return system
}

// silentSystem makes an actor system whose dead letters are nobody's business: an engine in it is
// stopped or breaks.
func silentSystem(tb testing.TB) *actor.ActorSystem {
	system := actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
		// a dead letter starts a goroutine that lives as long
		actor.WithDeadLetterThrottleInterval(time.Millisecond),
	)
	tb.Cleanup(func() {
		if !system.IsStopped() {
			system.Shutdown()
		}
	})
	return system
}
