package analyse

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// away makes the read of oneLayer an ask.
const away = "msg expert-io ExpertsRead 392 395 400 step=1 => msg expert-io ExpertsAnswered 392 395 400\nuse 3 180 Missing step=1 => use 3 395 Away step=1"

// Each case is the token of oneLayer with something in its way, and what its time is divided into
// then. Times are in microseconds.
func TestPathWithSomethingInTheWay(t *testing.T) {
	for _, c := range []struct {
		name         string
		replace, add string // lines "old => new" of oneLayer, and further lines
		want         map[string]int64
	}{
		{
			"the disk", "", "",
			map[string]int64{"disk": 200, "device": 116, "read_queue": 10, "stage": 35, "mailbox": 17},
		},
		{
			"a device that begins late", "dev Mix 115 118 170 step=1 => dev Mix 115 140 170 step=1", "",
			map[string]int64{"disk": 200, "device": 94, "read_queue": 10, "stage": 37, "mailbox": 17, "device_start": 20},
		},
		{
			"reads of its own in line", "read 3 180 190 390 step=1 => read 3 180 340 390 step=1",
			"use 2 180 Missing step=1\nread 2 180 185 335 step=1",
			map[string]int64{"read_queue": 160, "device": 116, "disk": 50, "stage": 35, "mailbox": 17},
		},
		{
			"a guess in line", "read 3 180 190 390 step=1 => read 3 180 340 390 step=1",
			"read 2 150 160 340 step=1 hint=9",
			map[string]int64{"guesses": 160, "device": 116, "disk": 50, "stage": 35, "mailbox": 17},
		},
		{
			"a read of another request in line", "read 3 180 190 390 step=1 => read 3 180 340 390 step=1",
			"step 2 90 900 seq=2 req=2 rows=8\nread 2 150 160 340 step=2",
			map[string]int64{"other_request": 160, "device": 116, "disk": 50, "stage": 35, "mailbox": 17},
		},
		{
			"an expert that had to leave", "",
			"step 9 50 60 seq=1 req=9 pos=6\nuse 3 55 Missing step=9\ngone 3 70",
			map[string]int64{"room": 200, "device": 116, "read_queue": 10, "stage": 35, "mailbox": 17},
		},
		{
			"an expert that left long ago", "",
			"step 8 30 40 seq=1 req=8 pos=5\nuse 3 35 Missing step=8\nstep 9 50 60 seq=1 req=9 pos=6\ngone 3 70",
			map[string]int64{"disk": 200, "device": 116, "read_queue": 10, "stage": 35, "mailbox": 17},
		},
		{
			"another request on the device", "dev Mix 115 118 170 step=1 => dev Mix 115 160 170 step=1",
			"step 2 90 900 seq=2 req=2 rows=8\ndev Experts 80 90 159 step=2",
			map[string]int64{"disk": 200, "device": 74, "other_request": 44, "read_queue": 10, "stage": 32, "mailbox": 17, "device_start": 1},
		},
		{
			"another request on another device", "dev Mix 115 118 170 step=1 => dev Mix 115 160 170 step=1",
			"step 2 90 900 seq=2 req=2 rows=8\ndev Experts 80 90 159 step=2 device=1",
			map[string]int64{"disk": 200, "device": 74, "read_queue": 10, "stage": 37, "mailbox": 17, "device_start": 40},
		},
		{
			"what another device did before it, and then another request there",
			"dev Experts 405 406 450 step=1 => dev Experts 405 406 430 step=1\ndev Head 412 450 470 step=1 layer=4 => dev Head 412 450 470 step=1 layer=4 device=1",
			"step 2 90 900 seq=2 req=2 rows=8\ndev Experts 80 440 450 step=2 device=1",
			map[string]int64{"disk": 200, "device": 96, "other_request": 10, "device_start": 10, "read_queue": 10, "stage": 35, "mailbox": 17},
		},
		{
			"urgent work on another device", "",
			"step 2 90 900 seq=2 req=2\ndev Mix 130 130 150 step=2 urgent=1 device=1",
			map[string]int64{"disk": 200, "device": 116, "read_queue": 10, "stage": 35, "mailbox": 17},
		},
		{
			"urgent work amid it", "",
			"step 2 90 900 seq=2 req=2\ndev Mix 130 130 150 step=2 urgent=1",
			map[string]int64{"disk": 200, "device": 96, "other_request": 20, "read_queue": 10, "stage": 35, "mailbox": 17},
		},
		{
			"a slow stage", "msg router PicksReady 174 175 180 step=1 => msg router PicksReady 10 11 12 step=7\nmsg dispatch TicketDone 171 173 175 step=1 => msg dispatch TicketDone 31 32 33 step=7\n" +
				"dev Mix 115 118 170 step=1 => dev Mix 115 118 120 step=1",
			"msg dispatch TicketDone 121 123 125 step=1\nmsg router PicksReady 124 125 180 step=1",
			map[string]int64{"disk": 200, "stage": 85, "device": 66, "read_queue": 10, "mailbox": 17},
		},
		{
			"a message in the mailbox", "msg router PicksReady 174 175 180 step=1 => msg router PicksReady 124 175 180 step=1\nmsg dispatch TicketDone 171 173 175 step=1 => msg dispatch TicketDone 121 123 125 step=1\n" +
				"dev Mix 115 118 170 step=1 => dev Mix 115 118 120 step=1", "",
			map[string]int64{"disk": 200, "stage": 35, "device": 66, "read_queue": 10, "mailbox": 67},
		},
		{
			"an expert host", away + "\nread 3 180 190 390 step=1 => answer 180 392 step=1 wait=10 read=30 compute=70", "",
			map[string]int64{"network": 102, "host_compute": 70, "host_disk": 30, "host_wait": 10, "device": 116, "stage": 35, "mailbox": 15},
		},
		{
			"the second of two hosts", away + "\nread 3 180 190 390 step=1 => answer 180 392 step=1 host=1 compute=200", "answer 180 390 step=1 wait=100",
			map[string]int64{"network": 12, "host_compute": 200, "device": 116, "stage": 35, "mailbox": 15},
		},
		{
			"a host that tells of more time than there was", away + "\nread 3 180 190 390 step=1 => answer 180 392 step=1 read=100 compute=9000", "",
			map[string]int64{"host_compute": 212, "device": 116, "stage": 35, "mailbox": 15},
		},
		{
			"an expert host that does not answer", away + "\nread 3 180 190 390 step=1 => answer 180 392 step=1 failed=1", "",
			map[string]int64{"network": 212, "device": 116, "stage": 35, "mailbox": 15},
		},
		{
			"a caller", "", "req 5 20 21 42 seq=1 pos=6",
			map[string]int64{"disk": 200, "device": 116, "caller": 60, "read_queue": 10, "stage": 35, "mailbox": 17},
		},
		{
			"memory", "req 1 102 105 480 => req 1 42 105 480", "wait Memory 44 105 req=1\nmsg sequencer EvalChunk 42 43 44",
			map[string]int64{"disk": 200, "device": 116, "memory": 61, "read_queue": 10, "stage": 36, "mailbox": 15},
		},
		{
			"the turn of another", "req 1 102 105 480 => req 1 42 105 480", "wait Turn 44 105 req=1\nmsg sequencer EvalChunk 42 43 44",
			map[string]int64{"disk": 200, "device": 116, "other_request": 61, "read_queue": 10, "stage": 36, "mailbox": 15},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := oneLayer
			for r := range strings.Lines(c.replace) {
				before, after, _ := strings.Cut(strings.TrimSuffix(r, "\n"), " => ")
				if !strings.Contains(text, before) {
					t.Fatalf("there is no line %q", before)
				}
				text = strings.Replace(text, before, after, 1)
			}
			all := tokensOf(t, c.add+"\n"+text)
			k := all[len(all)-1]
			got := make(map[string]int64)
			for _, s := range k.Causes {
				got[s.Cause.String()] = s.NS / 1000
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got\n%v, want\n%v\n%s", got, c.want, pathOf(k.Pieces))
			}
		})
	}
}

// twoLayers is a token of a model with two layers whose experts are in memory. The ring has one
// place: the second layer begins when the first is retired.
const twoLayers = `
step 1 100 400 seq=1 req=1
req 1 100 100 390 seq=1
msg sequencer EvalChunk 100 100 110
msg dispatch BeginLayer 110 110 120 step=1
dev Mix 120 120 150 step=1
msg dispatch TicketDone 150 150 160 step=1
msg router PicksReady 160 160 170 step=1
msg expert-io LayerRouted 170 170 180 step=1
msg dispatch WaveResident 180 180 190 step=1
dev Experts 190 190 230 step=1
msg combine WaveSubmitted 190 190 195 step=1
msg sequencer LayerSubmitted 190 195 200 step=1
wait LayerCredit 195 240 step=1 layer=1
msg combine TicketDone 230 230 240 step=1
msg sequencer LayerRetired 240 240 250 step=1
msg dispatch BeginLayer 250 250 260 step=1 layer=1
dev Mix 260 270 300 step=1 layer=1
msg dispatch TicketDone 300 300 310 step=1 layer=1
msg router PicksReady 310 310 320 step=1 layer=1
msg expert-io LayerRouted 320 320 330 step=1 layer=1
msg dispatch WaveResident 330 330 340 step=1 layer=1
dev Experts 340 340 370 step=1 layer=1
msg combine TicketDone 370 370 380 step=1 layer=1
msg sequencer LayerRetired 380 390 400 step=1 layer=1
`

// What the wait for a credit costs is not its length, in which the device computes, but that the
// device stands still when it is done.
func TestPathThroughACredit(t *testing.T) {
	got := pathOf(tokensOf(t, twoLayers)[0].Pieces)
	want := `10 stage (sequencer)
10 stage (dispatch)
30 device (mixers)
10 stage (dispatch)
10 stage (router)
10 stage (expert-io)
10 stage (dispatch)
40 device (experts)
20 credit (layers)
20 credit (layers)
30 device (mixers)
10 stage (dispatch)
10 stage (router)
10 stage (expert-io)
10 stage (dispatch)
30 device (experts)
10 stage (combine)
10 mailbox
`
	if got != want {
		t.Errorf("got\n%s", got)
	}
}

// Whatever the records say, and however they contradict each other, the time of a token is divided
// without a gap, and that ends.
func TestPathOfNonsense(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	pick := func(names []string) string { return names[r.IntN(len(names))] }
	for range 400 {
		var b strings.Builder
		at := func() (a, b, c int) {
			a = r.IntN(500)
			b = a + r.IntN(30)
			return a, b, b + r.IntN(60)
		}
		for id := range 3 {
			from, to, _ := at()
			fmt.Fprintf(&b, "step %d %d %d seq=%d req=%d\n", id+1, from, to+300, id%2, id+1)
			fmt.Fprintf(&b, "req %d %d %d %d seq=%d pos=%d\n", id+1, from-r.IntN(50), from, to+r.IntN(400), id%2, id/2)
		}
		for range r.IntN(120) {
			x, y, z := at()
			step, layer := r.IntN(4), r.IntN(3)
			switch r.IntN(6) {
			case 0:
				fmt.Fprintf(&b, "dev %s %d %d %d step=%d layer=%d urgent=%d\n", pick(partNames), x, y, z, step, layer, r.IntN(2))
			case 1:
				fmt.Fprintf(&b, "read %d %d %d %d step=%d layer=%d hint=%d wanted=%d\n", r.IntN(3), x, y, z, step, layer, r.IntN(2), r.IntN(500))
			case 2:
				fmt.Fprintf(&b, "use %d %d %s step=%d layer=%d\ngone %d %d layer=%d\n", r.IntN(3), x, pick(foundNames), step, layer, r.IntN(3), y, layer)
			case 3:
				fmt.Fprintf(&b, "wait %s %d %d step=%d layer=%d for=%d req=%d\n", pick(reasonNames), x, z, step, layer, r.IntN(4), r.IntN(4))
			default:
				fmt.Fprintf(&b, "msg %s %s %d %d %d step=%d layer=%d\n", pick(stageNames), pick(messageNames), x, y, z, step, layer)
			}
		}
		tokensOf(t, b.String())
	}
}

// The end of a submission of several layers is that of its last part, not of the layer that it
// began with.
func TestSubmissionInParts(t *testing.T) {
	x := &index{device: []record.Submission{
		{Step: 7, Layer: 1, SubmittedNS: 10, EndedNS: 20}, {Step: 8, Layer: 2, SubmittedNS: 10, EndedNS: 25}, {Step: 7, Layer: 2, SubmittedNS: 10, EndedNS: 30},
		{Step: 7, Layer: 3, SubmittedNS: 11, EndedNS: 40}, {Step: 7, Layer: 4, SubmittedNS: 11, EndedNS: 50},
	}}
	for _, c := range []struct {
		layer int32
		sent  int64
		want  int
	}{{1, 45, 2}, {3, 50, 4}, {3, 60, 4}} {
		if got := x.submissionOf(&record.Handled{Step: 7, Layer: c.layer, SentNS: c.sent}); got.i != c.want {
			t.Errorf("layer %d, told at %d: submission %d, want %d", c.layer, c.sent, got.i, c.want)
		}
	}
}
