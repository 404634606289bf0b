package stagetest

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
)

// Log makes f receive every message at the moment it is delivered, and every answer to a caller.
// from and to are names of stages, or "caller", "read pool", "device" and "timer". A nil f ends it.
func (s *Sim) Log(f func(from, to string, m stages.Message)) { s.log = f }

func (s *Sim) note(from, to string, m stages.Message) {
	if s.log != nil {
		s.log(from, to, m)
	}
}

// stageName names the sender or receiver of a link.
func stageName(i int) string {
	if i == stages.NumStages {
		return "caller"
	}
	return stages.StageID(i).String()
}

// looseSender names who sends a message that no stage sends.
func looseSender(m stages.Message) string {
	switch m.(type) {
	case *stages.TicketDone:
		return "device"
	case *stages.LingerOver, *stages.StintOver:
		return "timer"
	case *stages.StateParked, *stages.StateReturned:
		return "parking store"
	case *stages.ExpertsAnswered:
		return "remote"
	}
	return "read pool"
}

// LogLine writes a delivered message as one line of a message log: sender, receiver, type, layer,
// and the fields that are not zero. Of floats only the number is shown, so that a log is the same
// on every machine.
func LogLine(from, to string, m stages.Message) string {
	v := reflect.ValueOf(m).Elem()
	line := fmt.Sprintf("%-9s -> %-9s %s", from, to, v.Type().Name())
	if h := m.Head(); h != nil {
		line += fmt.Sprintf(" step=%d layer=%d", h.ID, h.Layer)
	}
	for i := range v.NumField() {
		f, x := v.Type().Field(i), v.Field(i)
		if f.Anonymous || !f.IsExported() || x.IsZero() {
			continue
		}
		if value := logValue(x); value != "" {
			line += " " + strings.ToLower(f.Name) + "=" + value
		}
	}
	return line
}

// logValue returns "" for what says nothing in a log: callers, tickets and memory.
func logValue(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case []float32:
		return fmt.Sprintf("[%d]", len(x))
	case []stages.ReadResult:
		var b strings.Builder
		for _, r := range x {
			fmt.Fprintf(&b, "slot %d", r.Slot)
		}
		return "{" + b.String() + "}"
	case *stages.RoutePlan:
		experts := make([]int32, len(x.Uses))
		for i, u := range x.Uses {
			experts[i] = u.Expert
		}
		return fmt.Sprintf("{experts %v}", experts)
	case stages.Ticket, *stages.Stats, *stages.ChunkEvaluated, stages.Account:
		return ""
	}
	if v.Kind() == reflect.Interface {
		return ""
	}
	return formatValue(v)
}

// CompareLog compares a message log with a file. With -update it writes the file.
func CompareLog(t *testing.T, file string, lines []string) {
	t.Helper()
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (make it with -update)", err)
	}
	if got == string(want) {
		return
	}
	wants := strings.Split(strings.TrimSuffix(string(want), "\n"), "\n")
	for i := range max(len(lines), len(wants)) {
		if i >= len(lines) || i >= len(wants) || lines[i] != wants[i] {
			t.Fatalf("%s:%d: the log has %d lines, the file %d, and they differ from here on:\ngot\n%s\nwant\n%s",
				file, i+1, len(lines), len(wants), strings.Join(lines[min(i, len(lines)):min(i+3, len(lines))], "\n"), strings.Join(wants[min(i, len(wants)):min(i+3, len(wants))], "\n"))
		}
	}
}
