package process

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestCancelReaderReadsAll(t *testing.T) {
	text := strings.Repeat("0123456789", 30_000)
	for name, r := range map[string]io.Reader{"whole": strings.NewReader(text), "halves": iotest.HalfReader(strings.NewReader(text)), "end with data": iotest.DataErrReader(strings.NewReader(text))} {
		got, err := io.ReadAll(NewCancelReader(t.Context(), r))
		if err != nil || string(got) != text {
			t.Errorf("%s: %d bytes, %v, want %d", name, len(got), err, len(text))
		}
	}
}
