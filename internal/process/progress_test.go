package process

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/internal/figures"
)

// newTestProgress returns a progress whose clock the test moves.
func newTestProgress(terminal bool) (*Progress, *bytes.Buffer, *time.Time) {
	var out bytes.Buffer
	now := time.Unix(1000, 0)
	inv := &Invocation{Stderr: &out, StderrTerminal: terminal, Env: Env{Now: func() time.Time { return now }}}
	return NewProgress(inv), &out, &now
}

func TestProgressLines(t *testing.T) {
	p, out, now := newTestProgress(false)
	for i := range int64(100) {
		p.Update("work", i, 100, FormatCount)
		*now = now.Add(200 * time.Millisecond)
	}
	p.Clear()
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 3 || lines[0] != "moeflux-actor: work: 25 of 100 (25%), 15s left" {
		t.Errorf("20 s of work print %q, want 3 lines, the first at a quarter with 15s left", lines)
	}
	if strings.ContainsAny(out.String(), "\r\x1b") {
		t.Errorf("plain lines hold terminal codes: %q", out)
	}
}

// Work that began in the middle shows its rate, and the time that the rest takes at that.
func TestProgressRate(t *testing.T) {
	p, out, now := newTestProgress(false)
	for i := range int64(60) { // 2 a second from 800 on, and 4 a second after 20 s
		moved := 2 * i
		if i > 20 {
			moved = 40 + 4*(i-20)
		}
		p.Moved(moved)
		p.Update("work", 800+moved, 1200, FormatCount)
		*now = now.Add(time.Second)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 11 || lines[0] != "moeflux-actor: work: 810 of 1200 (67%), 2/s, 3m15s left" || lines[10] != "moeflux-actor: work: 980 of 1200 (81%), 4/s, 55s left" {
		t.Errorf("%d lines, %q", len(lines), lines)
	}
	p, out, now = newTestProgress(false)
	*now = now.Add(6 * time.Second)
	p.Moved(0)
	p.Update("work", 800, 1200, FormatCount)
	if out.String() != "moeflux-actor: work: 800 of 1200 (66%)\n" {
		t.Errorf("nothing came yet: %q", out)
	}
}

func TestProgressOfShortWorkIsSilent(t *testing.T) {
	p, out, _ := newTestProgress(false)
	p.Update("work", 1, 2, FormatCount)
	p.Update("work", 2, 2, FormatCount)
	p.Clear()
	if out.Len() != 0 {
		t.Errorf("prints %q, want nothing", out)
	}
}

func TestProgressBar(t *testing.T) {
	p, out, now := newTestProgress(true)
	p.Update("work", 0, 4096, figures.Bytes)
	p.Update("work", 1024, 4096, figures.Bytes) // too soon
	*now = now.Add(time.Second)
	p.Update("work", 2048, 4096, figures.Bytes)
	p.Clear()
	p.Clear()
	got := out.String()
	if strings.Count(got, "\r") != 3 || !strings.Contains(got, "[============            ] work: 2.00 KiB of 4.00 KiB (50%)") {
		t.Errorf("prints %q, want two bars and one clearing", got)
	}
	if !strings.HasSuffix(got, "\r\x1b[K") || strings.Contains(got, "\n") {
		t.Errorf("prints %q, want no line feed and a clean line at the end", got)
	}
}

func TestProgressWithoutTotal(t *testing.T) {
	p, out, now := newTestProgress(false)
	*now = now.Add(time.Minute)
	p.Update("work", 5, 0, FormatCount)
	if !strings.Contains(out.String(), "work: 5 of 0 (0%)") {
		t.Errorf("prints %q", out)
	}
}
