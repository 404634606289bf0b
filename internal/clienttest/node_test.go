package clienttest

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/internal/scripted"
	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// Folder is the environment variable that names the folder in which package.json is installed.
const Folder = "MOEFLUX_CLIENTS"

// node returns the paths of node and of the folder of the JavaScript clients.
func node(t *testing.T) (program, folder string) {
	t.Helper()
	program = testenv.Find(t, "nodejs npm", "node")
	folder = os.Getenv(Folder)
	if folder == "" {
		testenv.Missing(t, Folder+" names no folder: copy package.json and package-lock.json there, and run npm ci", "npm")
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	return program, folder
}

// The JavaScript clients are stricter than the Go ones.
func TestNode(t *testing.T) {
	program, folder := node(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	m := (&scripted.Agent{Pause: 100 * time.Microsecond}).Model()
	out, err := exec.CommandContext(ctx, program, "clients.mjs", folder, serve(t, m), key).CombinedOutput()
	if t.Logf("%s", out); err != nil {
		t.Error(err)
	}
	left(t, m)
}

// report is what llmprobe says of a server.
type report struct {
	Conformance struct {
		Passed, Total int
		BySurface     []struct {
			Surface       string
			Passed, Total int
		}
		Results []struct {
			Name     string
			Failures []struct{ ID, Label, Severity, Message string }
		}
	}
}

// Each MUST of llmprobe holds. What it cannot judge does not count as held: each API has a number
// of checks that it must have made.
func TestProbe(t *testing.T) {
	program, folder := node(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	probe := filepath.Join(folder, "node_modules/llmprobe/bin/dist/llmprobe.mjs")
	c := exec.CommandContext(ctx, program, probe, agent(t)+"/v1", "--full", "--no-save", "--no-bench", "--json", "--api-key", key)
	var errs strings.Builder
	c.Stderr = &errs
	out, _ := c.Output() // a check that fails, whatever its severity, makes the status 1
	var r report
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v: %s%s", err, out, errs.String())
	}
	for _, result := range r.Conformance.Results {
		for _, f := range result.Failures {
			if f.Severity == "MUST" {
				t.Errorf("%s: %s (%s): %s", result.Name, f.Label, f.ID, f.Message)
			} else {
				t.Logf("%s, %s: %s: %s", f.Severity, result.Name, f.Label, f.Message)
			}
		}
	}
	made := make(map[string]int)
	for _, s := range r.Conformance.BySurface {
		made[s.Surface] = s.Total
	}
	t.Logf("%d of %d: %v", r.Conformance.Passed, r.Conformance.Total, made)
	for surface, least := range map[string]int{"models": 4, "chat": 60, "responses": 60, "messages": 60, "count-tokens": 3, "completions": 3} {
		if made[surface] < least {
			t.Errorf("%d checks of %s were made; %d are", made[surface], surface, least)
		}
	}
}
