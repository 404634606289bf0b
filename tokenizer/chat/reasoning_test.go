package chat

import (
	"strings"
	"testing"
)

func TestReasoning(t *testing.T) {
	const plain, opened = "<|im_start|>assistant\n", "<|im_start|>assistant\n<think>\n"
	for _, c := range []struct {
		name, prompt, answer string
		thought, said        string
	}{
		{"none", plain, "Hello", "", "Hello"},
		{"content is left alone", plain, "\n Hello \n", "", "\n Hello \n"},
		{"marked", plain, "<think>\nhm\n</think>\n\nHello\n", "hm", "Hello\n"},
		{"white space before the mark", plain, "\n \t<think>hm</think>Hello", "hm", "Hello"},
		{"opened by the prompt", opened, "hm\n\nwell\n</think>\n\nHello", "hm\n\nwell", "Hello"},
		{"opened by the prompt without a line feed", "<think>", "\nhm</think>Hello", "hm", "Hello"},
		{"opened and closed by the prompt", opened + "\n</think>\n\n", "Hello", "", "Hello"},
		{"opened twice", opened, "<think>hm</think>Hello", "<think>hm", "Hello"},
		{"empty", plain, "<think>\n\n</think>\n\nHello", "", "Hello"},
		{"never closed", opened, "hm\n", "hm", ""},
		{"never closed, the mark begun", opened, "hm\n</thi", "hm\n</thi", ""},
		{"no content", plain, "<think>hm</think>\n\n", "hm", ""},
		{"mark in the content", plain, "Use <think> like </think> this", "", "Use <think> like </think> this"},
		{"second marks are content", plain, "<think>a</think>b<think>c</think>d", "a", "b<think>c</think>d"},
		{"mark begun", plain, "<thi", "", "<thi"},
		{"another tag", plain, "<table>", "", "<table>"},
		{"white space alone", plain, " \n", "", " \n"},
		{"nothing", opened, "", "", ""},
		{"spaces are the reasoning's own", plain, "<think> hm </think> Hello", " hm ", " Hello"},
	} {
		t.Run(c.name, func(t *testing.T) {
			thought, said := SplitReasoning(c.prompt, c.answer)
			if thought != c.thought || said != c.said {
				t.Errorf("prompt %q, answer %q: reasoning %q, content %q; want %q, %q", c.prompt, c.answer, thought, said, c.thought, c.said)
			}
		})
	}
}

// Content between marks is shown as soon as it is certain, too.
func TestReasoningOfMarkedContent(t *testing.T) {
	m := Marks{Begin: "<think>", End: "</think>", Answer: "<answer>", AnswerEnd: "</answer>"}
	r := m.NewReasoning("")
	for _, c := range []struct{ push, thought, said string }{
		{"<think>\nhm</think>\n", "hm", ""}, {"<ans", "", ""}, {"wer>\n", "", ""}, {"\na\n", "", "a"}, {"b</", "", "\nb"}, {"b>\n</answer", "", "</b>"}, {">\n", "", ""}, {"c\n", "", "c\n"},
	} {
		if thought, said := r.Push(c.push); thought != c.thought || said != c.said {
			t.Errorf("after %q: reasoning %q, content %q; want %q, %q", c.push, thought, said, c.thought, c.said)
		}
	}
	if thought, said := r.Flush(); thought != "" || said != "" {
		t.Errorf("held %q, %q", thought, said)
	}
}

// Text is shown as soon as it is certain.
func TestReasoningComesAtOnce(t *testing.T) {
	r := NewReasoning("")
	for _, c := range []struct{ push, thought, said string }{
		{"\n<th", "", ""}, {"ink>", "", ""}, {"\nhm", "hm", ""}, {"\n", "", ""}, {"a <", "\na ", ""}, {"/b> </th", "</b> ", ""},
		{"ink", "", ""}, {">\n", "", ""}, {"\nHi", "", "Hi"}, {"\n", "", "\n"},
	} {
		if thought, said := r.Push(c.push); thought != c.thought || said != c.said {
			t.Errorf("after %q: reasoning %q, content %q; want %q, %q", c.push, thought, said, c.thought, c.said)
		}
	}
}

// However an answer is cut, the same comes out, and nothing but marks and line feeds is lost.
func FuzzReasoning(f *testing.F) {
	f.Add("<think>\na\n\nb</think>\n\nc", false, 3)
	f.Add("a\n</think\n</think>\n", true, 1)
	f.Add("  <think", false, 2)
	f.Fuzz(func(t *testing.T, answer string, opened bool, step int) {
		if step < 1 {
			return
		}
		prompt := "x"
		if opened {
			prompt = "<think>\n"
		}
		wantThought, wantSaid := SplitReasoning(prompt, answer)
		r, thought, said := NewReasoning(prompt), "", ""
		for rest := answer; rest != ""; {
			n := min(step, len(rest))
			a, b := r.Push(rest[:n])
			if a != "" && said != "" {
				t.Errorf("reasoning %q after content %q", a, said)
			}
			thought, said, rest = thought+a, said+b, rest[n:]
		}
		a, b := r.Flush()
		thought, said = thought+a, said+b
		if thought != wantThought || said != wantSaid {
			t.Errorf("answer %q in steps of %d: reasoning %q, content %q; as a whole %q, %q", answer, step, thought, said, wantThought, wantSaid)
		}
		bare := func(s string) string {
			for _, mark := range []string{"<think>", "</think>", "\n", " ", "\t", "\r"} {
				s = strings.ReplaceAll(s, mark, "")
			}
			return s
		}
		if got, want := bare(thought)+bare(said), bare(answer); len(got) > len(want) || bare(got) != bare(want) {
			t.Errorf("answer %q: %q and %q hold other text", answer, thought, said)
		}
	})
}
