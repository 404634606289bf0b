package main

import (
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/moeflux/moeflux-actor/internal/configfile"
)

// configFlags let a command take its flags from a file.
type configFlags struct {
	Config      kong.ConfigFlag `placeholder:"FILE" help:"A file of settings in YAML: the names of these flags without dashes, each with its value or a list of values. Flags win over it."`
	PrintConfig bool            `help:"Prints all settings, as such a file has them, and ends."`
}

// notInFiles are flags that a file of settings cannot have.
var notInFiles = []string{"config", "print-config", "help"}

// readConfig reads a file of settings for the command serve, the only one that takes one.
func readConfig(r io.Reader) (kong.Resolver, error) {
	name := "the file"
	if f, ok := r.(*os.File); ok {
		name = f.Name()
	}
	settings, err := configfile.Read(r)
	if err != nil {
		return nil, fmt.Errorf("--config %s: %w", name, err)
	}
	values := make(map[string]any)
	for i := range settings {
		s := &settings[i]
		if err := checkSetting(s); err != nil {
			return nil, fmt.Errorf("--config %s: %w", name, &configfile.Error{Line: s.Line, What: err.Error()})
		}
		if values[s.Name] = s.Values[0]; s.List {
			var list []any
			for _, v := range s.Values {
				list = append(list, v)
			}
			values[s.Name] = list
		}
	}
	return kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) { return values[flag.Name], nil }), nil
}

// checkSetting reports a setting that the command line would refuse.
func checkSetting(s *configfile.Setting) error {
	p, err := newCommandLine(commandLineOf("serve"), io.Discard, io.Discard, func(int) {})
	if err != nil {
		return err
	}
	serve := slices.IndexFunc(p.Model.Children, func(n *kong.Node) bool { return n.Name == "serve" })
	flags := p.Model.Children[serve].Flags
	at := slices.IndexFunc(flags, func(f *kong.Flag) bool { return f.Name == s.Name })
	switch {
	case at < 0 || slices.Contains(notInFiles, s.Name):
		return fmt.Errorf("there is no setting %s", s.Name)
	case s.List && !flags[at].IsSlice():
		return fmt.Errorf("%s has one value, not a list", s.Name)
	case len(s.Values) == 0:
		return fmt.Errorf("%s is an empty list; leave the line out", s.Name)
	}
	args := []string{"serve"}
	for _, v := range s.Values {
		args = append(args, "--"+s.Name+"="+v)
	}
	_, err = p.Parse(args)
	return err
}

// printConfig prints the settings of a command line as a file that --config takes: those that were
// given, and as comments all others with their defaults.
func printConfig(w io.Writer, line *kong.Context) error {
	for _, f := range line.Selected().Flags {
		if slices.Contains(notInFiles, f.Name) {
			continue
		}
		what, _, _ := strings.Cut(f.Help, ". ")
		if _, err := fmt.Fprintf(w, "# %s.\n", strings.TrimSuffix(what, ".")); err != nil {
			return err
		}
		s := configfile.Setting{Name: f.Name, List: f.IsSlice(), Values: textsOf(f.Target)}
		if !f.Set || len(s.Values) == 0 || !s.List && s.Values[0] == f.Default {
			if _, err := fmt.Fprintf(w, "#%s: %s\n\n", f.Name, f.Default); err != nil {
				return err
			}
			continue
		}
		if err := s.Write(w); err != nil {
			return err
		}
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
	}
	return nil
}

// textsOf returns the value of a flag as the command line takes it, or those of a list.
func textsOf(v reflect.Value) (all []string) {
	if v.Kind() != reflect.Slice {
		return []string{fmt.Sprint(v.Interface())}
	}
	for i := range v.Len() {
		all = append(all, fmt.Sprint(v.Index(i).Interface()))
	}
	return all
}
