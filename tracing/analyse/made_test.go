package analyse

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

var (
	stageNames   = []string{"sequencer", "router", "expert-io", "dispatch", "combine"}
	messageNames = []string{"Other", "EvalChunk", "BeginLayer", "PicksReady", "LayerRouted", "ExpertsRead", "WaveResident", "WaveSubmitted", "LayerSubmitted", "TicketDone",
		"SlotsReleased", "LayerRetired", "ReadLogits", "LogitsReady", "LingerOver", "PrefetchExperts", "ExpertsAnswered"}
	partNames   = []string{"Mix", "Experts", "Layers", "Head", "State", "Ahead", "SharedExpert"}
	reasonNames = []string{"LayerCredit", "WaveCredit", "Room", "Lane", "Turn", "Company", "Memory", "ReadCredit"}
	foundNames  = []string{"Resident", "Late", "Missing", "Shared", "Away"}
)

// made reads a recording that is written by hand, a record a line, with times in microseconds:
//
//	step 1 began ended seq=1 req=1 pos=0 rows=1
//	req 1 arrived began ended seq=1 pos=0 rows=1
//	msg STAGE MESSAGE sent began ended step=1 layer=0
//	dev PART submitted began ended step=1 layer=0
//	read expert asked began ended step=1 layer=0 hint=0 wanted=0
//	use expert at FOUND step=1 layer=0
//	wait REASON began ended step=1 layer=0 for=0 req=0
//	gone expert at layer=0
//	answer asked ended step=1 layer=0 host=0 wait=0 read=0 compute=0 failed=0
func made(t *testing.T, text string) *record.Recording {
	t.Helper()
	r := &record.Recording{Meta: record.Meta{Engine: record.Engine{Hosts: []string{"one:1", "two:1"}}, Stages: stageNames, Messages: messageNames, Model: record.Model{Layers: 4}}}
	for line := range strings.Lines(text) {
		f := strings.Fields(strings.Split(line, "//")[0])
		if len(f) == 0 {
			continue
		}
		if err := addMade(r, f); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
	}
	return r
}

// fields are what a line says: numbers in order, names in order, and keys.
type fields struct {
	n    []int64
	name []string
	key  map[string]int64
}

func parseFields(f []string) (x fields, err error) {
	x.key = make(map[string]int64)
	for _, w := range f {
		var n int64
		if key, value, ok := strings.Cut(w, "="); ok {
			if _, err := fmt.Sscan(value, &n); err != nil {
				return x, err
			}
			x.key[key] = n
		} else if _, err := fmt.Sscan(w, &n); err == nil {
			x.n = append(x.n, n)
		} else {
			x.name = append(x.name, w)
		}
	}
	return x, nil
}

func (x *fields) us(i int) int64        { return x.n[i] * 1000 }
func (x *fields) k32(key string) int32  { return int32(x.key[key]) }
func (x *fields) k64(key string) uint64 { return uint64(x.key[key]) }

func addMade(r *record.Recording, f []string) error {
	x, err := parseFields(f[1:])
	if err != nil {
		return err
	}
	step, layer := x.k64("step"), x.k32("layer")
	switch f[0] {
	case "step":
		id := uint64(x.n[0])
		rows := max(1, x.k32("rows"))
		decode := rows
		if rows > 1 {
			decode = 0
		}
		r.Steps = append(r.Steps, record.Step{Step: id, BeganNS: x.us(1), Rows: rows, Decode: decode})
		r.StepsEnded = append(r.StepsEnded, record.StepEnded{Step: id, EndedNS: x.us(2)})
		r.Segments = append(r.Segments, record.Segment{Step: id, Request: x.k64("req"), Seq: x.k64("seq"), Pos: x.k32("pos"), Rows: rows})
	case "req":
		r.Requests = append(r.Requests, record.Request{
			Request: uint64(x.n[0]), Seq: x.k64("seq"), ArrivedNS: x.us(1), BeganNS: x.us(2), EndedNS: x.us(3), Pos: x.k32("pos"), Rows: max(1, x.k32("rows")),
		})
	case "msg":
		r.Handled = append(r.Handled, record.Handled{
			Step: step, Layer: layer, Wave: -1, SentNS: x.us(0), BeganNS: x.us(1), EndedNS: x.us(2),
			Stage: index8(stageNames, x.name[0]), Message: index8(messageNames, x.name[1]),
		})
	case "dev":
		r.Submissions = append(r.Submissions, record.Submission{
			Step: step, Layer: layer, Wave: -1, SubmittedNS: x.us(0), BeganNS: x.us(1), EndedNS: x.us(2), Part: record.Part(index8(partNames, x.name[0])),
			Urgent: uint8(x.key["urgent"]), Device: uint8(x.key["device"]),
		})
	case "read":
		rd := record.Read{
			Step: step, Layer: layer, Expert: int32(x.n[0]), AskedNS: x.us(1), BeganNS: x.us(2), EndedNS: x.us(3), PlacedNS: x.us(3),
			Hint: x.k64("hint"), WantedNS: x.key["wanted"] * 1000, Bytes: 1000,
		}
		if rd.Hint == 0 {
			rd.WantedNS = rd.AskedNS
		}
		r.Reads = append(r.Reads, rd)
	case "use":
		r.Uses = append(r.Uses, record.Use{Step: step, Layer: layer, Expert: int32(x.n[0]), AtNS: x.us(1), Rows: 1, Found: record.Found(index8(foundNames, x.name[0]))})
	case "wait":
		r.Waits = append(r.Waits, record.Wait{
			Step: step, Layer: layer, Wave: -1, For: x.k64("for"), Request: x.k64("req"), BeganNS: x.us(0), EndedNS: x.us(1), Reason: record.Reason(index8(reasonNames, x.name[0])),
		})
	case "answer":
		r.Answers = append(r.Answers, record.Answer{
			Step: step, Layer: layer, Host: x.k32("host"), AskedNS: x.us(0), EndedNS: x.us(1), WaitedNS: x.key["wait"] * 1000, ReadNS: x.key["read"] * 1000,
			ComputedNS: x.key["compute"] * 1000, Uses: 1, Failed: uint8(x.key["failed"]),
		})
	case "gone":
		r.Evictions = append(r.Evictions, record.Eviction{AtNS: x.us(1), Layer: layer, Expert: int32(x.n[0])})
	default:
		return fmt.Errorf("no such record")
	}
	return nil
}

func index8(names []string, name string) uint8 {
	i := slices.Index(names, name)
	if i < 0 {
		panic("no name " + name)
	}
	return uint8(i)
}

// oneLayer is a token of a model with one layer, one of whose experts is read.
const oneLayer = `
step 1 105 482 seq=1 req=1 pos=7
req 1 102 105 480 seq=1 pos=7
msg sequencer EvalChunk 102 105 110
msg router BeginLayer 108 110 111 step=1
msg dispatch BeginLayer 108 111 120 step=1
dev Mix 115 118 170 step=1
dev SharedExpert 117 170 230 step=1   // beside the read: not on the path
msg dispatch TicketDone 171 173 175 step=1
msg router PicksReady 174 175 180 step=1
msg expert-io LayerRouted 179 180 186 step=1
use 3 180 Missing step=1
read 3 180 190 390 step=1
msg expert-io ExpertsRead 392 395 400 step=1
msg dispatch WaveResident 398 400 408 step=1
dev Experts 405 406 450 step=1
msg combine WaveSubmitted 407 408 409 step=1
msg sequencer LayerSubmitted 407 409 410 step=1
msg combine TicketDone 451 451 453 step=1
msg sequencer LayerRetired 452 453 455 step=1 layer=0
dev Head 412 450 470 step=1 layer=4
msg dispatch ReadLogits 410 411 415 step=1 layer=4
msg dispatch TicketDone 471 472 474 step=1 layer=4
msg sequencer LogitsReady 473 478 482 step=1 layer=4
`

// pathOf writes the pieces of a token in microseconds.
func pathOf(p []Piece) string {
	var b strings.Builder
	for i := range p {
		fmt.Fprintf(&b, "%d %s", p[i].NS()/1000, p[i].Cause)
		if p[i].Where != "" {
			fmt.Fprintf(&b, " (%s)", p[i].Where)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func tokensOf(t *testing.T, text string) []Token {
	t.Helper()
	w, err := WhyTokens(made(t, text), 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range w.Tokens {
		checkPartition(t, &w.Tokens[i])
	}
	return w.Tokens
}

// checkPartition wants a token's time to be divided without gap or overlap, and the causes to add
// up.
func checkPartition(t *testing.T, k *Token) {
	t.Helper()
	at, sum := k.FromNS, int64(0)
	for _, p := range k.Pieces {
		if p.FromNS != at || p.ToNS <= p.FromNS {
			t.Fatalf("token %d from %d: a piece is %+v, at %d", k.Token, k.FromNS, p, at)
		}
		at = p.ToNS
	}
	for _, c := range k.Causes {
		sum += c.NS
	}
	if at != k.FromNS+k.WallNS || sum != k.WallNS {
		t.Fatalf("token %d: the pieces end after %d ns and the causes are %d ns of %d", k.Token, at-k.FromNS, sum, k.WallNS)
	}
}

func TestPathOfAToken(t *testing.T) {
	got := pathOf(tokensOf(t, oneLayer)[0].Pieces)
	want := `3 mailbox
5 stage (sequencer)
1 stage (router)
7 stage (dispatch)
52 device (mixers)
3 mailbox
2 stage (dispatch)
5 stage (router)
10 read_queue
200 disk (not in memory before)
5 mailbox
5 stage (expert-io)
6 stage (dispatch)
44 device (experts)
20 device (head)
2 mailbox
2 stage (dispatch)
4 mailbox
2 stage (sequencer)
`
	if got != want {
		t.Errorf("got\n%s", got)
	}
}
