package main

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// records writes a file of records of one token, whose device computes for 3 of 4 ms.
func records(t *testing.T) string {
	t.Helper()
	rec := &record.Recording{
		Meta:       record.Meta{Stages: []string{"sequencer", "router", "expert-io", "dispatch", "combine"}, Messages: []string{"other", "TicketDone", "LogitsReady", "ReadLogits"}, Model: record.Model{Name: "made", Layers: 1, LayerKinds: []string{"full_attention"}}},
		Steps:      []record.Step{{Step: 1, BeganNS: 1e6, Rows: 1, Decode: 1}},
		StepsEnded: []record.StepEnded{{Step: 1, EndedNS: 5e6}},
		Segments:   []record.Segment{{Step: 1, Request: 1, Seq: 1, Rows: 1}},
		Requests:   []record.Request{{Request: 1, Seq: 1, ArrivedNS: 1e6, BeganNS: 1e6, EndedNS: 5e6, Rows: 1}},
		Handled: []record.Handled{
			{Step: 1, Stage: 3, Message: 3, SentNS: 1e6, BeganNS: 1e6, EndedNS: 15e5}, {Step: 1, Stage: 3, Message: 1, SentNS: 45e5, BeganNS: 45e5, EndedNS: 48e5},
			{Step: 1, Stage: 0, Message: 2, SentNS: 48e5, BeganNS: 5e6, EndedNS: 51e5},
		},
		Submissions: []record.Submission{{Step: 1, Part: record.Head, Wave: -1, SubmittedNS: 15e5, BeganNS: 15e5, EndedNS: 45e5}},
	}
	path := filepath.Join(t.TempDir(), "made.records")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := rec.Write(f); err != nil {
		t.Fatal(err)
	}
	return path
}

// unzipped returns what a compressed file holds.
func unzipped(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestTraceCommands(t *testing.T) {
	path := records(t)
	var why struct {
		Tokens []struct {
			WallNS int64 `json:"wall_ns"`
			Causes []struct {
				Cause string `json:"cause"`
				NS    int64  `json:"ns"`
			} `json:"causes"`
		} `json:"tokens"`
	}
	if err := json.Unmarshal([]byte(mustCall(t, "", "trace", "why", path, "--json").stdout), &why); err != nil {
		t.Fatal(err)
	}
	if len(why.Tokens) != 1 || why.Tokens[0].WallNS != 4e6 || len(why.Tokens[0].Causes) == 0 || why.Tokens[0].Causes[0].Cause != "device" || why.Tokens[0].Causes[0].NS != 3e6 {
		t.Errorf("why --json says %+v", why)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"why", path}, "75.0 %   3.00 ms  device"},
		{[]string{"why", path, "--token", "1"}, "Token 1 (sequence 1, position 0) took 4.00 ms"},
		{[]string{"show", path}, "full_attention"},
		{[]string{"show", path, "--json"}, `"median_ns":4000000`},
	} {
		if o := mustCall(t, "", append([]string{"trace"}, c.args...)...); !strings.Contains(o.stdout, c.want) {
			t.Errorf("%v prints\n%s, want %q", c.args, o.stdout, c.want)
		}
	}
	if o := mustCall(t, "", "trace", "diff", path, path); !strings.Contains(o.stdout, "1 decoded token, in pairs: 4.00 ms → 4.00 ms in the middle, which is within the spread") {
		t.Errorf("diff prints\n%s", o.stdout)
	}
	timeline := filepath.Join(t.TempDir(), "made.json")
	mustCall(t, "", "trace", "export", path, "--perfetto", timeline)
	if raw, err := os.ReadFile(timeline); err != nil || !json.Valid(raw) || !strings.Contains(string(raw), `"traceEvents"`) {
		t.Errorf("export writes %q, %v", raw, err)
	}
	mustCall(t, "", "trace", "export", path, "--token", "1", "--perfetto", timeline+".gz")
	if raw := unzipped(t, timeline+".gz"); !json.Valid(raw) || !strings.Contains(string(raw), `"token 1"`) {
		t.Errorf("export writes %q", raw)
	}
	for _, args := range [][]string{{"show", path}, {"export", path, "--token", "1"}} {
		picture := filepath.Join(t.TempDir(), "made.svg")
		mustCall(t, "", append(append([]string{"trace"}, args...), "--svg", picture)...)
		if raw, err := os.ReadFile(picture); err != nil || !strings.HasPrefix(string(raw), "<svg") || !strings.Contains(string(raw), "oken 1, 4 ms") {
			t.Errorf("%v writes %q, %v", args, raw, err)
		}
	}
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code int
		args []string
		want string
	}{
		{exitFailed, []string{"why", path, "--token", "2"}, "there is no token 2: the records have tokens 1 to 1"},
		{exitUsage, []string{"why", path, "--token", "-1"}, "tokens are numbered from 1"},
		{exitFailed, []string{"show", other}, "is not a file of records"},
		{exitFailed, []string{"show", filepath.Join(other, "x")}, "not a directory"},
		{exitUsage, []string{"why"}, "FILE"},
		{exitFailed, []string{"whatif", path, "--ring-depth", "3"}, "does not say how the engine was set up"},
		{exitUsage, []string{"whatif", path, "--ring-depth", "100"}, "ring depth is 100"},
		{exitUsage, []string{"whatif", path, "--disk", "5GB"}, "not a rate like 5GB/s"},
		{exitUsage, []string{"whatif", path, "--policy", "fifo"}, "lru"},
		{exitUsage, []string{"export", path}, "--perfetto OUT, --svg OUT or --otlp"},
		{exitFailed, []string{"export", path, "--svg", timeline, "--token", "2"}, "made.records: there is no token 2"},
		{exitFailed, []string{"show", path, "--svg", filepath.Join(other, "x")}, "x cannot be written"},
		{exitFailed, []string{"export", path, "--perfetto", timeline, "--token", "2"}, "made.records: there is no token 2: the records have tokens 1 to 1"},
		{exitUsage, []string{"export", path, "--perfetto", timeline, "--token", "-1"}, "tokens are numbered from 1"},
		{exitFailed, []string{"export", path, "--perfetto", filepath.Join(other, "x")}, "cannot be written"},
		{exitFailed, []string{"diff", path, other}, "is not a file of records"},
	} {
		if o := call(t, "", append([]string{"trace"}, c.args...)...); o.code != c.code || !strings.Contains(o.stderr, c.want) {
			t.Errorf("%v: exit %d, %s; want %d and %q", c.args, o.code, o.stderr, c.code, c.want)
		}
	}
}
