package record

import (
	"runtime"
	"sync"
	"testing"
)

// A reader sees each record once and in order, or is told how many it missed, whatever the writer
// does meanwhile.
func TestCursorBesideWriter(t *testing.T) {
	const records = 200_000
	l := NewLog(16 << 10)
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		for i := range uint64(records) {
			l.Levels.Add(Level{AtNS: int64(i), ReadBytes: int64(i)})
		}
	}()
	var c Cursor
	next, seen := uint64(0), uint64(0)
	for next < records {
		missed := c.Missed
		l.Levels.Read(&c, func(recs []Level) {
			next += c.Missed - missed
			missed = c.Missed
			for _, r := range recs {
				if uint64(r.AtNS) != next || r.ReadBytes != r.AtNS {
					t.Fatalf("record %d is %+v", next, r)
				}
				next++
				seen++
			}
		})
		runtime.Gosched()
	}
	wg.Wait()
	if seen+c.Missed != records || seen == 0 {
		t.Errorf("%d records were read and %d missed, of %d", seen, c.Missed, records)
	}
	if n := l.Levels.Total(); n != records {
		t.Errorf("the table says that it got %d records", n)
	}
}

// What a slow reader looks at does not change, though the writer has gone around many times.
func TestSlowReaderHoldsNobodyUp(t *testing.T) {
	var table Table[Level]
	table.init(2 * blocksPerTable)
	table.Add(Level{AtNS: 1})
	table.Read(new(Cursor), func(recs []Level) {
		for i := range int64(1000) {
			table.Add(Level{AtNS: 100 + i})
		}
		if recs[0].AtNS != 1 {
			t.Errorf("the record became %+v", recs[0])
		}
	})
	var last int64
	var c Cursor
	table.Read(&c, func(recs []Level) { last = recs[len(recs)-1].AtNS })
	if last != 1099 || c.Missed == 0 || c.Missed > 1001-2*(blocksPerTable-1) {
		t.Errorf("the last record is %d, and %d are missing", last, c.Missed)
	}
}

// A table keeps at least 15 of 16 parts of what it has room for.
func TestKept(t *testing.T) {
	for _, n := range []int{0, 1, 2, 16, 17, 31, 32, 33, 100, 1000} {
		var table Table[Level]
		table.init(32)
		for i := range n {
			table.Add(Level{AtNS: int64(i)})
		}
		recs, forgotten := table.all()
		if len(recs)+int(forgotten) != n || len(recs) < min(n, 30) || len(recs) > 32 {
			t.Errorf("of %d records %d are kept and %d forgotten", n, len(recs), forgotten)
		}
		for i, r := range recs {
			if r.AtNS != int64(forgotten)+int64(i) {
				t.Errorf("of %d records, %d is %d", n, i, r.AtNS)
			}
		}
	}
}

func TestAddAllocatesNothing(t *testing.T) {
	l := NewLog(1 << 16)
	if n := testing.AllocsPerRun(10_000, func() {
		l.Handled.Add(Handled{Step: 1})
		l.Reads.Add(Read{Step: 1})
	}); n != 0 {
		t.Errorf("adding two records makes %v allocations", n)
	}
}

func TestEmptyLog(t *testing.T) {
	var l Log
	l.Handled.Add(Handled{Step: 1})
	if n := len(l.Recording().Handled); n != 0 || l.Handled.Total() != 0 {
		t.Errorf("a log without memory has %d records", n)
	}
}

func BenchmarkAdd(b *testing.B) {
	l := NewLog(DefaultBytes)
	for i := range b.N {
		l.Handled.Add(Handled{Step: uint64(i), BeganNS: int64(i)})
	}
}

// No record takes more in a file than is said.
func TestMostBytes(t *testing.T) {
	for _, table := range tables {
		if n := table.bytes() + 8; n > MostBytes {
			t.Errorf("a record of %s takes %d bytes, more than %d", table.name, n, MostBytes)
		}
	}
}
