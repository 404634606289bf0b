package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"go.uber.org/goleak"

	"github.com/moeflux/moeflux-actor/internal/converse"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/process"
)

// testEnv is the surroundings of a test: no terminals, and a cache folder that all tests share.
func testEnv() process.Env {
	e := process.SystemEnv(time.Now())
	e.Terminal = func(any) bool { return false }
	e.CacheDir = func() (string, error) { return sharedCache, nil }
	e.StateDir = func() (string, error) { return filepath.Join(sharedCache, "state"), nil }
	e.Interrupts = &process.Interrupts{}
	e.Seed = func() uint64 { return 42 }
	e.FreeMemory = func() (int64, error) { return 512 << 20, nil } // its bandwidth is measured by a small array
	e.Dumb, e.NoColour, e.Device.Kernels = false, false, ""
	e.Device.CUDA.Driver = noDriver // tests run alike on machines with and without a GPU
	e.Editor = func() (converse.LineReader, error) {
		return nil, errors.New("this test has no terminal to edit lines on")
	}
	return e
}

// noDriver is a driver of GPUs that is nowhere.
const noDriver = "/no/such/folder/libcuda.so.1"

// asProgram in the environment makes the test binary the program itself.
const asProgram = "MOEFLUX_ACTOR_TEST_AS_PROGRAM"

// sharedCache keeps the demo model for the tests of one run; TestMain removes it, and fails if a
// command leaves a goroutine behind.
var sharedCache string

func TestMain(m *testing.M) {
	switch os.Getenv(asProgram) {
	case "":
	case hungProgram:
		os.Exit(runProcess(hungEnv()))
	default:
		main()
	}
	dir, err := os.MkdirTemp("", "moeflux-actor-test-")
	if err != nil {
		panic(err)
	}
	sharedCache = dir
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// outcome is what a call of the program left.
type outcome struct {
	code           int
	stdout, stderr string
}

func call(t *testing.T, stdin string, args ...string) outcome {
	t.Helper()
	return callWith(t.Context(), testEnv(), stdin, args...)
}

func callWith(ctx context.Context, e process.Env, stdin string, args ...string) outcome {
	var out, errs bytes.Buffer
	code := run(ctx, args, strings.NewReader(stdin), &out, &errs, e)
	return outcome{code, out.String(), errs.String()}
}

// mustCall fails the test unless the call succeeds.
func mustCall(t *testing.T, stdin string, args ...string) outcome {
	t.Helper()
	o := call(t, stdin, args...)
	if o.code != exitOK {
		t.Fatalf("%q: exit %d, stderr %q", args, o.code, o.stderr)
	}
	return o
}

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBadUsage(t *testing.T) {
	ids := writeFile(t, "ids.json", "[1,2,3]")
	for _, c := range []struct {
		name string
		args []string
		want string // in the message
	}{
		{"nothing", nil, "no command given; commands: run, serve, host, certs, convert"},
		{"unknown command", []string{"fly"}, `unknown command "fly"; commands: run, serve, host, certs, convert, pull, inspect, logits, dump, eval, tokenize`},
		{"a command that does not exist yet", []string{"train"}, `unknown command "train"; commands:`},
		{"help of an unknown command", []string{"help", "fly"}, `unknown command "fly"`},
		{"flag before the command", []string{"--json", "run"}, `unknown command "--json"`},
		{"unknown flag", []string{"run", "--chant"}, "unknown flag --chant"},
		{"not a number", []string{"run", "-p", "x", "-n", "many"}, "--max-tokens"},
		{"prompt that is not UTF-8", []string{"run", "-p", "a\xffb"}, `-p "a\xffb" is not UTF-8 text`},
		{"message that is not UTF-8", []string{"run", "--chat", "-p", "a\xffb"}, `-p "a\xffb" is not UTF-8 text`},
		{"text of a state that is not UTF-8", []string{"state", "save", "x", "-p", "a\xffb"}, `-p "a\xffb" is not UTF-8 text`},
		{"system message that is not UTF-8", []string{"run", "--chat", "-p", "x", "--system", "\xff"}, `--system "\xff" is not UTF-8 text`},
		{"stop string that is not UTF-8", []string{"run", "-p", "x", "--stop", "\xff"}, `--stop "\xff" is not UTF-8 text`},
		{"template argument that is not UTF-8", []string{"run", "--chat", "-p", "x", "--template-arg", "a=\xff"}, "is not UTF-8 text"},
		{"grid value", []string{"bench", "--sweep", "--grid", "ring-depth=a"}, "--grid ring-depth=a: must be a whole number, 1 or more"},
		{"cache folder that is a file", []string{"run", "-p", "x", "--cache-dir", ids}, "--cache-dir " + ids + " is not a folder"},
		{"profile that is a folder", []string{"run", "-p", "x", "--profile", filepath.Dir(ids)}, "is a folder; name a file"},
		{"a text flag without its value", []string{"run", "-p", "x", "--grammar"}, "--grammar: expected a value, but nothing follows"},
		{"no prompt after -p", []string{"run", "-p"}, "--prompt: expected a value, but nothing follows"},
		{"a number without its value", []string{"run", "-p", "x", "--top-p"}, "--top-p: expected a float but nothing follows"},
		{"a time without its value", []string{"run", "-p", "x", "--read-timeout"}, "--read-timeout: expected duration but nothing follows"},
		{"a size without its value", []string{"run", "-p", "x", "--expert-memory"}, "--expert-memory"},
		{"huge count", []string{"run", "-p", "x", "-n", "99999999999999999999"}, "--max-tokens: expected a valid 64 bit int"},
		{"negative size", []string{"run", "-p", "x", "--expert-memory", "-5"}, `--expert-memory: "-5"`},
		{"negative count", []string{"run", "-p", "x", "-n", "-1"}, "-n -1"},
		{"argument in place of -p", []string{"run", "hello"}, `unexpected argument "hello"; if it is the prompt, give it with -p`},
		{"two prompts", []string{"run", "-p", "x", "-"}, "the prompt is given 2 times"},
		{"three prompts", []string{"run", "-p", "x", "-f", "y", "-"}, "the prompt is given 3 times"},
		{"nothing on stdin", []string{"run"}, "no prompt, and stdin is empty; give it with -p TEXT, -f FILE, or - for stdin"},
		{"empty stop string", []string{"run", "-p", "x", "--stop", ""}, "--stop is empty"},
		{"temperature", []string{"run", "-p", "x", "--temperature", "-1"}, "--temperature is -1, but must be 0 or more"},
		{"presence penalty", []string{"run", "-p", "x", "--presence-penalty", "-3"}, "--presence-penalty is -3"},
		{"frequency penalty", []string{"run", "-p", "x", "--frequency-penalty", "3"}, "--frequency-penalty is 3"},
		{"bias without a value", []string{"run", "-p", "x", "--logit-bias", "5"}, `--logit-bias "5": give a token id and a value`},
		{"bias without an id", []string{"run", "-p", "x", "--logit-bias", "the=5"}, `--logit-bias "the=5"`},
		{"bias beyond the range", []string{"run", "-p", "x", "--logit-bias", "5=-101"}, "--logit-bias is -101 for token 5"},
		{"bias of a negative id", []string{"run", "-p", "x", "--logit-bias=-5=1"}, "--logit-bias names token -5"},
		{"bias twice", []string{"run", "-p", "x", "--logit-bias", "5=1", "--logit-bias", "5=2"}, "names token 5 twice"},
		{"log-probabilities without JSON", []string{"run", "-p", "x", "--logprobs", "2"}, "--logprobs does nothing without --json"},
		{"negative log-probabilities", []string{"run", "-p", "x", "--json", "--logprobs", "-1"}, "--logprobs -1"},
		{"system message without chat", []string{"run", "-p", "x", "--system", "y"}, "--system does nothing without --chat"},
		{"template argument without chat", []string{"run", "-p", "x", "--template-arg", "a=1"}, "--template-arg does nothing without --chat"},
		{"template argument without a value", []string{"run", "--chat", "-p", "x", "--template-arg", "a"}, `--template-arg "a" is not NAME=VALUE`},
		{"two messages", []string{"run", "--chat", "-p", "x", "-"}, "the prompt is given 2 times"},
		{"chat-template two sources", []string{"chat-template", "--model", "a", "--template", "b"}, "use one"},
		{"top-p", []string{"run", "-p", "x", "--top-p", "1.5"}, "--top-p is 1.5"},
		{"seed", []string{"run", "-p", "x", "--seed", "-1"}, "--seed"},
		{"unknown device", []string{"run", "-p", "x", "--device", "abacus"}, "--device abacus is unknown; available: auto, host, cuda, metal, emu"},
		{"unknown activations", []string{"eval", "--ids", ids, "--activations", "int4"}, "--activations int4 is unknown; available: int8, f32"},
		{"unknown keys and values", []string{"eval", "--ids", ids, "--kv", "int4"}, "--kv int4 is unknown; available: f32, int8"},
		{"unknown expert I/O", []string{"inspect", "--expert-io", "tape"}, "--expert-io tape is unknown; available: auto, mmap, loaded, direct, buffered"},
		{"trace to nowhere", []string{"run", "-p", "x", "--trace", "timeline=t.json"}, `--trace: traces cannot go to "timeline=t.json"; available: off, stdout, stderr, file=FILE, otlp, otlp=URL`},
		{"trace to no file", []string{"run", "-p", "x", "--trace", "file="}, `--trace: traces cannot go to "file="`},
		{"trace to no address", []string{"run", "-p", "x", "--trace", "otlp=localhost:4317"}, `--trace: the collector's address "localhost:4317" must be http://HOST:PORT`},
		{"trace sample", []string{"run", "-p", "x", "--trace-sample", "2"}, "--trace-sample 2"},
		{"prefetch", []string{"run", "-p", "x", "--prefetch", "guess"}, "--prefetch guess is unknown; available: off, last-token, next-gate, both"},
		{"log level", []string{"run", "-p", "x", "--log-level", "loud"}, "--log-level loud is unknown"},
		{"log format", []string{"run", "-p", "x", "--log-format", "xml"}, "--log-format xml is unknown"},
		{"size", []string{"run", "-p", "x", "--expert-memory", "8G"}, `not a size like 8GiB`},
		{"read timeout", []string{"run", "-p", "x", "--read-timeout=-1s"}, "--read-timeout -1s: must be more than 0"},
		{"threads", []string{"run", "-p", "x", "--threads", "-2"}, "--threads -2"},
		{"convert without arguments", []string{"convert"}, "SRC"},
		{"convert without destination", []string{"convert", "a"}, "DST"},
		{"convert with one too many", []string{"convert", "a", "b", "c"}, "unexpected argument c"},
		{"convert to three bits", []string{"convert", "a", "b", "--bits", "3"}, "--bits 3"},
		{"checksums of a GGUF file", []string{"inspect", ggufFile, "--verify"}, "is a GGUF file, which has no checksums"},
		{"inspect of two directories", []string{"inspect", "a", "--model", "b"}, "give one"},
		{"logits without ids", []string{"logits", "--out", "x"}, "--ids"},
		{"logits without out", []string{"logits", "--ids", ids}, "--out"},
		{"logits negative decode", []string{"logits", "--ids", ids, "--out", "x", "--decode", "-1"}, "--decode -1"},
		{"dump without ids", []string{"dump", "--out", "x"}, "--ids"},
		{"dump to compare one file", []string{"dump", "--compare", "a"}, "two files"},
		{"dump of files", []string{"dump", "a", "b"}, "unexpected a"},
		{"dump tolerance", []string{"dump", "--compare", "a", "b", "--tolerance", "-1"}, "--tolerance -1"},
		{"eval without ids", []string{"eval"}, "--ids"},
		{"eval window", []string{"eval", "--ids", ids, "--window", "0"}, "--window 0"},
		{"tokenize two sources", []string{"tokenize", "--model", "a", "--tokenizer", "b"}, "use one"},
		{"tokenize skip-special", []string{"tokenize", "--skip-special"}, "without --decode"},
		{"tokenize add-special", []string{"tokenize", "--decode", "--add-special"}, "with --decode"},
		{"version with an argument", []string{"version", "x"}, "unexpected argument x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := call(t, "", c.args...)
			if o.code != exitUsage || !strings.Contains(o.stderr, c.want) {
				t.Errorf("%q: exit %d, stderr %q; want %d and %q", c.args, o.code, o.stderr, exitUsage, c.want)
			}
			checkErrorLine(t, o)
		})
	}
}

// checkErrorLine wants one line on stderr, with the program's name, and nothing on stdout.
func checkErrorLine(t *testing.T, o outcome) {
	t.Helper()
	if !strings.HasPrefix(o.stderr, "moeflux-actor: ") || strings.Count(o.stderr, "\n") != 1 || !strings.HasSuffix(o.stderr, "\n") || o.stdout != "" {
		t.Errorf("stderr %q, stdout %q, want one line \"moeflux-actor: …\" on stderr alone", o.stderr, o.stdout)
	}
}

func TestFailures(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	empty, file := t.TempDir(), writeFile(t, "ids.json", `{"a": [1,2]}`)
	checkpoint := fixtures.Dir(t, fixtures.Qwen3MoEQ4)
	list, one := writeFile(t, "list.json", "[1,2,3]"), writeFile(t, "one.json", "[1]")
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"no such model", []string{"run", "-p", "x", "--model", missing}, "there is no model directory " + missing},
		{"a file as model", []string{"run", "-p", "x", "--model", file}, "is a file, neither a GGUF file nor a packed model directory"},
		{"a GGUF file as model", []string{"run", "-p", "x", "--model", ggufFile}, `"qwen3moe.attention.layer_norm_rms_epsilon": the key is missing`},
		{"a GGUF file to convert", []string{"convert", ggufFile, filepath.Join(empty, "dst")}, `"qwen3moe.attention.layer_norm_rms_epsilon": the key is missing`},
		{"inspect of a GGUF file in another order", []string{"inspect", bigEndian}, "big-endian order"},
		{"an empty directory as model", []string{"run", "-p", "x", "--model", empty}, empty},
		{"a checkpoint as model", []string{"run", "-p", "x", "--model", checkpoint}, "if it is a checkpoint, pack it with moeflux-actor convert " + checkpoint},
		{"inspect of a checkpoint", []string{"inspect", checkpoint}, "has no model_weights.json; if it is a checkpoint"},
		{"a folder as prompt", []string{"run", "-f", empty}, "is a directory"},
		{"a folder as ids", []string{"eval", "--ids", empty}, "the ids cannot be read: read " + empty},
		{"a folder that does not exist, for logits", []string{"logits", "--ids", one, "--out", filepath.Join(missing, "out")}, "out cannot be written: stat " + missing},
		{"a folder that does not exist, for a state", []string{"state", "save", filepath.Join(missing, "s"), "-p", "x"}, "cannot be written: stat " + missing},
		{"a folder as a state", []string{"state", "save", empty, "-p", "x"}, "it is not a regular file"},
		{"a device as output", []string{"logits", "--ids", one, "--out", "/dev/null"}, "/dev/null cannot be written: it is not a regular file"},
		{"inspect of an empty directory", []string{"inspect", empty}, "make one with moeflux-actor convert"},
		{"no such prompt file", []string{"run", "-f", missing}, missing},
		{"prompt that is no text", []string{"run", "-f", writeFile(t, "bin", "\xff\xfe")}, "not UTF-8"},
		{"no such ids file", []string{"eval", "--ids", missing}, missing},
		{"object in place of a list", []string{"eval", "--ids", file}, "not a JSON list of token ids"},
		{"nothing to predict", []string{"eval", "--ids", one}, "at least 2"},
		{"list in place of an object", []string{"logits", "--ids", list, "--out", missing}, "not a JSON object of names"},
		{"no such checkpoint", []string{"convert", missing, filepath.Join(empty, "dst")}, "there is nothing to convert: stat " + missing + ": no such file or directory; name a folder"},
		{"no such tokenizer", []string{"tokenize", "--tokenizer", missing}, missing},
		{"no such template", []string{"chat-template", "--template", missing}, missing},
		{"template of no model", []string{"chat-template", "--model", empty}, "has no chat template"},
		{"bad template", []string{"chat-template", "--template", writeFile(t, "t.jinja", "a\n{% if %}")}, "t.jinja:2"},
		{"chat with no chat model", []string{"run", "--chat", "-p", "x", "--model", empty}, "has no chat template: no chat_template.jinja"},
		{"no such system message", []string{"run", "--chat", "-p", "x", "--system", "@" + missing}, missing},
		{"system message that is no text", []string{"run", "--chat", "-p", "x", "--system", "@" + writeFile(t, "sys", "\xff")}, "not UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := call(t, "", c.args...)
			if o.code != exitFailed || !strings.Contains(o.stderr, c.want) {
				t.Errorf("%q: exit %d, stderr %q; want %d and %q", c.args, o.code, o.stderr, exitFailed, c.want)
			}
			checkErrorLine(t, o)
		})
	}
}

func TestNoPromptOnATerminal(t *testing.T) {
	e := testEnv()
	e.Terminal = func(stream any) bool { _, isStdin := stream.(*strings.Reader); return isStdin }
	o := callWith(t.Context(), e, "never read", "run")
	if o.code != exitUsage || !strings.Contains(o.stderr, "no prompt; give it with -p TEXT") {
		t.Errorf("exit %d, stderr %q; want %d and how to give a prompt", o.code, o.stderr, exitUsage)
	}
}

func TestHelp(t *testing.T) {
	top := mustCall(t, "", "--help")
	for _, args := range [][]string{{"help"}, {"-h"}, {"help", "--help"}} {
		if o := mustCall(t, "", args...); o != top {
			t.Errorf("%q prints %q, want what --help prints", args, o.stdout)
		}
	}
	for _, name := range commandNames {
		if !strings.Contains(top.stdout, "\n  "+name) {
			t.Errorf("--help does not list %s:\n%s", name, top.stdout)
		}
		if name == "help" {
			continue
		}
		o := mustCall(t, "", name, "--help")
		if name == "serve" || name == "host" { // they print no result
			o.stdout += "--json"
		}
		if !strings.Contains(o.stdout, "Example:") || !strings.Contains(o.stdout, "moeflux-actor "+name) || !strings.Contains(o.stdout, "--json") || o.stderr != "" {
			t.Errorf("%s --help lacks an example or --json, or writes to stderr: %+v", name, o)
		}
		if h := mustCall(t, "", "help", name); h.stdout != strings.TrimSuffix(o.stdout, "--json") {
			t.Errorf("help %s prints %q, want what %s --help prints", name, h.stdout, name)
		}
	}
}

// TestCommandLineOf wants each command to have the same flags, defaults and help alone as beside
// all others.
func TestCommandLineOf(t *testing.T) {
	describe := func(p *kong.Kong, command string) (all []string) {
		for _, n := range p.Model.Leaves(false) {
			if path, _, _ := strings.Cut(n.Path(), " "); path != command {
				continue
			}
			all = append(all, n.FullPath()+" "+n.Summary()+" "+n.Help)
			for _, group := range n.AllFlags(false) {
				for _, f := range group {
					all = append(all, fmt.Sprint(n.Path(), f, f.Default, f.Help, f.Tag.Group))
				}
			}
		}
		return all
	}
	every := newParser(t)
	for _, name := range commandNames {
		alone, err := newCommandLine(commandLineOf(name), io.Discard, io.Discard, func(int) {})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := describe(alone, name), describe(every, name); len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s alone: %q, want %q", name, got, want)
		}
		if n := len(alone.Model.Children); n != len(commandNames) {
			t.Errorf("beside %s there are %d commands, want %d", name, n, len(commandNames)-1)
		}
	}
}

func TestVersion(t *testing.T) {
	if o := mustCall(t, "", "version"); !strings.HasPrefix(o.stdout, "moeflux-actor ") || strings.Count(o.stdout, "\n") != 1 {
		t.Errorf("version prints %q, want one line", o.stdout)
	}
	if a, b := mustCall(t, "", "--version", "--json"), mustCall(t, "", "version", "--json"); a != b {
		t.Errorf("--version --json prints %q, version --json %q", a.stdout, b.stdout)
	}
}

// A stream that fails in other ways than a closed pipe is an error.
type badWriter struct{ err error }

func (w badWriter) Write([]byte) (int, error) { return 0, w.err }

func TestStdoutThatFails(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		code int
	}{{"closed pipe", io.ErrClosedPipe, exitOK}, {"full disk", errors.New("no space left on device"), exitFailed}} {
		calls := [][]string{{"help"}, {"version"}, {"version", "--json"}, {"inspect"}, {"run", "-p", "x", "-n", "2"}, {"run", "-p", "x", "-n", "2", "--json"},
			{"tokenize"}, {"chat-template", "--template", writeFile(t, "t.jinja", "x")}, {"eval", "--ids", writeFile(t, "ids.json", "[1,2]")}}
		for _, name := range commandNames {
			calls = append(calls, []string{name, "--help"})
		}
		for _, args := range calls {
			var errs bytes.Buffer
			code := run(t.Context(), args, strings.NewReader(`{"text": "a", "messages": []}`), badWriter{c.err}, &errs, testEnv())
			said := strings.HasSuffix(errs.String(), "moeflux-actor: the result cannot be written: no space left on device\n")
			if code != c.code || (code == exitFailed) != said {
				t.Errorf("%s, %q: exit %d, stderr %q, want %d", c.name, args, code, errs.String(), c.code)
			}
		}
	}
}

// The real thing: a pipe whose reader is gone.
func TestClosedPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	var errs bytes.Buffer
	for _, args := range [][]string{{"version"}, {"--help"}} {
		if code := run(t.Context(), args, strings.NewReader(""), w, &errs, testEnv()); code != exitOK || errs.Len() != 0 {
			t.Errorf("%q into a closed pipe: exit %d, stderr %q, want %d and silence", args, code, errs.String(), exitOK)
		}
	}
}

func TestErrorsAreOneLine(t *testing.T) {
	var out bytes.Buffer
	report(&out, errors.Join(errors.New("a"), errors.New("b\r\n\nc")))
	if got, want := out.String(), "moeflux-actor: a; b; c\n"; got != want {
		t.Errorf("report prints %q, want %q", got, want)
	}
}
