package main

import "strings"

// stopper cuts a text at the first stop string, however the text is cut into pieces. What might be the beginning of a
// stop string is held back until it is decided. Of several stop strings the one that is complete first wins, of those
// the longest.
type stopper struct {
	stops   []string // none is empty
	held    string
	stopped bool
}

// push adds text and returns what can be printed. Once a stop string was found nothing comes any more.
func (s *stopper) push(text string) string {
	if s.stopped {
		return ""
	}
	s.held += text
	if begin, ok := s.find(); ok {
		out := s.held[:begin]
		s.held, s.stopped = "", true
		return out
	}
	keep := s.openPrefix()
	out := s.held[:len(s.held)-keep]
	s.held = s.held[len(out):]
	return out
}

// flush returns what was held back; the text has ended.
func (s *stopper) flush() string {
	out := s.held
	s.held = ""
	return out
}

// find returns where the winning stop string begins in what is held.
func (s *stopper) find() (begin int, ok bool) {
	end := len(s.held) + 1
	for _, stop := range s.stops {
		i := strings.Index(s.held, stop)
		if i < 0 {
			continue
		}
		if e := i + len(stop); e < end || e == end && i < begin {
			begin, end, ok = i, e, true
		}
	}
	return begin, ok
}

// openPrefix returns the length of the longest end of what is held that begins a stop string.
func (s *stopper) openPrefix() int {
	longest := 0
	for _, stop := range s.stops {
		for n := min(len(stop)-1, len(s.held)); n > longest; n-- {
			if strings.HasSuffix(s.held, stop[:n]) {
				longest = n
			}
		}
	}
	return longest
}
