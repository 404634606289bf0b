package jinja

import "testing"

func BenchmarkParse(b *testing.B) {
	text := string(readFile(b, "testdata/chat/b.jinja"))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("b.jinja", text); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRender renders the conversation of the fixtures with the longest text.
func BenchmarkRender(b *testing.B) {
	bos, eos, cases := readChats(b)
	var longest *chatFixture
	for _, c := range cases {
		if c.Template == "b.jinja" && c.Expected != nil && (longest == nil || len(*c.Expected) > len(*longest.Expected)) {
			longest = c
		}
	}
	tmpl := ChatTemplate{Template: parseFile(b, "testdata/chat/b.jinja"), BOS: bos, EOS: eos}
	chat := longest.chat(b)
	b.SetBytes(int64(len(*longest.Expected)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tmpl.Render(chat); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeJSON(b *testing.B) {
	data := readFile(b, "testdata/chat/cases.json")
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeJSON(data); err != nil {
			b.Fatal(err)
		}
	}
}
