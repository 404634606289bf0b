package tokenizer

import (
	"strings"
	"testing"
)

// feedStop pushes pieces and returns what can be printed after each, and in all.
func feedStop(stops, pieces []string) (prints []string, all string, stopped bool) {
	s := NewStopStream(stops...)
	for _, p := range pieces {
		prints = append(prints, s.Push(p))
	}
	prints = append(prints, s.Flush())
	return prints, strings.Join(prints, ""), s.Found() != ""
}

func TestStopStream(t *testing.T) {
	for _, c := range []struct {
		name          string
		stops, pieces []string
		prints        string // what each push and the flush print, separated by |
		stopped       bool
	}{
		{"no stop string", nil, []string{"ab", "c"}, "ab|c|", false},
		{"inside one piece", []string{"STOP"}, []string{"abSTOPcd"}, "ab||", true},
		{"across a border", []string{"STOP"}, []string{"abST", "OPcd"}, "ab|||", true},
		{"byte by byte", []string{"STOP"}, []string{"a", "S", "T", "O", "P", "b"}, "a|||||||", true},
		{"a prefix that comes to nothing", []string{"STOP"}, []string{"aST", "ART"}, "a|START", false},
		{"a prefix at the end of the text", []string{"STOP"}, []string{"aSTO"}, "a|STO", false},
		{"a prefix inside a false prefix", []string{"aab"}, []string{"aa", "ab", "x"}, "|a|||", true},
		{"at once", []string{"x"}, []string{"x"}, "||", true},
		{"earliest end wins", []string{"abcd", "bc"}, []string{"xabcd"}, "xa||", true},
		{"same end: the longest wins", []string{"c", "abc"}, []string{"xabc"}, "x||", true},
		{"the second stop string", []string{"zzz", "b"}, []string{"ab"}, "a||", true},
		{"an empty stop string", []string{"", "b"}, []string{"", "ab"}, "|a|", true},
		{"parts of characters are not printed", []string{"é!"}, []string{"caf", "é", "?"}, "caf||é?|", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			prints, _, stopped := feedStop(c.stops, c.pieces)
			got := strings.Join(prints, "|")
			want := c.prints
			if strings.Count(want, "|") < strings.Count(got, "|") {
				want += strings.Repeat("|", strings.Count(got, "|")-strings.Count(want, "|"))
			}
			if strings.TrimRight(got, "|") != strings.TrimRight(want, "|") || stopped != c.stopped {
				t.Errorf("stops %q, pieces %q: prints %q, stopped %v; want %q, %v", c.stops, c.pieces, got, stopped, want, c.stopped)
			}
		})
	}
}

// However a text is cut, the same is printed, it holds no stop string, and it is cut where the
// first one begins.
func FuzzStopStream(f *testing.F) {
	f.Add("hello STOP world", "STOP", "lo", 3)
	f.Add("aaaaab", "aab", "aaaab", 2)
	f.Add("日本語", "本", "x", 1)
	f.Fuzz(func(t *testing.T, text, stop1, stop2 string, step int) {
		if stop1 == "" || stop2 == "" || step < 1 {
			return
		}
		stops := []string{stop1, stop2}
		var pieces []string
		for rest := text; rest != ""; {
			n := min(step, len(rest))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		_, got, stopped := feedStop(stops, pieces)
		// The definition: cut at the stop string that is complete first, of those at the longest.
		want, wantStopped := text, false
		for end := 1; end <= len(text) && !wantStopped; end++ {
			for _, s := range stops {
				if strings.HasSuffix(text[:end], s) {
					wantStopped = true
					want = text[:min(len(want), end-len(s))]
				}
			}
		}
		if got != want || stopped != wantStopped {
			t.Errorf("text %q in steps of %d, stops %q: %q, %v; want %q, %v", text, step, stops, got, stopped, want, wantStopped)
		}
	})
}

// Found says which stop string it was.
func TestStopStreamFound(t *testing.T) {
	s := NewStopStream("END", "ND", "x")
	for _, piece := range []string{"a", "E", "N"} {
		s.Push(piece)
		if s.Found() != "" {
			t.Fatalf("found %q after %q", s.Found(), piece)
		}
	}
	if got := s.Push("D and x"); got != "" || s.Found() != "END" {
		t.Errorf("printed %q, found %q, want nothing and END", got, s.Found())
	}
}
