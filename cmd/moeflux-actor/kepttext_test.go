package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/internal/stateinfo"
	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

// continued is what run --json prints, as far as these tests care.
type continued struct {
	Text       string  `json:"text"`
	PromptIDs  []int32 `json:"prompt_ids"`
	NewIDs     []int32 `json:"new_ids"`
	StopReason string  `json:"stop_reason"`
	Stats      struct {
		Reused int `json:"reused_tokens"`
	} `json:"stats"`
}

func continuedBy(t *testing.T, args ...string) continued {
	t.Helper()
	var c continued
	if err := json.Unmarshal([]byte(mustCall(t, "", args...).stdout), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// A text in parts, one process each, is the text in one go, and nothing is read twice.
func TestSessionText(t *testing.T) {
	dir := t.TempDir()
	run := func(session string, args ...string) continued {
		t.Helper()
		return continuedBy(t, append([]string{"run", "--session", session, "--session-dir", dir, "--json", "--temperature", "0"}, args...)...)
	}
	whole := continuedBy(t, "run", "--temperature", "0", "--json", "-p", "package main", "-n", "30")
	first := run("a", "-p", "package main", "-n", "10")
	second := run("a", "-n", "15")
	third := run("a", "-n", "5")
	if got := first.Text + second.Text + third.Text; got != whole.Text {
		t.Errorf("in parts %q, want %q", got, whole.Text)
	}
	if want := slices.Concat(whole.PromptIDs, whole.NewIDs)[:len(third.PromptIDs)]; !slices.Equal(third.PromptIDs, want) || third.Stats.Reused != len(third.PromptIDs)-1 {
		t.Errorf("the third part goes on from %v, %d of them reused; want %v, all but one", third.PromptIDs, third.Stats.Reused, want)
	}
	// With a prompt; and the same text under a name that is new goes on from what another one has
	// stored.
	fourth := run("a", "-p", "\n\nfunc main", "-n", "3")
	if fourth.Stats.Reused != len(whole.PromptIDs)+29 || len(fourth.PromptIDs) <= fourth.Stats.Reused {
		t.Errorf("%d of %d tokens reused", fourth.Stats.Reused, len(fourth.PromptIDs))
	}
	run("short", "-p", "package main", "-n", "1")
	other := run("other", "-p", "package main\n\nimport (", "-n", "4")
	if want := continuedBy(t, "run", "--temperature", "0", "--json", "-p", "package main\n\nimport (", "-n", "4"); other.Text != want.Text || other.Stats.Reused == 0 || !slices.Equal(other.PromptIDs, want.PromptIDs) {
		t.Errorf("%q with %d tokens reused, want %q", other.Text, other.Stats.Reused, want.Text)
	}
	o := mustCall(t, "", "state", "show", "--session-dir", dir, "--verify")
	if strings.Count(o.stdout, "checksum right\n") != 3 || !strings.Contains("\n"+o.stdout, "\nother ") {
		t.Errorf("sessions: %q", o.stdout)
	}
}

// Ctrl-C, or another signal, in the middle of a text saves what there is.
func TestSessionInterrupted(t *testing.T) {
	whole := continuedBy(t, "run", "--temperature", "0", "--json", "-p", "package main", "-n", "40")
	for name, want := range map[string]int{"Ctrl-C": exitInterrupted, "another signal": exitTerminated} {
		t.Run(name, func(t *testing.T) {
			other := want == exitTerminated
			dir := t.TempDir()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			e := testEnv()
			var out, errs strings.Builder
			stdout := writerFunc(func(p []byte) (int, error) {
				switch out.Write(p); {
				case out.Len() <= 20:
				case other:
					cancel(process.Signalled{Signal: syscall.SIGTERM})
				default:
					e.Interrupts.Deliver()
				}
				return len(p), nil
			})
			args := []string{"run", "--session", "a", "--session-dir", dir, "-p", "package main", "-n", "0", "--temperature", "0"}
			if code := run(ctx, args, strings.NewReader(""), stdout, &errs, e); code != want {
				t.Fatalf("exit %d, stderr %q", code, errs.String())
			}
			rest := continuedBy(t, "run", "--session", "a", "--session-dir", dir, "-n", "3", "--json", "--temperature", "0")
			got := out.String() + rest.Text
			if !strings.HasPrefix(whole.Text, got) && !strings.HasPrefix(got, whole.Text) || len(rest.PromptIDs) < 8 {
				t.Errorf("interrupted and continued %q, want the beginning of %q", got, whole.Text)
			}
		})
	}
}

// A conversation that goes on in another process gets the answers of one that never stopped, and
// what was said is not read again. The fixture's answers are not what encoding their text gives,
// and its state cannot be taken back: it goes on from the prompt before the answer.
func TestSessionConversation(t *testing.T) {
	fixture, ref := loadE2E(t)
	for _, c := range []struct {
		name, first string
		args        []string
		reuses      string
	}{
		{"demo", "hello", []string{"-n", "12", "--temperature", "0"}, "24"},
		{"fixture", ref.Messages[1].Content, []string{"--model", withTemplate(t, fixture, chatML), "-n", "24", "--activations", "f32"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			kept := append([]string{"--session", "s", "--session-dir", dir}, c.args...)
			both, parts := filepath.Join(dir, "1.json"), filepath.Join(dir, "2.json")
			talk(t, append([]string{"--system", "Be kind."}, c.args...), c.first, "and then", "more", "/save "+both)
			first := talk(t, append([]string{"--system", "Be kind."}, kept...), c.first, "/stats", "/quit")
			once := mustCall(t, "", append([]string{"run", "--chat", "-p", "and then"}, kept...)...)
			last := talk(t, kept, "more", "/stats", "/save "+parts)
			a, b := saved(t, both), saved(t, parts)
			if !slices.EqualFunc(a, b, chat.Message.Equal) {
				t.Errorf("in one go\n%+v\nwith restarts\n%+v", a, b)
			}
			if !strings.Contains(last.stderr, `session "s" goes on: 5 messages, `) {
				t.Errorf("stderr %q", last.stderr)
			}
			before := reusedFigure.FindStringSubmatch(first.stderr)
			for what, o := range map[string]outcome{"second": once, "third": last} {
				if f := reusedFigure.FindStringSubmatch(o.stderr); f == nil || f[2] == "" || len(f[2]) < len(before[1]) {
					t.Errorf("the %s answer: figures %q after a first prompt %q, want at least that reused", what, f, before)
				}
			}
		})
	}
}

func TestSessionRefused(t *testing.T) {
	fixture, _ := loadE2E(t)
	dir := t.TempDir()
	session := func(args ...string) []string { return append([]string{"run", "--session-dir", dir}, args...) }
	mustCall(t, "", session("--session", "text", "-p", "package main", "-n", "2")...)
	mustCall(t, "", session("--session", "talk", "--chat", "-p", "hello", "-n", "2")...)
	mustCall(t, "", session("--session", "cut", "-p", "package main", "-n", "2")...)
	mustCall(t, "", session("--session", "spoilt", "-p", "package main", "-n", "2")...)
	file := filepath.Join(dir, "text.snapshot")
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cut.snapshot"), old[:1000], 0o600); err != nil {
		t.Fatal(err)
	}
	spoilt := slices.Clone(old)
	spoilt[5000] ^= 1
	if err := os.WriteFile(filepath.Join(dir, "spoilt.snapshot"), spoilt, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{session("--session", "text", "--model", fixture), exitFailed, "with another model, "},
		{session("--session", "text", "--model", fixture), exitFailed, "remove " + file},
		{session("--session", "text", "--chat", "-p", "x"), exitUsage, "leave --chat out"},
		{session("--session", "talk", "-p", "x"), exitUsage, "continue it with --chat"},
		{session("--session", "cut"), exitFailed, "remove " + filepath.Join(dir, "cut.snapshot")},
		{session("--session", "spoilt"), exitFailed, "remove " + filepath.Join(dir, "spoilt.snapshot")},
		{session("--session", "text", "--ctx", "3"), exitFailed, "allow more with --ctx"},
		{session("--session", "text", "--session-limit", "1KiB", "-n", "2"), exitFailed, "allow more with --session-limit"},
		{session("--session", ""), exitUsage, "it is empty"},
		{session("--session", "a\nb"), exitUsage, "cannot be printed"},
		{session("-p", "x"), exitUsage, "--session-dir does nothing without --session"},
		{[]string{"run", "--session-limit", "1GiB", "-p", "x"}, exitUsage, "--session-limit does nothing without --session"},
		{session("--session", "text", "--session-limit", "50%"), exitUsage, "size on disk"},
		{session("--session", "new"), exitUsage, "no prompt"},
		{[]string{"run", "--session", "x", "--session-dir", file, "-p", "x"}, exitFailed, "choose another folder with --session-dir"},
	} {
		o := call(t, "", c.args...)
		if o.code != c.code || !strings.Contains(o.stderr, c.want) || strings.Count(o.stderr, process.Program+":") != 1 {
			t.Errorf("%q: exit %d, stderr %q; want exit %d and %q", c.args, o.code, o.stderr, c.code, c.want)
		}
	}
	if now, err := os.ReadFile(file); err != nil || !slices.Equal(now, old) {
		t.Errorf("the session has changed, %v", err)
	}
	o := call(t, "", "state", "show", "--session-dir", dir, "--verify")
	if o.code != exitFailed || strings.Count(o.stdout, "remove ") != 2 || !strings.Contains(o.stderr, "2 of the sessions") {
		t.Errorf("exit %d, %q, stderr %q; want the two that are damaged named", o.code, o.stdout, o.stderr)
	}
}

// An answer that cannot be kept is shown, and the conversation goes on.
func TestSessionCannotBeSaved(t *testing.T) {
	o := talk(t, []string{"-n", "3", "--session", "s", "--session-dir", t.TempDir(), "--session-limit", "100KB"}, "hello", "/quit")
	if o.code != exitOK || o.stdout == "" || !strings.Contains(o.stderr, `error: session "s" is not saved`) {
		t.Errorf("exit %d, stdout %q, stderr %q", o.code, o.stdout, o.stderr)
	}
}

// state save, load and show.
func TestState(t *testing.T) {
	dir := t.TempDir()
	sealed, plain, padded := filepath.Join(dir, "sealed"), filepath.Join(dir, "plain"), filepath.Join(dir, "padded")
	whole := continuedBy(t, "run", "--temperature", "0", "--json", "-p", "package main\n\nimport", "-n", "12")
	var result stateSaved
	if err := json.Unmarshal([]byte(mustCall(t, "", "state", "save", sealed, "-p", "package main\n\n", "--json").stdout), &result); err != nil {
		t.Fatal(err)
	}
	mustCall(t, "package main\n\n", "state", "save", plain, "-", "--plain")
	info, err := os.Stat(sealed)
	if err != nil || result.File != sealed || result.Bytes != info.Size() || result.Positions == 0 {
		t.Errorf("%+v, %v", result, err)
	}
	for _, version := range []string{"1", "2"} {
		other := filepath.Join(dir, "version"+version)
		mustCall(t, "", "state", "save", other, "-p", "package main\n\n", "--version", version)
		if raw, err := os.ReadFile(other); err != nil || raw[4] != version[0]-'0' {
			t.Errorf("version %s: % x, %v", version, raw[:8], err)
		}
		mustCall(t, "", "state", "load", other)
	}
	if o := call(t, "", "state", "save", filepath.Join(dir, "x"), "-p", "x", "--version", "3"); o.code != exitUsage || !strings.Contains(o.stderr, "--version 3 is unknown; available: 1, 2") {
		t.Errorf("version 3: exit %d, %s", o.code, o.stderr)
	}
	raw, err := os.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(padded, append(raw, 1, 2, 3), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file, accept string
		reused       int
	}{{sealed, "sealed", result.Positions}, {sealed, "plain", result.Positions}, {plain, "plain", 0}, {padded, "padded", 0}} {
		got := continuedBy(t, "state", "load", c.file, "--accept", c.accept, "-p", "import", "-n", "12", "--json", "--temperature", "0")
		if got.Text != whole.Text || got.Stats.Reused != c.reused {
			t.Errorf("%s as %s goes on %q, %d tokens reused; want %q, %d", c.file, c.accept, got.Text, got.Stats.Reused, whole.Text, c.reused)
		}
	}
	fixture, _ := loadE2E(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{plain}, "see --accept"},
		{[]string{padded, "--accept", "plain"}, "see --accept"},
		{[]string{sealed, "--model", fixture}, "the state of a model of another shape"},
		{[]string{sealed, "--ctx", "2"}, "--ctx"},
		{[]string{filepath.Join(dir, "none")}, "no such file"},
		{[]string{dir}, "not a regular file"},
	} {
		if o := call(t, "", append([]string{"state", "load"}, c.args...)...); o.code != exitFailed || !strings.Contains(o.stderr, c.want) {
			t.Errorf("%q: exit %d, stderr %q, want %q", c.args, o.code, o.stderr, c.want)
		}
	}
	if o := mustCall(t, "", "state", "load", sealed); !strings.Contains(o.stderr, "is a state of this model") || o.stdout != "" {
		t.Errorf("%+v", o)
	}
	testStateShow(t, sealed, plain)
}

func testStateShow(t *testing.T, sealed, plain string) {
	var shown stateinfo.Info
	if err := json.Unmarshal([]byte(mustCall(t, "", "state", "show", sealed, "--verify", "--json").stdout), &shown); err != nil {
		t.Fatal(err)
	}
	if !shown.Sealed || !shown.Verified || shown.Tokens != shown.Positions || shown.Layers != shown.Linear+shown.Full+shown.Latent || len(shown.Fingerprint) != 64 {
		t.Errorf("%+v", shown)
	}
	if o := call(t, "", "state", "show", plain, "--verify"); o.code != exitFailed || !strings.Contains(o.stdout, "without a seal") || !strings.Contains(o.stderr, "cannot be verified") {
		t.Errorf("%+v", o)
	}
	raw, err := os.ReadFile(sealed)
	if err != nil {
		t.Fatal(err)
	}
	raw[100] ^= 1
	if err := os.WriteFile(sealed, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if o := call(t, "", "state", "show", sealed, "--verify"); o.code != exitFailed || !strings.Contains(o.stderr, "damaged") {
		t.Errorf("%+v", o)
	}
	if o := mustCall(t, "", "state", "show", sealed); !strings.Contains(o.stdout, "sealed") {
		t.Errorf("without --verify: %+v", o)
	}
	if o := call(t, "", "state", "show", "--session-dir", filepath.Join(t.TempDir(), "none")); o.code != exitFailed || !strings.Contains(o.stderr, "run --session NAME") {
		t.Errorf("%+v", o)
	}
}

// startSession starts the program on a session, in a process of its own, and returns once it has
// written text.
func startSession(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], slices.Concat([]string{"run", "--cache-dir", filepath.Join(sharedCache, process.Program)}, endless, args)...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = in // full before the text is: the process then waits
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	t.Cleanup(func() {
		out.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatalf("the process wrote no text: %v", err)
	}
	return cmd
}

// Two runs cannot go on with one session at the same time: the later save would undo the earlier.
func TestSessionInUse(t *testing.T) {
	dir := t.TempDir()
	flags := []string{"--session", "a", "--session-dir", dir}
	mustCall(t, "", append([]string{"run", "-p", "package main", "-n", "4", "--temperature", "0"}, flags...)...)
	before, err := os.ReadFile(filepath.Join(dir, "a.snapshot"))
	if err != nil {
		t.Fatal(err)
	}
	first := startSession(t, append([]string{"-p", "x"}, flags...)...)
	for _, args := range [][]string{{"run", "-p", "y", "-n", "2"}, {"run", "--chat", "-p", "y", "-n", "2"}} {
		o := call(t, "", append(args, flags...)...)
		if o.code != exitFailed || !strings.Contains(o.stderr, `session "a" is in use by another run; wait until it ends, or choose another name`) {
			t.Errorf("%v: exit %d, stderr %q", args, o.code, o.stderr)
		}
		checkErrorLine(t, o)
	}
	if after, err := os.ReadFile(filepath.Join(dir, "a.snapshot")); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the session has changed, %v", err)
	}
	mustCall(t, "", "run", "-p", "y", "-n", "2", "--session", "b", "--session-dir", dir) // another name
	if o := mustCall(t, "", "state", "show", "--session-dir", dir); strings.Count(o.stdout, "\n") != 2 {
		t.Errorf("sessions: %q, want two", o.stdout)
	}
	// Who is killed leaves no lock behind.
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	mustCall(t, "", append([]string{"run", "-p", "y", "-n", "2"}, flags...)...)
}

// The version of a state's format is the oldest that will do, or the one asked for.
func TestStateVersion(t *testing.T) {
	latent := textModel(t, fixtures.DeepseekV3Q4)
	for _, c := range []struct {
		model, version string
		want           int
	}{{"", "", 1}, {"", "1", 1}, {"", "2", 2}, {latent, "", 2}, {latent, "2", 2}} {
		file := filepath.Join(t.TempDir(), "state")
		args := []string{"state", "save", file, "-p", "hello"}
		if c.model != "" {
			args = append(args, "--model", c.model)
		}
		if c.version != "" {
			args = append(args, "--version", c.version)
		}
		mustCall(t, "", args...)
		var shown stateinfo.Info
		if err := json.Unmarshal([]byte(mustCall(t, "", "state", "show", file, "--verify", "--json").stdout), &shown); err != nil || shown.Version != c.want || !shown.Verified {
			t.Errorf("%q: %+v, %v; want version %d", args, shown, err, c.want)
		}
		load := []string{"state", "load", file}
		if c.model != "" {
			load = append(load, "--model", c.model)
		}
		mustCall(t, "", load...)
	}
	o := call(t, "", "state", "save", filepath.Join(t.TempDir(), "state"), "-p", "hello", "--model", latent, "--version", "1")
	if o.code != exitFailed || !strings.Contains(o.stderr, "version 1 of the format does not know latent attention, which this model has; leave --version out") {
		t.Errorf("version 1 of latent attention: exit %d, %q", o.code, o.stderr)
	}
	for _, version := range []string{"3", "-1"} {
		if o := call(t, "", "state", "save", "x", "-p", "hello", "--version="+version); o.code != exitUsage || !strings.Contains(o.stderr, "is unknown; available: 1, 2") {
			t.Errorf("version %s: exit %d, %q", version, o.code, o.stderr)
		}
	}
}

// textModel returns a fixture model with the tokenizer of another one.
func textModel(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	if err := os.CopyFS(dir, os.DirFS(fixtures.Packed(t, name, 0))); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"tokenizer.json", "tokenizer_config.json"} {
		raw, err := os.ReadFile(filepath.Join(fixtures.Dir(t, fixtures.Qwen35MoEQ4), file))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A text that --stop ended goes on from what was shown: the string is not part of it.
func TestSessionStopped(t *testing.T) {
	whole := continuedBy(t, "run", "--temperature", "0", "--json", "-p", "package main", "-n", "30").Text
	stop := whole[9:13]
	shown, _, _ := strings.Cut(whole, stop)
	dir := t.TempDir()
	run := func(args ...string) continued {
		return continuedBy(t, append([]string{"run", "--session", "a", "--session-dir", dir, "--json", "--temperature", "0"}, args...)...)
	}
	first := run("-p", "package main", "-n", "30", "--stop", stop)
	if first.Text != shown || first.StopReason != "stop" {
		t.Fatalf("%q for %q, want %q before %q", first.Text, first.StopReason, shown, stop)
	}
	second := run("-p", "// and", "-n", "4")
	ids, err := json.Marshal(second.PromptIDs)
	if err != nil {
		t.Fatal(err)
	}
	var decoded struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal([]byte(mustCall(t, string(ids)+"\n", "tokenize", "--decode", "--skip-special").stdout), &decoded); err != nil {
		t.Fatal(err)
	}
	if want := "package main" + shown + "// and"; decoded.Text != want || second.Stats.Reused == 0 {
		t.Errorf("goes on from %q with %d tokens reused, want %q", decoded.Text, second.Stats.Reused, want)
	}
}
