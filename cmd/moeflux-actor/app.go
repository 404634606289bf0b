package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/moeflux/moeflux-actor/internal/figures"
	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/process"
)

// The exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // by Ctrl-C
	exitTerminated  = 143 // by SIGTERM
)

// commands is the command line. Each command has a Run(context.Context, *process.Invocation) error.
type commands struct {
	Run          runCmd          `cmd:"" help:"Generate text, streamed to stdout."`
	Serve        serveCmd        `cmd:"" help:"Serve models over HTTP, for clients of OpenAI's and Anthropic's APIs."`
	Convert      convertCmd      `cmd:"" help:"Convert a checkpoint into a packed model directory."`
	Host         hostCmd         `cmd:"" help:"Compute experts of a model for engines that are started with --hosts."`
	Certs        certsCmd        `cmd:"" help:"Make a small authority and certificates, by which hosts and engines know each other."`
	Pull         pullCmd         `cmd:"" help:"Fetch a checkpoint from a hub and convert it as it arrives."`
	Inspect      inspectCmd      `cmd:"" help:"Show what a packed model directory or a GGUF file holds, and how it would run here."`
	Logits       logitsCmd       `cmd:"" help:"Write logits, hidden states and routing of given token ids to a file."`
	Dump         dumpCmd         `cmd:"" help:"Write what layers take, make and give for given token ids to a file, or compare two such files."`
	Eval         evalCmd         `cmd:"" help:"Measure the mean loss and the perplexity of given token ids."`
	Tokenize     tokenizeCmd     `cmd:"" help:"Turn text into token ids or back, as JSON lines on stdin and stdout."`
	ChatTemplate chatTemplateCmd `cmd:"" help:"Turn conversations into prompts, as JSON lines on stdin and stdout."`
	Synth        synthCmd        `cmd:"" help:"Make a model of real shape with random weights and known behaviour, or check the engine with one."`
	Bench        benchCmd        `cmd:"" help:"Measure the speed of prompts and of decoding, and compare it with the memory's bandwidth."`
	Doctor       doctorCmd       `cmd:"" help:"Measure memory and disk, and say what the engine would run with here, how fast, and why."`
	Tune         tuneCmd         `cmd:"" help:"Look for settings with which a model runs faster on this machine, and keep them for run and serve."`
	State        stateCmd        `cmd:"" help:"Save, load and show the state of a text as a file."`
	Trace        traceCmd        `cmd:"" help:"Say where the time of tokens went, from records of an engine."`
	Version      versionCmd      `cmd:"" help:"Print the version."`
	Help         struct{}        `cmd:"" help:"Print help, or that of a command, or (help figures) what the printed figures mean."`
}

var commandNames = []string{"run", "serve", "host", "certs", "convert", "pull", "inspect", "logits", "dump", "eval", "tokenize", "chat-template", "synth", "bench", "doctor", "tune", "state", "trace", "version", "help"}

// run is the whole program except for signals; it returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, e process.Env) int {
	inv := &process.Invocation{
		Stdin: process.NewCancelReader(ctx, stdin), Stdout: &process.Results{W: stdout}, Stderr: stderr, Env: e,
		StdinTerminal: e.Terminal(stdin), StdoutTerminal: e.Terminal(stdout), StderrTerminal: e.Terminal(stderr),
	}
	err := dispatch(ctx, args, inv)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, process.ErrReaderGone):
		return exitOK // it has seen enough
	case process.IsUsage(err):
		report(stderr, err)
		return exitUsage
	case errors.Is(err, process.ErrInterrupted):
		return signalCode(ctx)
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		report(stderr, err)
		return signalCode(ctx)
	default:
		report(stderr, err)
		return exitFailed
	}
}

// signalCode returns the exit code of a command that a signal ended.
func signalCode(ctx context.Context) int {
	if s, ok := errors.AsType[process.Signalled](context.Cause(ctx)); ok && s.Signal == syscall.SIGTERM {
		return exitTerminated
	}
	return exitInterrupted
}

// report prints an error as one line.
func report(stderr io.Writer, err error) {
	fmt.Fprintf(stderr, "%s: %s\n", process.Program, flags.OneLine(err))
}

// dispatch parses the command line and runs its command.
func dispatch(ctx context.Context, args []string, inv *process.Invocation) error {
	if slices.Equal(args, []string{"help", "figures"}) {
		_, err := io.WriteString(inv.Stdout, "The figures that run, bench and doctor print:\n\n"+figures.GlossaryText())
		return err
	}
	args, err := normalise(args)
	if err == nil {
		err = checkUTF8(args)
	}
	if err != nil {
		return err
	}
	helped := false
	exit := func(int) { helped = true } // called once help is printed
	parser, err := newCommandLine(commandLineOf(args[0]), inv.Stdout, inv.Stderr, exit)
	if err != nil {
		panic(fmt.Sprintf("the command line's own description is wrong: %v", err))
	}
	explain(parser.Model.Node)
	parsed, err := parser.Parse(args)
	switch {
	case helped:
		return nil
	case errors.Is(err, process.ErrReaderGone) || errors.As(err, new(*process.StdoutError)): // help was asked for
		return err
	case errors.Is(err, fs.ErrNotExist): // only --config names a file here
		return process.Usagef("--config: %s", err)
	case err != nil:
		return process.Usagef("%s; see %s %s --help", nothingFollows.Replace(err.Error()), process.Program, args[0])
	}
	parsed.BindTo(ctx, (*context.Context)(nil))
	return parsed.Run(inv)
}

// commandLineOf returns commands for the parser with the flags of one command only, since building
// the flags of all takes 30 ms. The others have just their names and first lines. A name that is
// not a command's gets all flags, for the help of the whole program.
func commandLineOf(name string) any {
	if !slices.Contains(commandNames, name) {
		return new(commands)
	}
	fields := reflect.VisibleFields(reflect.TypeFor[commands]())
	for i := range fields {
		if !strings.EqualFold(fields[i].Name, strings.ReplaceAll(name, "-", "")) {
			fields[i].Type = reflect.TypeFor[struct{}]()
		}
	}
	return reflect.New(reflect.StructOf(fields)).Interface()
}

// newCommandLine returns the parser of a command line: of commands, or of commandLineOf.
func newCommandLine(cli any, stdout, stderr io.Writer, exit func(int)) (*kong.Kong, error) {
	return kong.New(cli,
		kong.Name(process.Program),
		kong.Description("Runs Mixture-of-Experts language models whose experts stay on disk."),
		kong.Writers(stdout, stderr),
		kong.Exit(exit),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}),
		kong.WithHyphenPrefixedParameters(true),
		kong.KindMapper(reflect.String, kong.MapperFunc(readString)),
		kong.Configuration(readConfig),
	)
}

// nothingFollows says in words what the parser found where the command line ends.
var nothingFollows = strings.NewReplacer(`but got "EOL" (<nil>)`, "but nothing follows", "but got %!q(<nil>)", "but nothing follows")

// readString takes the value of a text flag. Since values may begin with a hyphen, the parser
// itself takes the end of the command line for an empty one.
func readString(ctx *kong.DecodeContext, target reflect.Value) error {
	if ctx.Scan.Peek().IsEOL() {
		return errors.New("expected a value, but nothing follows")
	}
	return ctx.Scan.PopValueInto("string", target.Addr().Interface())
}

//go:embed help
var helpTexts embed.FS

// explain gives each command what its --help says between the first line and the flags.
func explain(n *kong.Node) {
	name := strings.ReplaceAll(n.Path(), " ", "-")
	if text, err := helpTexts.ReadFile("help/" + name + ".txt"); err == nil {
		n.Detail = strings.TrimSuffix(string(text), "\n")
	}
	if name == "bench" {
		n.Detail += "\n\n" + figures.GlossaryText()
	}
	for _, c := range n.Children {
		explain(c)
	}
}

// checkUTF8 reports an argument that is not UTF-8 text. The parser would put U+FFFD in the place of
// what is not, and the model would read that.
func checkUTF8(args []string) error {
	for i, a := range args {
		if utf8.ValidString(a) {
			continue
		}
		name := ""
		if i > 0 && strings.HasPrefix(args[i-1], "-") && !strings.HasPrefix(a, "-") {
			name = args[i-1] + " "
		}
		return process.Usagef("%s%q is not UTF-8 text; convert it first", name, a)
	}
	return nil
}

// normalise turns the forms of help and version into those that the parser knows, and refuses
// commands that do not exist.
func normalise(args []string) ([]string, error) {
	if len(args) == 0 {
		return nil, process.Usagef("no command given; commands: %s; try %s run -p \"package main\"", strings.Join(commandNames, ", "), process.Program)
	}
	switch args[0] {
	case "--help", "-h":
		return []string{"--help"}, nil
	case "--version":
		return append([]string{"version"}, args[1:]...), nil
	case "help":
		if len(args) == 1 || args[1] == "--help" || args[1] == "-h" {
			return []string{"--help"}, nil
		}
		args = []string{args[1], "--help"}
	}
	if !slices.Contains(commandNames, args[0]) {
		return nil, process.Usagef("unknown command %q; commands: %s", args[0], strings.Join(commandNames, ", "))
	}
	return args, nil
}
