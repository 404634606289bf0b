package stagetest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
)

var update = flag.Bool("update", false, "write what the stages answer into the scripts; read the difference")

// Scripted is a core that scripts run.
type Scripted struct {
	Core stages.Core
	// Do, if set, obeys commands that are no messages; it returns lines to show.
	Do func(command string, a *Args) ([]string, error)
	// Also, if set, returns what the core has done beside its outbox since it was asked last, a
	// line each.
	Also func() []string
}

// RunScripts runs every script that matches glob: messages in, what the core answers out.
//
//	# a comment
//	== name of a scenario
//	config layers=2 depth=1
//
//	OpenSequence seq=1 caller=a
//	  dispatch: OpenSequence seq=1 caller=a
//
// A scenario begins with an empty core, which open makes of the config line. A command is a
// message: its type and its fields in lower case; step=, layer= and atus= (when it was sent, in
// microseconds) stand for the Step. Lines that are indented are the answer: what the outbox holds,
// in the order in which a shell performs it, and an error as "error:". "itself" is the message that
// the core sent to itself last. Three commands describe what messages share: "step ID lane= rows="
// a batch (a row is seq@pos:token, with * if its logits are wanted, *^ the largest alone), "plan
// NAME topk= picks= weights= uses=" a RoutePlan (a use is expert:pair+pair), and whatever
// Scripted.Do knows. With -update answers are written into the files.
func RunScripts(t *testing.T, glob string, open func(t *testing.T, cfg *Args) Scripted) {
	t.Helper()
	files, err := filepath.Glob(glob)
	if err != nil || len(files) == 0 {
		t.Fatalf("no script matches %s (error %v)", glob, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { runScript(t, file, open) })
	}
}

// runScript runs the scenarios of one file.
func runScript(t *testing.T, file string, open func(*testing.T, *Args) Scripted) {
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	lines := strings.Split(strings.TrimRight(string(raw), "\n"), "\n")
	for at := 0; at < len(lines); {
		name, ok := strings.CutPrefix(lines[at], "== ")
		if !ok { // the head of the file
			got = append(got, lines[at])
			at++
			continue
		}
		end := at + 1
		for end < len(lines) && !strings.HasPrefix(lines[end], "== ") {
			end++
		}
		got = append(got, lines[at])
		t.Run(name, func(t *testing.T) {
			s := &scenario{t: t, open: open, file: file, batches: make(map[stages.StepID]*stages.Batch), shown: make(map[stages.StepID]bool),
				plans: make(map[string]*stages.RoutePlan)}
			got = append(got, s.run(lines[at+1:end], at+1)...)
		})
		at = end
	}
	if *update && !t.Failed() {
		if err := os.WriteFile(file, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// scenario is one life of a core.
type scenario struct {
	t       *testing.T
	open    func(*testing.T, *Args) Scripted
	file    string
	core    Scripted
	out     stages.Outbox
	batches map[stages.StepID]*stages.Batch
	shown   map[stages.StepID]bool // steps whose batch stands in the script
	plans   map[string]*stages.RoutePlan
	own     stages.Message // what the core sent itself last
}

// run obeys the lines of a scenario, the first of which is line number first of the file, counted
// from 0. It returns the lines with the right answers.
func (s *scenario) run(lines []string, first int) (right []string) {
	for at := 0; at < len(lines); {
		line := lines[at]
		right = append(right, line)
		at++
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var want []string
		for at < len(lines) && strings.HasPrefix(lines[at], "  ") {
			want = append(want, lines[at][2:])
			at++
		}
		got, err := s.obey(line)
		if err != nil {
			s.t.Fatalf("%s:%d: %s: %v", s.file, first+at-len(want), line, err)
		}
		if !*update && !slices.Equal(got, want) {
			s.t.Fatalf("%s:%d: %s\ngot\n  %s\nwant\n  %s", s.file, first+at-len(want), line, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
		}
		for _, l := range got {
			right = append(right, "  "+l)
		}
	}
	return right
}

// obey does what one command says and returns the answer.
func (s *scenario) obey(line string) (got []string, err error) {
	name, rest, _ := strings.Cut(line, " ")
	a, err := parseArgs(rest)
	if err != nil {
		return nil, err
	}
	switch {
	case name == "config":
		s.core = s.open(s.t, a)
	case s.core.Core == nil:
		return nil, errors.New("a scenario begins with a config line")
	case name == "step":
		err = s.declareStep(a)
	case name == "plan":
		err = s.declarePlan(a)
	case name == "itself" && s.own != nil:
		m := s.own
		s.own = nil
		got = s.step(m)
	case messages[name] != nil:
		var m stages.Message
		if m, err = s.message(name, a); err == nil {
			got = s.step(m)
		}
	case s.core.Do != nil:
		got, err = s.core.Do(name, a)
	default:
		return nil, errors.New("no such command")
	}
	if err == nil {
		err = a.Err()
	}
	return got, err
}

// step gives the core a message and shows what comes of it.
func (s *scenario) step(m stages.Message) (got []string) {
	defer func() {
		if r := recover(); r != nil {
			s.t.Errorf("the core panics on %s: %v", s.format(m), r)
		}
	}()
	s.out.Reset()
	err := s.core.Core.Step(m, &s.out)
	if s.core.Also != nil {
		got = append(got, s.core.Also()...)
	}
	got = append(got, s.box()...)
	if err != nil {
		got = append(got, fmt.Sprintf("error: %v", err))
	}
	return got
}

// box shows the outbox in the order in which a shell performs it.
func (s *scenario) box() (got []string) {
	for _, id := range s.out.Frees {
		got = append(got, fmt.Sprintf("free %d", id))
	}
	for _, g := range s.out.Reads {
		line := map[stages.Rank]string{
			stages.GuessRead: "read ahead", stages.DemandRead: "read", stages.UrgentGuess: "read ahead, urgent", stages.UrgentRead: "read, urgent",
		}[g.Rank]
		line += fmt.Sprintf(" step=%d layer=%d:", g.Step.ID, g.Step.Layer)
		for _, r := range g.Reads {
			line += fmt.Sprintf(" %d.%d=%d/%d", r.Slot, r.Gen, r.Layer, r.Expert)
		}
		got = append(got, line)
	}
	for _, h := range s.out.Hurries {
		line := fmt.Sprintf("hurry %d.%d", h.Slot, h.Gen)
		if h.Rank.Urgent() {
			line += ", urgent"
		}
		got = append(got, line)
	}
	for _, r := range s.out.Recalls {
		got = append(got, fmt.Sprintf("recall %d.%d", r.Slot, r.Gen))
	}
	for i := range s.out.Parks {
		got = append(got, "store: "+strings.TrimPrefix(formatFields(reflect.ValueOf(s.out.Parks[i])), " "))
	}
	for _, a := range s.out.Awaits {
		got = append(got, fmt.Sprintf("await %d step=%d layer=%d ticket=%s", a.ID, a.Step.ID, a.Step.Layer, ticketName(a.Ticket)))
	}
	for _, m := range s.out.Sends {
		if h := m.Msg.Head(); h != nil && h.Batch != nil && !s.shown[h.ID] {
			s.shown[h.ID], s.batches[h.ID] = true, h.Batch
			got = append(got, formatBatch(h))
		}
		got = append(got, fmt.Sprintf("%s: %s", m.To, s.format(m.Msg)))
		if messages[reflect.TypeOf(m.Msg).Elem().Name()] == nil { // a stage's own, for itself
			s.own = m.Msg
		}
	}
	for _, a := range s.out.Answers {
		got = append(got, fmt.Sprintf("answer %v: %s", a.To, s.format(a.Msg)))
	}
	for _, n := range s.out.Notes {
		line := "note: " + n.Text
		for i := 0; i+1 < len(n.Args); i += 2 {
			line += fmt.Sprintf(" %v=%v", n.Args[i], n.Args[i+1])
		}
		got = append(got, line)
	}
	if l := s.out.Linger; l.Round != 0 {
		got = append(got, fmt.Sprintf("linger %d", l.Round))
	}
	if s.out.Stint != 0 {
		got = append(got, fmt.Sprintf("stint %dus", s.out.Stint/1000))
	}
	return got
}
