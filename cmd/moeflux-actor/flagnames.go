package main

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// setting is a flag of a struct of flags, as the field's tags describe it.
type setting struct {
	index          []int
	flag           string // its name, without dashes
	config, option string // the field that it sets of a library's Config, Options or Request
	byDefault      string
	oneof          []string // the values that it may have; none: any
}

var engineSettings = settingsOf(engineFlags{})

// settingFlags are the flags that set a field of a library's Config, Options or Request, by the
// field.
var settingFlags = findSettingFlags()

func findSettingFlags() map[string]string {
	flags := map[string]string{}
	for _, s := range slices.Concat(engineSettings, settingsOf(samplingFlags{}), settingsOf(chatFlags{})) {
		if field := s.config + s.option; field != "" {
			flags[field] = "--" + s.flag
		}
	}
	return flags
}

var wordBegins = regexp.MustCompile(`([a-z])([A-Z])`)

// settingsOf reads the tags of a struct of flags. A name that no tag gives is that of the field, in
// words, as the parser makes it.
func settingsOf(flags any) (all []setting) {
	words := func(list string) []string { return strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) }
	for _, f := range reflect.VisibleFields(reflect.TypeOf(flags)) {
		if f.Anonymous {
			continue
		}
		name := f.Tag.Get("name")
		if name == "" {
			name = strings.ToLower(wordBegins.ReplaceAllString(f.Name, "$1-$2"))
		}
		all = append(all, setting{
			index: f.Index, flag: name, config: f.Tag.Get("config"), option: f.Tag.Get("option"), byDefault: f.Tag.Get("default"),
			oneof: words(f.Tag.Get("oneof")),
		})
	}
	return all
}

// of returns the flag's value.
func (s *setting) of(flags *engineFlags) reflect.Value {
	return reflect.ValueOf(flags).Elem().FieldByIndex(s.index)
}

// oneOf reports a value that a flag cannot have; the message says what is available.
func oneOf(flag, value string, available []string) error {
	if slices.Contains(available, value) {
		return nil
	}
	return usagef("%s %s is unknown; available: %s", flag, value, strings.Join(available, ", "))
}

var (
	settingName   = regexp.MustCompile(`\b(?:Config|Options|Request)\.([A-Z]\w*)`)
	packagePrefix = regexp.MustCompile(`(^|\n|[:;] )(?:actors|chat|convert|demo|durable|expertfile|export|fleet|expertmem|jinja|model|moeflux|profile|quant|readpool|safetensors|sample|server|snapshot|store|synth|tokenizer|weights): `)
)

// forUsers turns what libraries say into what a user of the command line understands: settings are
// named by their flags, and package names are left out.
func forUsers(text string) string {
	text = settingName.ReplaceAllStringFunc(text, func(setting string) string {
		_, field, _ := strings.Cut(setting, ".")
		if flag, ok := settingFlags[field]; ok {
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
