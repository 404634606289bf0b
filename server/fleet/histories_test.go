package fleet

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// history is a core among random events, and what it must know of itself.
type history struct {
	t    *testing.T
	c    *Core
	r    *rand.Rand
	now  time.Duration
	told []string

	phase        []phase
	share        []int64
	users, waits []int
}

// Random events never break the budget or end a model that is in use, and everybody's turn comes.
func TestHistories(t *testing.T) {
	ran := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		budget := int64(10+r.IntN(20)) * gib
		var specs []Spec
		for i := range 2 + r.IntN(4) {
			s := Spec{Name: fmt.Sprint("m", i), Need: Need{Fixed: int64(1+r.IntN(5)) * gib}}
			if r.IntN(2) == 0 {
				s.Need.Least = gib / 2
				s.Need.Most = s.Need.Least + int64(r.IntN(20))*gib
			}
			s.Pinned = i == 0 && r.IntN(3) == 0
			specs = append(specs, s)
		}
		c, err := NewCore(budget, time.Duration(r.IntN(3))*time.Minute, specs)
		if err != nil {
			continue // they never fit
		}
		ran++
		n := len(specs)
		h := &history{
			t: t, c: c, r: r, phase: make([]phase, n), share: make([]int64, n), users: make([]int, n), waits: make([]int, n),
		}
		for range 400 {
			h.step()
		}
		h.end()
		if t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, strings.Join(h.told, "\n"))
		}
	}
	if ran < 200 {
		t.Errorf("only %d histories ran", ran)
	}
}

// step lets time pass and something happen.
func (h *history) step() {
	h.now += time.Duration(h.r.IntN(20_000)) * time.Millisecond
	m := h.r.IntN(len(h.phase))
	switch e := h.r.IntN(6); {
	case e < 3:
		h.waits[m]++
		h.did("want", m, h.c.Want(h.now, m))
	case e == 3 && h.waits[m] > 0:
		h.waits[m]--
		h.did("gave up", m, h.c.GaveUp(h.now, m))
	case h.users[m] > 0:
		h.users[m]--
		h.did("left", m, h.c.Left(h.now, m))
	default:
		h.answer(m)
	}
}

// answer ends a loading or an unloading, or lets the core look at the time.
func (h *history) answer(m int) {
	switch {
	case h.phase[m] == loading && h.r.IntN(8) == 0:
		h.phase[m], h.share[m], h.waits[m] = away, 0, 0
		h.did("failed", m, h.c.Failed(h.now, m))
	case h.phase[m] == loading:
		h.phase[m] = here
		h.did("loaded", m, h.c.Loaded(h.now, m, time.Second))
	case h.phase[m] == leaving:
		h.phase[m], h.share[m] = away, 0
		h.did("gone", m, h.c.Gone(h.now, m))
	default:
		h.did("tick", m, h.c.Tick(h.now))
	}
}

// did carries commands out and checks what must hold.
func (h *history) did(what string, m int, all []Command) {
	h.told = append(h.told, fmt.Sprintf("%v %s m%d -> %s", h.now, what, m, strings.Join(inWords(h.c, all), ", ")))
	for _, k := range all {
		h.carryOut(k)
		var sum int64
		for i := range h.phase {
			if need := h.c.models[i].Need; h.phase[i] != away {
				sum += need.Fixed + h.share[i]
				if h.share[i] < need.Least || h.share[i] > max(need.Most, need.Least) {
					h.t.Errorf("the share of m%d is %d", i, h.share[i])
				}
			}
		}
		if sum > h.c.budget {
			h.t.Errorf("at %v after %+v: %d MiB are in use, %d are allowed", h.now, k, sum>>20, h.c.budget>>20)
		}
	}
}

func (h *history) carryOut(k Command) {
	m := k.Model
	wrong := false
	switch k.Kind {
	case Admit:
		wrong = h.phase[m] != here || k.N != h.waits[m]
		h.users[m], h.waits[m] = h.users[m]+k.N, 0
	case Load:
		wrong = h.phase[m] != away
		h.phase[m], h.share[m] = loading, k.Bytes
	case Unload:
		wrong = h.phase[m] != here || h.users[m] > 0 || h.c.models[m].Pinned
		h.phase[m] = leaving
	case Share:
		wrong = h.phase[m] != here
		h.share[m] = k.Bytes
	}
	if wrong {
		h.t.Errorf("at %v: %+v is wrong", h.now, k)
	}
}

// end lets all that runs end while new requests go on to come for the models that are here: those
// that wait must be admitted all the same.
func (h *history) end() {
	for rounds := 0; ; rounds++ {
		waiting := false
		for m := range h.phase {
			waiting = waiting || h.waits[m] > 0
		}
		if !waiting {
			return
		}
		if rounds > 1000 {
			h.t.Errorf("some wait for ever: %v", h.waits)
			return
		}
		h.now += 5 * time.Second
		for m := range h.phase {
			if h.users[m] > 1 { // somebody is always there
				h.users[m]--
				h.did("left", m, h.c.Left(h.now, m))
			}
			if h.phase[m] == here && !h.c.models[m].closing {
				h.waits[m]++
				h.did("want", m, h.c.Want(h.now, m))
			} else if h.users[m] == 1 {
				h.users[m]--
				h.did("left", m, h.c.Left(h.now, m))
			}
			h.answer(m)
		}
	}
}
