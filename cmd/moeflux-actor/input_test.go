package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func TestCancelReaderReadsAll(t *testing.T) {
	text := strings.Repeat("0123456789", 30_000)
	for name, r := range map[string]io.Reader{"whole": strings.NewReader(text), "halves": iotest.HalfReader(strings.NewReader(text)), "end with data": iotest.DataErrReader(strings.NewReader(text))} {
		got, err := io.ReadAll(cancelReader{t.Context(), r})
		if err != nil || string(got) != text {
			t.Errorf("%s: %d bytes, %v, want %d", name, len(got), err, len(text))
		}
	}
}

// A command that waits for stdin ends when it is interrupted.
func TestInterruptWhileReadingStdin(t *testing.T) {
	model, _ := loadE2E(t)
	for _, args := range [][]string{{"run", "--model", model, "-"}, {"tokenize", "--model", model}, {"eval", "--model", model, "--ids", "-"}} {
		r, w := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		var out, errs bytes.Buffer
		if code := run(ctx, args, r, &out, &errs, testEnv()); code != exitInterrupted || out.Len() != 0 {
			t.Errorf("%q: exit %d, stdout %q, stderr %q, want %d", args, code, out.String(), errs.String(), exitInterrupted)
		}
		w.Close() // lets the read that still waits end
	}
}
