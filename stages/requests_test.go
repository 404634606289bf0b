package stages_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
)

// TestKinds checks that every message type of the sources is among Blanks once, and nothing else,
// and that the kind of each has the type's name.
func TestKinds(t *testing.T) {
	types, _ := parse(t)
	seen := make(map[stages.Kind]bool)
	for i, m := range stages.Blanks() {
		if m == nil {
			t.Fatalf("%v has no row in blanks", stages.Kind(i+1))
		}
		name := reflect.TypeOf(m).Elem().Name()
		if k := m.MessageKind(); seen[k] || k.String() != name {
			t.Errorf("%s has kind %v (seen before: %v)", name, k, seen[k])
		}
		seen[m.MessageKind()] = true
		if !types[name] {
			t.Errorf("%s is not a message", name)
		}
		delete(types, name)
	}
	for name, message := range types {
		if message {
			t.Errorf("message %s has no kind in kinds.go", name)
		}
	}
	if seen[stages.KindOther] || len(seen) != int(stages.NumKinds)-1 {
		t.Errorf("%d kinds have a message, want %d", len(seen), stages.NumKinds-1)
	}
	if got, want := stages.KindOther.String()+stages.NumKinds.String(), "otherkind "; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q and a number", got, want)
	}
}

// TestRequests checks that each message with a Caller, and no other but CancelEval and Withdraw, is
// a Request: asked by somebody it gets a Caller unless it has one, and goes to the stage that
// doc.go says.
func TestRequests(t *testing.T) {
	_, doc := parse(t)
	n := 0
	for _, blank := range stages.Blanks() {
		typ := reflect.TypeOf(blank).Elem()
		name := typ.Name()
		p := reflect.New(typ)
		field, has := typ.FieldByName("Caller")
		r, ok := p.Interface().(stages.Request)
		if ok != (has || name == "CancelEval" || name == "Withdraw") {
			t.Errorf("%s is a request: %v, it has a caller: %v", name, ok, has)
		}
		if !ok {
			continue
		}
		n++
		line := regexp.MustCompile(`(?m)^\t` + name + `\s+\w+ -> ([\w-]+)`).FindStringSubmatch(doc)
		if to := r.Ask("sender"); line == nil || to.String() != strings.ToLower(line[1]) {
			t.Errorf("%s goes to %s, but doc.go says %q", name, to, line)
		}
		if !has {
			continue
		}
		if got := p.Elem().FieldByIndex(field.Index).Interface(); got != "sender" {
			t.Errorf("%s has caller %v", name, got)
		}
		if r.Ask("another"); p.Elem().FieldByIndex(field.Index).Interface() != "sender" {
			t.Errorf("%s has lost its caller", name)
		}
	}
	if n < 20 {
		t.Errorf("found %d requests", n)
	}
	resize, collect := &stages.ResizeSlots{Memory: true}, new(stages.CollectStats)
	resize.Ask(nil)
	collect.Ask(nil)
	if resize.Memory || collect.Stats == nil {
		t.Errorf("from outside: a bound of memory %v, stats %v", resize.Memory, collect.Stats)
	}
}
