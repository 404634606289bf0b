package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/process"
)

// startHost runs the command host until the test ends, and returns its address.
func startHost(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	said, stderr := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"host", "--addr", "127.0.0.1:0"}, args...), strings.NewReader(""), io.Discard, stderr, testEnv())
		stderr.Close()
	}()
	t.Cleanup(func() {
		cancel(process.ErrInterrupted)
		if code := <-ended; code != exitOK {
			t.Errorf("the host ended with %d", code)
		}
	})
	var all bytes.Buffer
	b := make([]byte, 1)
	for !strings.HasSuffix(all.String(), "\n") {
		if _, err := said.Read(b); err != nil {
			t.Fatalf("the host said %q", all.String())
		}
		all.Write(b)
	}
	go io.Copy(io.Discard, said)
	return regexp.MustCompile(`listening on (\S+)\n`).FindStringSubmatch(all.String())[1]
}

// TestHostCommand generates a text with and without two hosts, which a file names. A run of bench
// beside hosts is not compared with a forecast for this machine alone.
func TestHostCommand(t *testing.T) {
	dir := mustInspect(t).Dir
	hosts := writeFile(t, "hosts.txt", startHost(t, dir)+" # in memory\n\n"+startHost(t, dir, "--expert-memory", "200KiB", "--expert-io", "buffered")+"\n")
	args := []string{"run", "--model", dir, "-p", "package main", "-n", "400", "--temperature", "0", "--expert-io", "buffered", "--expert-memory", "200KiB"}
	want := mustCall(t, "", args...)
	got := mustCall(t, "", append(args, "--hosts", hosts)...)
	if got.stdout != want.stdout {
		t.Errorf("with hosts: %q, want %q", got.stdout, want.stdout)
	}
	if !regexp.MustCompile(`2 hosts computed [1-9]\d* expert uses; an ask takes`).MatchString(got.stderr) {
		t.Errorf("stderr %q", got.stderr)
	}
	bench := mustCall(t, "", "bench", "--model", dir, "--prompt-tokens", "4", "--gen-tokens", "4", "--repeat", "1", "--warmup", "1", "--expert-io", "buffered", "--expert-memory", "200KiB", "--hosts", hosts)
	if strings.Contains(bench.stdout, "forecast") || !strings.Contains(bench.stdout, "decode") {
		t.Errorf("bench with hosts says %s", bench.stdout)
	}
}

// TestHostCommandJoin gives commands one host of two that are in a group.
func TestHostCommandJoin(t *testing.T) {
	dir := mustInspect(t).Dir
	first := startHost(t, dir)
	second := startHost(t, dir, "--join", first)
	args := []string{"run", "--model", dir, "-p", "package main", "-n", "400", "--temperature", "0", "--expert-io", "buffered", "--expert-memory", "200KiB"}
	want := mustCall(t, "", args...)
	got := mustCall(t, "", append(args, "--hosts-join", second)...)
	if got.stdout != want.stdout {
		t.Errorf("with hosts: %q, want %q", got.stdout, want.stdout)
	}
	if !regexp.MustCompile(`2 hosts computed [1-9]\d* expert uses; an ask takes`).MatchString(got.stderr) {
		t.Errorf("stderr %q", got.stderr)
	}
	var i inspectResult
	o := mustCall(t, "", "inspect", dir, "--json", "--expert-io", "buffered", "--expert-memory", "200KiB", "--hosts-join", first)
	if err := json.Unmarshal([]byte(o.stdout), &i); err != nil || i.Hosts == nil || len(i.Hosts.All) != 2 || i.Hosts.All[0].Addr != first || i.Hosts.All[1].Addr != second || i.Hosts.All[1].Slots == 0 {
		t.Errorf("inspect says %+v, %v: %s", i.Hosts, err, o.stdout)
	}
}

func TestHostUsage(t *testing.T) {
	dir := mustInspect(t).Dir
	for _, args := range [][]string{
		{"host", dir, "--addr", "0.0.0.0:0"}, {"host", dir, "--addr", "nowhere"}, {"host", dir, "--activations", "f64"}, {"host"},
		{"run", "-p", "x", "--hosts", "10.0.0.2:8090"}, {"run", "-p", "x", "--hosts", "127.0.0.1:1", "--resident", "on"},
		{"run", "-p", "x", "--hosts", "127.0.0.1:1", "--host-patience", "-1s"},
		{"host", dir, "--join", "nowhere"}, {"host", dir, "--join", "10.0.0.2:8090"}, {"host", dir, "--addr", "0.0.0.0:0", "--insecure", "--join", "10.0.0.2:8090"},
		{"host", dir, "--addr", "10.0.0.2:8090", "--tls-cert", "x", "--tls-key", "x", "--tls-ca", "x", "--join", "10.0.0.3:8090"}, {"host", dir, "--advertise", "nowhere"},
		{"run", "-p", "x", "--hosts-join", "10.0.0.2:8090"}, {"run", "-p", "x", "--hosts-join", "127.0.0.1:1", "--resident", "on"},
	} {
		if o := call(t, "", args...); o.code != exitUsage {
			t.Errorf("%q: exit %d, stderr %q", args, o.code, o.stderr)
		}
	}
	hosts := writeFile(t, "hosts.txt", "127.0.0.1:1\n10.0.0.2:8090\n")
	for list, says := range map[string]string{"10.0.0.2": "write host:port, or name a file", hosts: hosts + ":2: 10.0.0.2:8090 is not an address of this machine alone", "127.0.0.1:1,127.0.0.1:1": "name each host once"} {
		if o := call(t, "", "run", "-p", "x", "--hosts", list); o.code != exitUsage || !strings.Contains(o.stderr, "--hosts") || !strings.Contains(o.stderr, says) {
			t.Errorf("--hosts %s: exit %d, stderr %q, want %q", list, o.code, o.stderr, says)
		}
	}
}
