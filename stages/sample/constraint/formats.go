package constraint

import (
	"strings"
	"sync"
)

// formats are expressions for the formats that bind. Where a format is more than an expression
// can say, or has forms that hardly anybody writes, its expression gives fewer texts.
var formats = formatExpressions()

func formatExpressions() map[string]string {
	part := strings.NewReplacer(
		"<date>", `(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)`,
		"<time>", `(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])`,
		"<clock>", `T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)`,
		"<days>", `(?:[0-9]+D|[0-9]+M(?:[0-9]+D)?|[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?)`,
		"<host>", `[A-Za-z0-9](?:-?[A-Za-z0-9]){0,19}(?:\.[A-Za-z0-9](?:-?[A-Za-z0-9]){0,19}){0,5}`,
		"<atom>", "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,31}",
		"<byte>", `(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])`,
		"<hex>", `[0-9A-Fa-f]`,
		"<h16>", `[0-9A-Fa-f]{1,4}`,
		"<scheme>", `[A-Za-z][A-Za-z0-9+.-]*:`,
		"<server>", `//(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?)?`,
		"<p>", `(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})`,
		"<n>", `(?:[A-Za-z0-9._~!$&'()*+,;=@-]|%[0-9A-Fa-f]{2})`,
		"<more>", `(?:\?(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?(?:#(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?`,
		"<pointer>", `(?:/(?:[^~/]|~[01])*)*`,
	)
	list := map[string]string{
		"date": `<date>`, "time": `<time>`, "date-time": `<date>T<time>`,
		"duration": `P(?:[0-9]+W|<days>(?:<clock>)?|<clock>)`,
		"email":    `<atom>(?:\.<atom>)?@<host>`,
		"hostname": `<host>`,
		"ipv4":     `<byte>(?:\.<byte>){3}`,
		"ipv6":     `(?:<h16>:){7}<h16>|(?:<h16>:){1,7}:|` + shortIPv6(),
		"uuid":     `<hex>{8}-<hex>{4}-<hex>{4}-<hex>{4}-<hex>{12}`,
		"uri":      `<scheme>(?:<server>(?:/<p>*)*|/(?:<p>+(?:/<p>*)*)?|<p>+(?:/<p>*)*)<more>`,
		"uri-reference": `(?:<scheme>(?:<server>(?:/<p>*)*|/(?:<p>+(?:/<p>*)*)?|<p>+(?:/<p>*)*)|` +
			`<server>(?:/<p>*)*|/(?:<p>+(?:/<p>*)*)?|<n>+(?:/<p>*)*|)<more>`,
		"uri-template":          `(?:<n>|/|\{[A-Za-z0-9_]+(?:,[A-Za-z0-9_]+)*\})*`,
		"json-pointer":          `<pointer>`,
		"relative-json-pointer": `(?:0|[1-9][0-9]{0,8})(?:#|<pointer>)`,
	}
	for wider, format := range map[string]string{"idn-email": "email", "idn-hostname": "hostname", "iri": "uri", "iri-reference": "uri-reference"} {
		list[wider] = list[format]
	}
	for name, expression := range list {
		list[name] = part.Replace(expression)
	}
	return list
}

// shortIPv6 is the addresses with :: that do not end with it.
func shortIPv6() string {
	var alts []string
	for before, times := range []string{"{0}", "", "{2}", "{3}", "{4}", "{5}", "{6}"} {
		head := ":"
		if before > 0 {
			head = `(?:<h16>:)` + times + `:`
		} else {
			head = "::"
		}
		if after := 6 - before; after > 0 {
			alts = append(alts, head+`(?:<h16>:){0,`+string(rune('0'+after))+`}<h16>`)
		} else {
			alts = append(alts, head+`<h16>`)
		}
	}
	return strings.Join(append(alts, "::"), "|")
}

var formatCache sync.Map // of a name: *dfa

// formatDFA returns the automaton of a format, nil if it is not known.
func formatDFA(name string) (*dfa, error) {
	expression, ok := formats[name]
	if !ok {
		return nil, nil
	}
	if d, ok := formatCache.Load(name); ok {
		return d.(*dfa), nil
	}
	d, err := regexpDFA(expression)
	if err != nil {
		return nil, err
	}
	d = d.minimal()
	formatCache.Store(name, d)
	return d, nil
}
