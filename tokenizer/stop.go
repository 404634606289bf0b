package tokenizer

import "strings"

// StopStream cuts a text at the first stop string, however the text is divided into pieces. What
// may be the beginning of a stop string is held back until that is certain. Of several stop strings
// the one that is complete first wins, then the longest. It is for one goroutine.
type StopStream struct {
	stops []string // none is empty
	held  string
	found string
}

// NewStopStream returns a StopStream at the beginning of a text. Empty stop strings stop nothing.
func NewStopStream(stops ...string) *StopStream {
	s := &StopStream{}
	for _, stop := range stops {
		if stop != "" {
			s.stops = append(s.stops, stop)
		}
	}
	return s
}

// Push adds text and returns what certainly comes before any stop string. Once one was found it
// returns nothing more.
func (s *StopStream) Push(text string) string {
	if s.found != "" {
		return ""
	}
	s.held += text
	if begin, stop := s.find(); stop != "" {
		out := s.held[:begin]
		s.held, s.found = "", stop
		return out
	}
	out := s.held[:len(s.held)-heldBack(s.held, s.stops...)]
	s.held = s.held[len(out):]
	return out
}

// Flush returns what was held back; the text has ended.
func (s *StopStream) Flush() string {
	out := s.held
	s.held = ""
	return out
}

// Found returns the stop string that ended the text, "" if none has come so far.
func (s *StopStream) Found() string { return s.found }

// find returns the winning stop string in what is held and where it begins.
func (s *StopStream) find() (begin int, stop string) {
	end := len(s.held) + 1
	for _, candidate := range s.stops {
		i := strings.Index(s.held, candidate)
		if i < 0 {
			continue
		}
		if e := i + len(candidate); e < end || e == end && i < begin {
			begin, end, stop = i, e, candidate
		}
	}
	return begin, stop
}

// heldBack returns the length of the longest suffix of text that is a proper prefix of one of the
// words.
func heldBack(text string, words ...string) int {
	longest := 0
	for _, word := range words {
		for n := min(len(word)-1, len(text)); n > longest; n-- {
			if strings.HasSuffix(text, word[:n]) {
				longest = n
			}
		}
	}
	return longest
}
