package tune

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/bench"
	"github.com/moeflux/moeflux-actor/internal/tuned"
	"github.com/moeflux/moeflux-actor/tracing/record"
	"github.com/moeflux/moeflux-actor/tracing/whatif"
)

const (
	promptTokens = 32 // of a text
	warmTokens   = 16 // decoded before it
	recordTokens = 48 // decoded in the recorded run
	fewestTokens = 24 // decoded in the others
	mostTokens   = 4096
	// trials is how many runs the time is to suffice for.
	trials = 32
	// replayShare of the time is for replays.
	replayShare = 0.15
)

// Tuner looks for settings.
type Tuner struct {
	Host *bench.Host
	// Opener takes the flags of tuned.Settings, and record, a file for records.
	Opener bench.Opener
	Given  tuned.Settings // what the user has given, which stays as it is
	// Earlier is what was chosen before, which is tried first.
	Earlier tuned.Settings
	Time    time.Duration // that the whole may take
	Temp    string        // the folder of temporary files

	until time.Time
	plan  actors.Info // of the defaults
	r     *Result
}

// Run looks for settings. Where ctx ends, the result says what there is, and that it was
// interrupted. An error is that of a model that does not open or run.
func (t *Tuner) Run(ctx context.Context) (*Result, error) {
	began := t.Host.Now()
	t.until, t.Earlier = began.Add(t.Time), without(t.Earlier, t.Given)
	t.r = &Result{Seconds: Seconds{Given: t.Time.Seconds()}, Replay: Replay{Why: "there was no time for it"}, Findings: noFindings()}
	within, cancel := context.WithTimeoutCause(ctx, t.Time, errTime)
	defer cancel()
	err := t.all(within)
	t.r.Seconds.Took = t.Host.Now().Sub(began).Seconds()
	switch {
	case err == nil:
	case ctx.Err() != nil:
		t.r.Interrupted = true
	case context.Cause(within) == errTime:
		if t.r.Needed == 0 { // not even one run had ended
			t.r.Needed = 2 * leastPairs * t.r.Seconds.Took
		}
	default:
		return nil, err
	}
	return t.r, nil
}

// all plans, records, proposes and measures.
func (t *Tuner) all(ctx context.Context) (err error) {
	if t.plan, err = t.Opener.Plan(ctx, nil); err != nil {
		return err
	}
	free := axes(&t.plan, t.Given)
	if len(free) == 0 {
		t.r.Replay.Why = "everything is given"
		return nil
	}
	base, rec, err := t.record(ctx)
	if err == nil && base.whole > t.Time/trials { // perhaps since nothing was in the page cache
		base, rec, err = t.record(ctx)
	}
	if err != nil {
		return err
	}
	predict := t.predictor(base, rec)
	over := t.Host.Now().Add(time.Duration(replayShare * float64(t.Time)))
	proposed, tried := propose(free, predict, func() bool { return ctx.Err() != nil || t.Host.Now().After(over) })
	t.r.Replay.Settings = tried
	if t.Earlier != (tuned.Settings{}) {
		proposed = append([]*Candidate{{Settings: t.Earlier}}, proposed...)
	}
	if t.r.Candidates, err = t.distinct(ctx, proposed); err != nil {
		return err
	}
	runs := bench.Trials{Host: t.Host, Opener: t.Opener, Options: t.options(t.tokens(base))}
	s := search{
		now: t.Host.Now, began: t.until.Add(-t.Time), until: t.until, r: &t.r.Findings, progress: func(done, total int64) { t.Host.Progress("tuning", done, total) },
		run: func(ctx context.Context, set tuned.Settings, round int) (*Outcome, error) {
			one, err := runs.Run(ctx, flagsOf(set), round)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", set, err)
			}
			t.r.Texts = Texts{Prompts: one.Prompts, PromptTokens: promptTokens, GenTokens: one.GenTokens, WarmupTokens: one.WarmupTokens}
			return &Outcome{Seconds: one.Seconds(), Tokens: one.Tokens}, nil
		},
	}
	s.cost = base.whole + time.Duration(float64(runs.Options.GenTokens-base.GenTokens)*base.token*float64(time.Second))
	return s.all(ctx)
}

// options are those of runs that decode some tokens.
func (t *Tuner) options(gen int) bench.Options {
	return bench.Options{PromptTokens: []int{min(promptTokens, t.plan.Context/2)}, GenTokens: gen, Sequences: []int{1}, Warmup: warmTokens, Repeat: 1}
}

func flagsOf(s tuned.Settings) bench.Flags {
	flags := bench.Flags{}
	for _, f := range s.Flags() {
		flags[f.Name] = f.Value
	}
	return flags
}

// baseline is the first run with the defaults.
type baseline struct {
	*bench.Trial
	whole time.Duration // with opening, warm-up and closing
	token float64       // seconds of a decoded token
}

// tokens returns how many tokens the texts decode, so that the time suffices for some runs.
func (t *Tuner) tokens(b *baseline) int {
	each := t.until.Sub(t.Host.Now()).Seconds() / trials
	n := recordTokens + int((each-b.whole.Seconds())/max(b.token, 1e-9))
	return max(min(n, mostTokens, t.plan.Context-promptTokens-1), min(fewestTokens, t.plan.Context/2))
}

// record runs a text with the defaults, and records it if experts are streamed.
func (t *Tuner) record(ctx context.Context) (*baseline, *record.Recording, error) {
	o, flags := t.options(min(recordTokens, t.plan.Context/2)), bench.Flags{}
	streamed := t.plan.ExpertIO.Streams()
	var path string
	if streamed {
		dir, err := os.MkdirTemp(t.Temp, "tune")
		if err != nil {
			return nil, nil, fmt.Errorf("there is no room for a temporary file of records: %w", err)
		}
		defer os.RemoveAll(dir)
		path = filepath.Join(dir, "run.records")
		flags["record"], o.Forget = path, true
	}
	runs := bench.Trials{Host: t.Host, Opener: t.Opener, Options: o}
	began := t.Host.Now()
	one, err := runs.Run(ctx, flags, 0)
	if err != nil {
		return nil, nil, err
	}
	b := &baseline{Trial: one, whole: t.Host.Now().Sub(began), token: one.Decode.Seconds / float64(max(1, one.Decode.Tokens))}
	if !streamed {
		t.r.Replay.Why = "all experts are in memory, so that there is nothing to replay"
		return b, nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		t.r.Replay.Why = fmt.Sprintf("the records were lost: %v", err)
		return b, nil, nil
	}
	defer f.Close()
	rec, err := record.ReadRecording(f)
	if err != nil {
		t.r.Replay.Why = fmt.Sprintf("the records were lost: %v", err)
		return b, nil, nil
	}
	return b, rec, nil
}

// predictor returns what predicts by replays of a recording; nil if it cannot.
func (t *Tuner) predictor(b *baseline, rec *record.Recording) predictor {
	if rec == nil {
		return nil
	}
	replays, err := whatif.New(rec)
	if err == nil {
		t.r.Replay.Error = replays.Error()
		_, err = replays.Predict(whatif.Settings{})
	}
	if unknown, ok := errors.AsType[*whatif.UnknownError](err); ok {
		t.r.Replay.Why = unknown.Why
		return nil
	} else if err != nil {
		t.r.Replay.Why = err.Error()
		return nil
	}
	t.r.Replay.Why = ""
	seconds := func(prompt, decode float64) float64 {
		s := float64(b.GenTokens) / decode
		if prompt > 0 {
			s += promptTokens / prompt
		}
		return s
	}
	was := seconds(replays.Measured().PromptRate, replays.Measured().DecodeRate)
	return func(s tuned.Settings) (float64, bool) {
		p, err := replays.Predict(replayable(s))
		if err != nil || p.DecodeRate <= 0 {
			return 0, false
		}
		return 1 - seconds(p.PromptRate, p.DecodeRate)/was, true
	}
}

// distinct returns the candidates that change how the model runs, one of each kind.
func (t *Tuner) distinct(ctx context.Context, all []*Candidate) (candidates []*Candidate, err error) {
	effects := map[bench.Effect]bool{bench.EffectOf(&t.plan, promptTokens, false): true}
	candidates = []*Candidate{}
	for _, c := range all {
		plan, err := t.Opener.Plan(ctx, flagsOf(c.Settings))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c, err)
		}
		if e := bench.EffectOf(&plan, promptTokens, false); !effects[e] {
			effects[e], c.Seconds, candidates = true, []float64{}, append(candidates, c)
		}
	}
	return candidates, nil
}
