package clienttest

import (
	"context"
	"os/exec"
	"testing"
	"time"
)

// The server answers as the compliance suite of Open Responses wants, but for what
// openresponses.mjs names: with the scripted agent in words, too, and with the engine in form.
func TestOpenResponses(t *testing.T) {
	program, folder := node(t)
	for name, url := range map[string]string{"agent": agent(t), "demo": demo(t)} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		out, err := exec.CommandContext(ctx, program, "openresponses.mjs", folder, url, key, name).CombinedOutput()
		cancel()
		if t.Logf("%s\n%s", name, out); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
