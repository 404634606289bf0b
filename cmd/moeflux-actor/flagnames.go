package main

import (
	"reflect"
	"regexp"
	"strings"
	"unicode"
)

// settingFlags are the flags that set a field of a library's Config or Options, by the field.
var settingFlags = findSettingFlags()

// findSettingFlags reads the tags of the flags' structs.
func findSettingFlags() map[string]string {
	flags := map[string]string{"Threads": "--threads"} // of the host device
	for _, of := range []struct {
		flags any
		tag   string
	}{{engineFlags{}, "config"}, {samplingFlags{}, "option"}} {
		for f := range reflect.TypeOf(of.flags).Fields() {
			if field := f.Tag.Get(of.tag); field != "" {
				flags[field] = "--" + flagName(f)
			}
		}
	}
	return flags
}

// flagName returns a flag's name as the parser makes it of a field's: words in lower case with
// hyphens between them.
func flagName(f reflect.StructField) string {
	if name := f.Tag.Get("name"); name != "" {
		return name
	}
	var b strings.Builder
	name := []rune(f.Name)
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) && (unicode.IsLower(name[i-1]) || i+1 < len(name) && unicode.IsLower(name[i+1])) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

var (
	settingName   = regexp.MustCompile(`\b(?:Config|Options)\.([A-Z]\w*)`)
	packagePrefix = regexp.MustCompile(`(^|\n|[:;] )(?:actors|chat|convert|demo|durable|expertfile|expertmem|jinja|model|moeflux|profile|quant|readpool|safetensors|sample|snapshot|store|synth|tokenizer|weights): `)
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
