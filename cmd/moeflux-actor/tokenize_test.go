package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/jsonlines"
)

func TestTokenize(t *testing.T) {
	model, ref := loadE2E(t)
	file := filepath.Join(fixtures.Dir(t, fixtures.Qwen35MoEQ4), "tokenizer.json")
	in, err := json.Marshal(map[string]string{"text": ref.Text})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.ReplaceAll(fmt.Sprintf("{\"ids\":%v}\n", ref.IDs), " ", ",")
	for _, source := range [][]string{{"--model", model}, {"--tokenizer", file}} {
		o := mustCall(t, string(in)+"\n{\"text\":\"\"}\n"+string(in), append([]string{"tokenize"}, source...)...)
		if o.stdout != want+"{\"ids\":[]}\n"+want || o.stderr != "" {
			t.Errorf("%q prints %q, want %q around an empty list", source, o.stdout, want)
		}
		o = mustCall(t, strings.ReplaceAll(fmt.Sprintf("%v\n[]\n", ref.DecodeIDs), " ", ","), append([]string{"tokenize", "--decode"}, source...)...)
		var got jsonlines.Text
		first, second, _ := strings.Cut(o.stdout, "\n")
		if err := json.Unmarshal([]byte(first), &got); err != nil || got.Text != ref.DecodeText || second != "{\"text\":\"\"}\n" {
			t.Errorf("%q --decode prints %q, want %q", source, o.stdout, ref.DecodeText)
		}
		if strings.Contains(o.stdout, `\u003c`) {
			t.Errorf("--decode prints %q, want < as it is", o.stdout)
		}
	}
}

func TestTokenizeSpecialTokens(t *testing.T) {
	model, ref := loadE2E(t)
	ids := strings.ReplaceAll(fmt.Sprint(ref.IDs), " ", ",")
	decode := func(flags ...string) string {
		var got jsonlines.Text
		o := mustCall(t, ids, append([]string{"tokenize", "--decode", "--model", model}, flags...)...)
		if err := json.Unmarshal([]byte(o.stdout), &got); err != nil {
			t.Fatal(err)
		}
		return got.Text
	}
	if got := decode(); got != ref.Text {
		t.Errorf("decodes to %q, want %q", got, ref.Text)
	}
	want := strings.NewReplacer("<|im_start|>", "", "<|im_end|>", "").Replace(ref.Text)
	if got := decode("--skip-special"); got != want {
		t.Errorf("--skip-special decodes to %q, want %q", got, want)
	}
}

func TestTokenizeBadLines(t *testing.T) {
	model, _ := loadE2E(t)
	for _, c := range []struct {
		name, in string
		decode   bool
		want     string
	}{
		{"no JSON", "{\"text\":\"a\"}\nhello\n", false, "line 2 of stdin: this is not an object"},
		{"blank line", "{\"text\":\"a\"}\n\n{\"text\":\"a\"}\n", false, "line 2 of stdin"},
		{"no text", "{}\n", false, `line 1 of stdin: this is not an object like {"text": "..."}: "text" is missing`},
		{"null", "null\n", false, "line 1 of stdin"},
		{"text that is a number", "{\"text\":1}", false, "line 1 of stdin"},
		{"half a line", "{\"text\":\"a\"}\n{\"text\":\"b", false, "line 2 of stdin"},
		{"two objects", "{\"text\":\"a\"} {\"text\":\"b\"}\n", false, "line 1 of stdin"},
		{"not UTF-8", "{\"text\":\"\xff\"}\n", false, "line 1 of stdin: this is not an object like {\"text\": \"...\"}: it is not UTF-8"},
		{"no list", "[1]\n[2]\n{}\n", true, "line 3 of stdin: this is not a JSON list"},
		{"fraction", "[1.5]\n", true, "line 1 of stdin"},
		{"negative id", "[1,-1]\n", true, "line 1 of stdin: id -1 at index 1 is negative"},
		{"id that does not fit", "[99999999999]\n", true, "line 1 of stdin"},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := []string{"tokenize", "--model", model}
			if c.decode {
				args = append(args, "--decode")
			}
			o := call(t, c.in, args...)
			if o.code != exitFailed || !strings.Contains(o.stderr, c.want) || strings.Count(o.stderr, "\n") != 1 {
				t.Errorf("exit %d, stderr %q, want %d and %q", o.code, o.stderr, exitFailed, c.want)
			}
			if got, want := strings.Count(o.stdout, "\n"), strings.Count(c.in[:strings.LastIndex(strings.TrimRight(c.in, "\n"), "\n")+1], "\n"); c.name != "blank line" && got != want {
				t.Errorf("%d lines were printed, want the %d before the bad one: %q", got, want, o.stdout)
			}
		})
	}
}

func TestTokenizeLongLine(t *testing.T) {
	model, _ := loadE2E(t)
	text := strings.Repeat("The quick brown fox. ", 50_000) // 1 MB
	o := mustCall(t, `{"text":"`+text+`"}`+"\n", "tokenize", "--model", model)
	var ids jsonlines.IDs
	if err := json.Unmarshal([]byte(o.stdout), &ids); err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(ids.IDs)
	if err != nil {
		t.Fatal(err)
	}
	var back jsonlines.Text
	if err := json.Unmarshal([]byte(mustCall(t, string(list), "tokenize", "--decode", "--model", model).stdout), &back); err != nil || back.Text != text {
		t.Errorf("a line of 1 MB does not come back: %d bytes, %v", len(back.Text), err)
	}
}

// A program may write a line, read the answer, and write the next.
func TestTokenizeAnswersLineByLine(t *testing.T) {
	model, _ := loadE2E(t)
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	code := make(chan int)
	go func() {
		c := run(t.Context(), []string{"tokenize", "--model", model}, inR, outW, outW, testEnv())
		outW.Close()
		code <- c
	}()
	answers := json.NewDecoder(outR)
	for _, text := range []string{"one", "two", "three"} {
		if _, err := fmt.Fprintf(inW, "{\"text\":%q}\n", text); err != nil {
			t.Fatal(err)
		}
		var ids jsonlines.IDs
		if err := answers.Decode(&ids); err != nil || len(ids.IDs) == 0 {
			t.Fatalf("no answer to %q: %v, %v", text, ids, err)
		}
	}
	inW.Close()
	if c := <-code; c != exitOK {
		t.Errorf("exit %d, want %d", c, exitOK)
	}
}
