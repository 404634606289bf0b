package expertio

import "testing"

// layer is one whose speculation is judged.
type layer struct {
	t *testing.T
	p pause
}

// play plays rows that save and waste so many reads each until a pause begins or ends, at most so
// many, and returns how many they were.
func (l *layer) play(most int, saved, wasted, cost float64) (rows int, begun, ended bool) {
	for rows < most && !begun && !ended {
		if !l.p.on() {
			l.p.saved[0] += saved
			l.p.wasted[0] += wasted
		}
		begun, ended = l.p.visit(1, cost)
		rows++
	}
	return rows, begun, ended
}

// pays wants no pause.
func (l *layer) pays(saved, wasted, cost float64) {
	l.t.Helper()
	if rows, begun, _ := l.play(1000, saved, wasted, cost); begun {
		l.t.Errorf("a pause begins after %d rows that save %v reads and waste %v at a cost of %v", rows, saved, wasted, cost)
	}
}

// fails wants a pause after so many rows, that lasts so long.
func (l *layer) fails(saved, wasted, cost float64, after, lasts int) {
	l.t.Helper()
	if rows, begun, _ := l.play(1000, saved, wasted, cost); !begun || rows != after {
		l.t.Errorf("%d rows save %v reads and waste %v at a cost of %v, pause %v; want a pause after %d", rows, saved, wasted, cost, begun, after)
	}
	if rows, _, ended := l.play(5000, 0, 0, cost); !ended || rows != lasts {
		l.t.Errorf("a pause of %d rows (ended: %v), want %d", rows, ended, lasts)
	}
}

// TestPause plays rows of a layer whose speculation is worth more and less.
func TestPause(t *testing.T) {
	l := layer{t: t}
	l.pays(1, 2, 0.25)
	l = layer{t: t}
	l.pays(0, float64(fewWasted-1)/(2*pauseRows), 1) // too few to judge by
	l = layer{t: t}
	l.fails(0.25, 2, 0.25, pauseRows, firstPause)
	for lasts := 2 * firstPause; lasts < 2*longestPause; lasts *= 2 {
		l.fails(0, 1, 0.25, pauseRows, lasts)
	}
	l.fails(0, 1, 0.25, pauseRows, longestPause)
	l.pays(1, 1, 0.5)
	// What was saved half a window ago still counts, so it takes a while to fail, and the first
	// pause is short again.
	l = layer{t: t, p: pause{next: longestPause}}
	if rows, begun, _ := l.play(4*pauseRows, 1, 0, 1); begun {
		t.Errorf("a pause after %d good rows", rows)
	}
	l.fails(0, 0.75, 1, 2*pauseRows, firstPause)
}

// TestLongPrompt counts rows, not visits.
func TestLongPrompt(t *testing.T) {
	var p pause
	p.wasted[0] = 100
	if begins, _ := p.visit(512, 1); !begins {
		t.Fatal("a prompt's visit ends no half of the window")
	}
	if _, ends := p.visit(512, 1); !ends {
		t.Errorf("%d rows of a pause are left after 512", p.left)
	}
}
