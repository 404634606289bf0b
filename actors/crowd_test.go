package actors_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/io/readpool"
	"github.com/moeflux/moeflux-actor/stages"
)

// crowdTexts are texts of a few lengths and how they go on alone.
func crowdTexts(t *testing.T, e *actors.Engine) (prompts [][]int32, want [][]int32) {
	t.Helper()
	for i := range 6 {
		p := prompt(uint64(i), 1+5*i, e.Model().VocabSize)
		ids, err := greedy(sequence(t, e), p, crowdMost)
		if err != nil {
			t.Fatal(err)
		}
		prompts, want = append(prompts, p), append(want, ids)
	}
	return prompts, want
}

// crowdMost is the most tokens of a text; with its prompt it fits in one page.
const crowdMost = 20

// forEight returns memory for the states of eight sequences of a page each.
func forEight(e *actors.Engine) actors.Config {
	i := e.Info()
	return actors.Config{StateMemory: 8 * (i.StateBytes + 64*i.KVBytesPerPos), Context: 64}
}

// TestCrowd lets 100 callers (40 under -short) come at once with memory for eight. All get the
// whole text that they would get alone, whatever their class and key, and in the end nobody has
// anything. With no more than three in the queue the others are told when to try again, and get
// through in the end.
func TestCrowd(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	ample := open(t, actors.Config{Model: dir, Context: 64})
	prompts, want := crowdTexts(t, ample)
	for _, waiting := range []int{0, 3} {
		t.Run(fmt.Sprintf("waiting=%d", waiting), func(t *testing.T) {
			cfg := forEight(ample)
			cfg.Model, cfg.MaxWaiting = dir, waiting
			e := open(t, cfg)
			var wg sync.WaitGroup
			for i := range testenv.Rounds(40, 100, 100) {
				wg.Go(func() {
					n, tokens := i%len(prompts), 1+i*7%crowdMost
					ids, err := crowdText(ctx, e, i, prompts[n], tokens)
					if err != nil || !slices.Equal(ids, want[n][:tokens]) {
						t.Errorf("text %d: %v, %v, want %v", i, ids, err, want[n][:tokens])
					}
				})
			}
			wg.Wait()
			st, err := e.Stats(ctx)
			a := st.Admission
			if err != nil || a.Waited == 0 || a.Sequences+a.Waiting != 0 || a.PromisedBytes != 0 || st.PagesUsed != 0 {
				t.Errorf("%+v and %d pages are left, %v", a, st.PagesUsed, err)
			}
			if waiting == 0 && a.TurnedAway != 0 || waiting > 0 && (a.TurnedAway == 0 || a.WaitingMost > waiting+1) {
				t.Errorf("a queue of %d: %+v", e.Info().MaxWaiting, a)
			}
		})
	}
}

// crowdText generates a text with a sequence of its own. Where the queue is full it tries again
// when it was told to.
func crowdText(ctx context.Context, e *actors.Engine, i int, prompt []int32, tokens int) (ids []int32, err error) {
	s, err := e.NewSequenceFor(ctx, actors.SequenceOptions{Class: actors.Class(i%3) + actors.Background, Key: fmt.Sprint(i % 4)})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for {
		ids = nil
		for id, failed := range s.Generate(ctx, prompt, actors.GenerateOptions{MaxTokens: tokens, IgnoreEOS: true}) {
			if err = failed; err == nil {
				ids = append(ids, id)
			}
		}
		full, ok := errors.AsType[*stages.QueueFullError](err)
		if !ok {
			return ids, err
		}
		if full.Waiting == 0 || full.RetryAfter <= 0 || full.RetryAfter > time.Minute {
			return nil, fmt.Errorf("the queue is full: %+v", full)
		}
		time.Sleep(full.RetryAfter)
	}
}

// TestCrowdHung does the same while the disk hangs and half of the callers have a deadline: they
// leave in time, wherever they wait, and all others get the whole text when the disk goes on.
func TestCrowdHung(t *testing.T) {
	release := make(chan struct{})
	ample, _ := streamed(t, actors.Config{Context: 64})
	prompts, want := crowdTexts(t, ample)
	e, _ := streamed(t, forEight(ample), readpool.Fault{Read: 5, Kind: readpool.Slow, Release: release})
	var all, hasty sync.WaitGroup
	for i := range 100 {
		run := all.Go
		mine, cancel := context.WithCancel(ctx)
		if i%2 == 0 {
			run = hasty.Go
			mine, cancel = context.WithTimeout(ctx, time.Duration(50+rand.IntN(300))*time.Millisecond)
		}
		run(func() {
			defer cancel()
			n, tokens := i%len(prompts), 1+i*7%crowdMost
			ids, err := crowdText(mine, e, i, prompts[n], tokens)
			if late, ok := mine.Deadline(); ok {
				if took := time.Since(late); took > 2*time.Second || err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("text %d: %v, %v after its deadline", i, err, took)
				}
			} else if err != nil || !slices.Equal(ids, want[n][:tokens]) {
				t.Errorf("text %d: %v, %v, want %v", i, ids, err, want[n][:tokens])
			}
		})
	}
	hasty.Wait()
	close(release)
	all.Wait()
	for late := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		st, err := e.Stats(ctx)
		if a := st.Admission; err == nil && a.Waited > 0 && a.Sequences+a.Waiting == 0 && a.PromisedBytes == 0 && st.PagesUsed == 0 {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%+v and %d pages are left, %v", st.Admission, st.PagesUsed, err)
		}
	}
}
