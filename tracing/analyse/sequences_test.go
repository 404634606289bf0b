package analyse

import (
	"testing"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// What a step takes is shared by rows. A read on a guess is paid by the step that used it first.
func TestSequencesPayByRows(t *testing.T) {
	s, err := ShowAll(&record.Recording{
		Steps:    []record.Step{{Step: 1, BeganNS: 1, Rows: 4}, {Step: 2, BeganNS: 900, Rows: 1, Decode: 1}},
		Segments: []record.Segment{{Step: 1, Request: 1, Seq: 1, Rows: 3}, {Step: 1, Request: 2, Seq: 2, Row: 3, Rows: 1}, {Step: 2, Request: 3, Seq: 2, Rows: 1}},
		Submissions: []record.Submission{
			{Step: 1, SubmittedNS: 10, BeganNS: 10, EndedNS: 411}, {Step: 2, SubmittedNS: 910, BeganNS: 910, EndedNS: 1000, PausedNS: 40},
		},
		Reads: []record.Read{
			{Step: 1, AskedNS: 10, BeganNS: 10, EndedNS: 20, PlacedNS: 20, WantedNS: 10, Bytes: 1002, Expert: 1},
			{Step: 1, Hint: 7, AskedNS: 30, BeganNS: 30, EndedNS: 50, PlacedNS: 50, Bytes: 5000, Expert: 2},
			{Step: 1, Hint: 7, AskedNS: 30, BeganNS: 30, EndedNS: 60, PlacedNS: 60, Bytes: 90000, Expert: 3}, // nobody uses it
		},
		Uses: []record.Use{{Step: 1, AtNS: 10, Expert: 1, Found: record.Missing}, {Step: 2, AtNS: 920, Expert: 2, Hint: 7}},
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := map[uint64][2]int64{1: {300, 751}, 2: {101 + 50, 251 + 5000}}
	for _, q := range s.Sequences {
		if got := [2]int64{q.DeviceNS, q.ReadBytes}; got != want[q.Seq] {
			t.Errorf("sequence %d has %d of the device and of bytes, want %d", q.Seq, got, want[q.Seq])
		}
		delete(want, q.Seq)
	}
	if len(want) > 0 {
		t.Errorf("there is nothing of %v", want)
	}
}
