package flags

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/moeflux/moeflux-actor/internal/process"
)

// fieldComments returns the comments of a struct's fields, each as one line.
func fieldComments(t *testing.T, file, typeName string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	comments := map[string]string{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != typeName {
			return true
		}
		for _, f := range spec.Type.(*ast.StructType).Fields.List {
			comments[f.Names[0].Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
		}
		return false
	})
	if len(comments) == 0 {
		t.Fatalf("%s has no struct %s with comments", file, typeName)
	}
	return comments
}

var emptyMeans = regexp.MustCompile(`"" means ([a-z-]+)`)

// helpOf turns a field's comment into a flag's help: without the field's name, and with "" called
// the default.
func helpOf(field, comment string) string {
	text := strings.TrimPrefix(strings.TrimPrefix(comment, field+" "), "is ")
	text = emptyMeans.ReplaceAllString(text, "Default: $1")
	text = goSetting.ReplaceAllStringFunc(text, flagOf)
	return strings.ToUpper(text[:1]) + text[1:]
}

// goSetting is the name of a field of a configuration, of several words.
var goSetting = regexp.MustCompile(`\b[A-Z][a-z]+(?:[A-Z][A-Za-z]*)+\b`)

// flagOf is the flag that sets a field.
func flagOf(field string) string {
	if flag, ok := SettingFlags()[field]; ok {
		return flag
	}
	return field
}

// Each flag that sets a field of a configuration has that field's comment as the beginning of its
// help.
func TestHelpIsTheFieldsComment(t *testing.T) {
	for _, c := range []struct {
		flags     any
		tag       string
		file, typ string
	}{
		{Engine{}, "config", "../../actors/config.go", "Config"},
		{Sampling{}, "option", "../../stages/sample/options.go", "Options"},
	} {
		comments := fieldComments(t, c.file, c.typ)
		for _, f := range reflect.VisibleFields(reflect.TypeOf(c.flags)) {
			field := f.Tag.Get(c.tag)
			if field == "" {
				continue
			}
			comment, ok := comments[field]
			if !ok {
				t.Errorf("flag %s sets %s.%s, which does not exist", f.Name, c.typ, field)
				continue
			}
			got, want := f.Tag.Get("help"), strings.TrimSuffix(helpOf(field, comment), ".")
			if !strings.HasPrefix(got, want) {
				t.Errorf("help of %s:\n got %q\nwant %q …", f.Name, got, want)
			}
		}
	}
}

// config carries every flag into its field.
func TestConfigFromFlags(t *testing.T) {
	f := Engine{Settings: Settings{
		RingDepth: 3, Prefetch: "both", PrefetchLayers: 1, ExpertIO: "buffered", Resident: "off", ExpertMemory: Size{Percent: 25}, ReadWorkers: 5, ReadTimeout: time.Minute, ChunkRows: 6, PromptShare: 0.25, MaxSequences: 8, MaxWaiting: -1, VerifyReads: "off",
		Ctx: 7, ExpertsPerToken: 2, LogLevel: "info", LogFormat: "text",
	}}
	got, err := f.config(&process.Invocation{Env: process.Env{Memory: func() (int64, error) { return 4000, nil }}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"RingDepth", got.RingDepth, 3}, {"Prefetch", string(got.Prefetch), "both"}, {"PrefetchLayers", got.PrefetchLayers, 1}, {"ExpertIO", string(got.ExpertIO), "buffered"}, {"Resident", string(got.Resident), "off"},
		{"ExpertMemory", got.ExpertMemory, int64(1000)}, {"ReadWorkers", got.ReadWorkers, 5}, {"ReadTimeout", got.ReadTimeout, time.Minute}, {"ChunkRows", got.ChunkRows, 6}, {"PromptShare", got.PromptShare, 0.25},
		{"Context", got.Context, 7}, {"ExpertsPerToken", got.ExpertsPerToken, 2}, {"MaxSequences", got.MaxSequences, 8}, {"MaxWaiting", got.MaxWaiting, -1}, {"VerifyReads", string(got.VerifyReads), "off"},
	} {
		if c.got != c.want {
			t.Errorf("Config.%s = %v, want %v", c.name, c.got, c.want)
		}
	}
}

// everyFlag returns flags each of which that sets a field has another value than its default.
func everyFlag() *Engine {
	f := new(Engine)
	for _, s := range engineFlags {
		switch to := s.of(f).Addr().Interface().(type) {
		case *string:
			if *to = "a.b"; len(s.oneof) > 0 {
				*to = s.oneof[len(s.oneof)-1]
			}
		case *int:
			*to = 3
		case *float64:
			*to = 0.25
		case *bool:
			*to = true
		case *Size:
			*to = Size{Percent: 12.5}
		case *time.Duration:
			*to = time.Minute
		}
	}
	return f
}

// TestConfigTakesEveryFlag finds the value of each flag in the Config.
func TestConfigTakesEveryFlag(t *testing.T) {
	got, err := everyFlag().config(&process.Invocation{Env: process.Env{Memory: func() (int64, error) { return 4000, nil }}})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range engineFlags {
		if s.config == "" || s.config == "Model" || s.config == "Profile" { // these two have to be found first
			continue
		}
		if reflect.ValueOf(got).FieldByName(s.config).IsZero() {
			t.Errorf("--%s does not set Config.%s", s.name, s.config)
		}
	}
}

// oneCommand is a command line of one command that opens a model.
type oneCommand struct {
	Run struct {
		Prompt string `short:"p"`
		Stdin  string `arg:"" optional:"" name:"-"`
		Engine `group:"Engine:"`
	} `cmd:""`
}

// TestGivenFlags parses what given returns: the flags are the same then, so that the command that a
// sweep recommends runs with what was measured.
func TestGivenFlags(t *testing.T) {
	want, cli := everyFlag(), new(oneCommand)
	p, err := kong.New(cli, kong.Exit(func(int) {}), kong.WithHyphenPrefixedParameters(true))
	if err != nil {
		t.Fatal(err)
	}
	args := want.Given(map[string]string{"ring-depth": ""})
	if _, err := p.Parse(append([]string{"run", "-p", "x"}, args...)); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	want.RingDepth = 0 // it was left out
	if cli.Run.Stdin != "" {
		t.Errorf("%q is no flag's value; given %q", cli.Run.Stdin, args)
	}
	for _, s := range engineFlags {
		if s.config == "" && s.option == "" {
			continue
		}
		if got, want := s.of(&cli.Run.Engine).Interface(), s.of(want).Interface(); got != want {
			t.Errorf("--%s is %v, want %v; given %q", s.name, got, want, args)
		}
	}
	plain := new(oneCommand)
	if p, err = kong.New(plain, kong.Exit(func(int) {})); err == nil {
		_, err = p.Parse([]string{"run", "-p", "x"})
	}
	if args := plain.Run.Engine.Given(nil); err != nil || args != nil {
		t.Errorf("the defaults are given as %q (%v)", args, err)
	}
}
