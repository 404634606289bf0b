package actors_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/readpool"
	"github.com/moeflux/moeflux-actor/stages"
)

// TestCorruptReads changes one bit of what a read brings: once, which is read again and counted,
// and always, which is an error that names file, layer and expert. Without verification the same
// goes unnoticed into the logits.
func TestCorruptReads(t *testing.T) {
	want := wantTranscript(t)
	once := readpool.Fault{Read: 3, Kind: readpool.Corrupt, Bit: 4711}
	e, _ := streamed(t, actors.Config{ExpertMemory: 8 * pageSlot, ReadWorkers: 1}, once)
	sameTranscript(t, "corrupt once", sequence(t, e), want)
	st, err := e.Stats(context.Background())
	if err != nil || !e.Info().VerifyReads || st.Reads.Corrupt != 1 || st.Reads.Retried != 1 || st.Reads.Failed+st.FailedSteps != 0 {
		t.Errorf("verified %v, %+v, %v; want one corrupt read, which was tried again", e.Info().VerifyReads, st.Reads, err)
	}

	e, _ = streamed(t, actors.Config{ExpertMemory: 8 * pageSlot}, readpool.Fault{Kind: readpool.Corrupt})
	s := sequence(t, e)
	_, err = s.Eval(context.Background(), readText)
	var read *expertfile.ReadError
	var sum *expertfile.SumError
	if !errors.As(err, &read) || !errors.As(err, &sum) || sum.Want == sum.Got || filepath.Base(read.Path) != expertfile.LayerName(read.Layer) || !is[*stages.StepError](err) {
		t.Errorf("corrupt always: %v, want a ReadError of the file with a SumError", err)
	}
	if !is[*stages.PoisonedError](s.Err()) {
		t.Errorf("the sequence's error is %v", s.Err())
	}

	e, _ = streamed(t, actors.Config{ExpertMemory: 8 * pageSlot, VerifyReads: actors.VerifyOff}, readpool.Fault{Kind: readpool.Corrupt, Bit: 6})
	got, err := transcript(sequence(t, e), readText, 0)
	if err != nil || e.Info().VerifyReads || slices.Equal(got[0], want[0]) {
		t.Errorf("not verified: %v, the logits are right: %v; the fault should show", err, err == nil && slices.Equal(got[0], want[0]))
	}
}

// TestChangedFile changes a byte of an expert in its file while an engine that has not read it is
// open: whoever wants that expert gets an error.
func TestChangedFile(t *testing.T) {
	dir := copyModel(t, fixtures.Qwen35MoEBF16)
	path := filepath.Join(dir, "packed_experts", "layer_01.bin")
	e := open(t, actors.Config{Model: dir, ExpertIO: actors.ExpertIODirect, ExpertMemory: 4 * pageSlot, VerifyReads: actors.VerifyOn})
	if err := flip(path); err != nil {
		t.Fatal(err)
	}
	s := sequence(t, e)
	var err error
	for i := int32(0); err == nil && i < 60; i++ {
		_, err = s.Eval(context.Background(), []int32{i})
	}
	var read *expertfile.ReadError
	if !errors.As(err, &read) || !is[*expertfile.SumError](err) || read.Path != path || read.Layer != 1 {
		t.Errorf("a changed file: %v, want a ReadError of %s with a SumError", err, path)
	}
}

// TestWithoutSums opens models whose checksums of records are missing or damaged.
func TestWithoutSums(t *testing.T) {
	for _, tc := range []struct {
		name   string
		damage func(path string) error
		log    string
	}{
		{"missing", os.Remove, "the model has no checksums"},
		{"damaged", flip, "its own checksum does not match"},
	} {
		dir := copyModel(t, fixtures.Qwen35MoEBF16)
		if err := tc.damage(filepath.Join(dir, "packed_experts", expertfile.SumsName)); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		cfg := actors.Config{Model: dir, Device: device(t, 2), ExpertIO: actors.ExpertIOBuffered, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		e := open(t, cfg)
		if e.Info().VerifyReads || !strings.Contains(log.String(), tc.log) {
			t.Errorf("%s: reads are verified: %v, the log says %q", tc.name, e.Info().VerifyReads, log.String())
		}
		sameTranscript(t, tc.name, sequence(t, e), wantTranscript(t))
		cfg.VerifyReads = actors.VerifyOn
		e, err := actors.Open(context.Background(), cfg)
		if err == nil {
			e.Close(context.Background())
		}
		if !is[*expertfile.SumsError](err) || errors.Is(err, fs.ErrNotExist) != (tc.name == "missing") {
			t.Errorf("%s, verification wanted: %v, want a SumsError", tc.name, err)
		}
	}
}
