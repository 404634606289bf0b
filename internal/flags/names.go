package flags

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/internal/process"
)

// flag is a flag of a struct of flags, as the field's tags describe it.
type flag struct {
	index          []int
	name           string // its name, without dashes
	config, option string // the field that it sets of a library's Config, Options or Request
	byDefault      string
	oneof          []string // the values that it may have; none: any
}

// engineFlags are the flags of an engine; nobody changes them.
var engineFlags = flagsOf(Engine{})

// theSettingFlags is what SettingFlags returns; nobody changes it.
var theSettingFlags = findSettingFlags()

// SettingFlags returns the flags that set a field of a library's Config, Options or Request, by the
// field.
func SettingFlags() map[string]string { return theSettingFlags }

func findSettingFlags() map[string]string {
	flags := map[string]string{}
	for _, s := range slices.Concat(engineFlags, flagsOf(Sampling{}), flagsOf(Conversation{})) {
		if field := s.config + s.option; field != "" {
			flags[field] = "--" + s.name
		}
	}
	return flags
}

var wordBegins = regexp.MustCompile(`([a-z])([A-Z])`)

// flagsOf reads the tags of a struct of flags. A name that no tag gives is that of the field, in
// words, as the parser makes it.
func flagsOf(flags any) (all []flag) {
	words := func(list string) []string { return strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) }
	for _, f := range reflect.VisibleFields(reflect.TypeOf(flags)) {
		if f.Anonymous {
			continue
		}
		name := f.Tag.Get("name")
		if name == "" {
			name = strings.ToLower(wordBegins.ReplaceAllString(f.Name, "$1-$2"))
		}
		all = append(all, flag{
			index: f.Index, name: name, config: f.Tag.Get("config"), option: f.Tag.Get("option"), byDefault: f.Tag.Get("default"),
			oneof: words(f.Tag.Get("oneof")),
		})
	}
	return all
}

// of returns the flag's value.
func (s *flag) of(flags *Engine) reflect.Value {
	return reflect.ValueOf(flags).Elem().FieldByIndex(s.index)
}

// OneOf reports a value that a flag cannot have; the message says what is available.
func OneOf(flag, value string, available []string) error {
	if slices.Contains(available, value) {
		return nil
	}
	return process.Usagef("%s %s is unknown; available: %s", flag, value, strings.Join(available, ", "))
}

var (
	settingName   = regexp.MustCompile(`\b(?:Config|Options|Request)\.([A-Z]\w*)`)
	packagePrefix = regexp.MustCompile(`(^|\n|[:;] )(?:actors|chat|convert|demo|durable|expertfile|export|fleet|expertmem|jinja|model|moeflux|profile|quant|readpool|safetensors|sample|server|snapshot|store|synth|tokenizer|weights): `)
)

// ForUsers turns what libraries say into what a user of the command line understands: settings are
// named by their flags, and package names are left out.
func ForUsers(text string) string {
	text = settingName.ReplaceAllStringFunc(text, func(setting string) string {
		_, field, _ := strings.Cut(setting, ".")
		if flag, ok := SettingFlags()[field]; ok {
			return flag
		}
		return setting
	})
	for {
		shorter := packagePrefix.ReplaceAllString(text, "$1")
		if shorter == text {
			return text
		}
		text = shorter
	}
}

// OneLine returns an error as a user reads it: on one line, and each part of it once.
func OneLine(err error) string { return OneLineOf(err.Error()) }

// OneLineOf is OneLine for the text of an error.
func OneLineOf(text string) string {
	lines := strings.FieldsFunc(ForUsers(text), func(r rune) bool { return r == '\n' || r == '\r' })
	return strings.Join(slices.Compact(lines), "; ")
}

// Quoted quotes a word for a shell.
func Quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=%+,:@", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
