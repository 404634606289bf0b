package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

const gib = 1 << 30

// The decisions of the core, as scripts in simulated time. A line has the second, what happens, the
// model, and after "->" the commands that follow; a load begins and an unloading too, and both end
// where the script says so.
var decisions = []struct {
	name   string
	budget int64 // GiB
	idle   time.Duration
	models string // name:fixed[+least-most], GiB; a ! pins it
	script string
}{
	{"a model is loaded when it is wanted, and the second request finds it", 10, 0, "a:4", `
		0 want a -> load a
		1 want a ->
		5 loaded a -> admit a 2
		6 want a -> admit a 1
		7 left a ->
		8 left a ->
		9 left a ->`},
	{"what fits beside stays", 10, 0, "a:4 b:4", `
		0 want a -> load a
		1 loaded a -> admit a 1
		2 left a ->
		3 want b -> load b
		4 loaded b -> admit b 1`},
	{"one is loaded at a time", 10, 0, "a:4 b:4", `
		0 want a -> load a
		0 want b ->
		4 loaded a -> admit a 1, load b
		8 loaded b -> admit b 1`},
	{"nobody overtakes who waits for room", 10, 0, "a:6 b:6 c:2", `
		0 want a -> load a
		6 loaded a -> admit a 1
		7 want b ->
		8 want c ->
		9 left a -> unload a
		10 gone a -> load b
		16 loaded b -> admit b 1, load c`},
	{"an unused one leaves for one that is wanted", 10, 0, "a:6 b:6", `
		0 want a -> load a
		6 loaded a -> admit a 1
		7 left a ->
		8 want b -> unload a
		9 gone a -> load b
		15 loaded b -> admit b 1`},
	{"of those that cost the same, the one not used for longest leaves", 10, 0, "a:4 b:4 c:4", `
		0 want a -> load a
		4 loaded a -> admit a 1
		5 want b -> load b
		9 loaded b -> admit b 1
		10 left b ->
		60 left a ->
		100 want c -> unload b
		101 gone b -> load c`},
	{"one that takes long to bring back stays, though others were used later", 10, 0, "a:4 b:4 c:4", `
		0 want a -> load a
		300 loaded a -> admit a 1
		301 left a ->
		302 want b -> load b
		306 loaded b -> admit b 1
		340 left b ->
		400 want c -> unload b
		401 gone b -> load c`},
	{"no more leave than must: one large goes and two small stay", 10, 0, "a:2 b:2 c:6 d:6", `
		0 want a -> load a
		2 loaded a -> admit a 1
		3 left a ->
		4 want b -> load b
		6 loaded b -> admit b 1
		7 left b ->
		8 want c -> load c
		14 loaded c -> admit c 1
		15 left c ->
		100 want d -> unload c
		101 gone c -> load d`},
	{"a model with users stays until its turn is over, and then takes nobody new", 10, 0, "a:6 b:6", `
		0 want a -> load a
		6 loaded a -> admit a 1
		7 want b ->
		8 want a -> admit a 1
		9 left a ->
		53 tick ->
		54 tick ->
		55 want a ->
		56 left a -> unload a
		57 gone a -> load b
		63 loaded b -> admit b 1
		64 left b -> unload b
		65 gone b -> load a
		71 loaded a -> admit a 1`},
	{"who gives up lets the others in again", 10, 0, "a:6 b:6", `
		0 want a -> load a
		6 loaded a -> admit a 1
		60 want b ->
		61 want a ->
		62 gave-up b -> admit a 1
		63 left a ->
		64 left a ->`},
	{"who gives up while the model is loaded leaves it unused", 10, 5 * time.Second, "a:6", `
		0 want a -> load a
		1 gave-up a ->
		6 loaded a ->
		10 tick ->
		11 tick -> unload a
		12 gone a ->`},
	{"a failure is that of all who wait, and the next one tries again", 10, 0, "a:6 b:6", `
		0 want a -> load a
		1 want a ->
		1 want b ->
		2 failed a -> load b
		8 loaded b -> admit b 1
		9 left b ->
		10 want a -> unload b
		11 gone b -> load a`},
	{"unused models leave after a while, pinned ones do not", 10, 60 * time.Second, "a:4! b:4", `
		0 tick -> load a
		4 loaded a ->
		5 want b -> load b
		9 loaded b -> admit b 1
		10 left b ->
		69 tick ->
		70 tick -> unload b
		71 gone b ->
		500 tick ->`},
	{"who comes while it leaves waits, and has it loaded again", 10, 60 * time.Second, "a:4", `
		0 want a -> load a
		4 loaded a -> admit a 1
		5 left a ->
		65 tick -> unload a
		66 want a ->
		67 gone a -> load a
		71 loaded a -> admit a 1`},
	{"pinned models do not leave", 10, 0, "a:4! b:4 c:4", `
		0 tick -> load a
		4 loaded a ->
		5 want b -> load b
		9 loaded b -> admit b 1
		10 left b ->
		11 want c -> unload b
		12 gone b -> load c`},
	{"alone a model has all slots, beside others what is left by use", 12, 0, "a:1+1-8 b:1+1-8", `
		0 want a -> load a 8
		1 loaded a -> admit a 1
		2 want b -> share a 5, load b 5
		3 loaded b -> admit b 1
		4 left a ->
		123 tick -> share a 3.83, share b 6.17
		1000 tick -> share a 2, share b 8
		1001 left b ->`},
	{"what a model gives back goes to the others", 12, 60 * time.Second, "a:1+1-8 b:1+1-8", `
		0 want a -> load a 8
		1 loaded a -> admit a 1
		2 want b -> share a 5, load b 5
		3 loaded b -> admit b 1
		4 left b ->
		64 tick -> unload b
		65 gone b -> share a 8`},
	{"what leaves has its slots until it is gone", 12, 0, "a:4+1-6 b:1+1-8 c:6+1-1", `
		0 want a -> load a 6
		1 loaded a -> admit a 1
		2 left a ->
		3 want b -> share a 3.49, load b 3.51
		4 loaded b -> admit b 1
		5 want c -> unload a
		30 tick ->
		31 gone a -> share b 4, load c 1
		32 loaded c -> admit c 1
		33 left c ->`},
	{"a share is not changed while its model is loaded", 12, 0, "a:1+1-8 b:1+1-8", `
		0 want a -> load a 8
		1 loaded a -> admit a 1
		1 left a ->
		2 want b -> share a 4.99, load b 5.01
		200 tick ->
		300 loaded b -> admit b 1, share a 2.61, share b 7.39`},
}

func TestDecisions(t *testing.T) {
	for _, d := range decisions {
		t.Run(d.name, func(t *testing.T) {
			c, err := NewCore(d.budget*gib, d.idle, parseSpecs(t, d.models))
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(strings.TrimSpace(d.script)) {
				did, want, ok := strings.Cut(strings.TrimSpace(line), " ->")
				if !ok {
					t.Fatalf("the script has %q", line)
				}
				if got := strings.Join(do(t, c, did), ", "); got != strings.TrimSpace(want) {
					t.Errorf("%s -> %s, want%s", did, got, want)
				}
			}
		})
	}
}

// do has an event of a script happen and returns the commands in words.
func do(t *testing.T, c *Core, line string) (said []string) {
	t.Helper()
	var seconds int64
	var event, name string
	if n, err := fmt.Sscan(line, &seconds, &event, &name); n < 2 {
		t.Fatalf("%q: %v", line, err)
	}
	model := slices.IndexFunc(c.models, func(m held) bool { return m.Name == name })
	now := time.Duration(seconds) * time.Second
	var all []Command
	switch event {
	case "want":
		all = c.Want(now, model)
	case "left":
		all = c.Left(now, model)
	case "gave-up":
		all = c.GaveUp(now, model)
	case "loaded":
		all = c.Loaded(now, model, now-c.models[model].busy.at)
	case "failed":
		all = c.Failed(now, model)
	case "gone":
		all = c.Gone(now, model)
	case "tick":
		all = c.Tick(now)
	default:
		t.Fatalf("%q is not an event", line)
	}
	return inWords(c, all)
}

func inWords(c *Core, all []Command) (said []string) {
	for _, k := range all {
		m := &c.models[k.Model]
		words := map[Kind]string{Admit: "admit", Load: "load", Unload: "unload", Share: "share"}[k.Kind] + " " + m.Name
		switch {
		case k.Kind == Admit:
			words += fmt.Sprint(" ", k.N)
		case k.Bytes%gib == 0 && k.Bytes > 0:
			words += fmt.Sprint(" ", k.Bytes/gib)
		case k.Bytes > 0:
			words += fmt.Sprintf(" %.2f", float64(k.Bytes)/gib)
		}
		said = append(said, words)
	}
	return said
}

func parseSpecs(t *testing.T, text string) (specs []Spec) {
	t.Helper()
	for _, word := range strings.Fields(text) {
		word, pinned := strings.CutSuffix(word, "!")
		name, sizes, _ := strings.Cut(word, ":")
		s := Spec{Name: name, Pinned: pinned}
		fixed, slots, elastic := strings.Cut(sizes, "+")
		if _, err := fmt.Sscan(fixed, &s.Need.Fixed); err != nil {
			t.Fatalf("%s: %v", word, err)
		}
		if elastic {
			if _, err := fmt.Sscanf(slots, "%d-%d", &s.Need.Least, &s.Need.Most); err != nil {
				t.Fatalf("%s: %v", word, err)
			}
		}
		s.Need.Fixed, s.Need.Least, s.Need.Most = s.Need.Fixed*gib, s.Need.Least*gib, s.Need.Most*gib
		specs = append(specs, s)
	}
	return specs
}

// What can never fit is refused at the beginning.
func TestNeverFits(t *testing.T) {
	for models, want := range map[string]string{
		"a:4! b:7!": "pinned models need 11264 MiB",
		"a:4! b:7":  "model b needs 7168 MiB beside 4096 MiB of pinned models, and there are 10240",
		"a:8+3-9":   "model a needs 11264 MiB, and there are 10240",
		"a:4! b:6":  "",
	} {
		_, err := NewCore(10*gib, 0, parseSpecs(t, models))
		if got := fmt.Sprint(err); (want == "") != (err == nil) || !strings.Contains(got, cmp.Or(want, "nil")) {
			t.Errorf("%s: %v, want %q", models, err, want)
		}
	}
}
