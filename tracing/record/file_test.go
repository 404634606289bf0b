package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

// sample has records in all tables, with a value of its own in each field.
func sample() *Recording {
	r := &Recording{Meta: Meta{
		Program: "test", Reason: "record", Epoch: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
		Stages: []string{"a"}, Messages: []string{"m"}, Settings: map[string]string{"ring-depth": "2"},
		Model: Model{Name: "demo", Layers: 2, Routed: []bool{false, true}},
	}}
	next := uint64(0)
	v := reflect.ValueOf(r).Elem()
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Kind() != reflect.Slice {
			continue
		}
		for range 3 {
			e := reflect.New(f.Type().Elem()).Elem()
			fill(e, &next)
			f.Set(reflect.Append(f, e))
		}
	}
	return r
}

func fill(v reflect.Value, next *uint64) {
	*next++
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "_" {
				fill(v.Field(i), next)
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), next)
		}
	case reflect.Float32:
		v.SetFloat(float64(*next))
	case reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*next))
	default:
		v.SetUint(*next % 256)
	}
}

func file(t *testing.T, r *Recording) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestFile(t *testing.T) {
	want := sample()
	want.Forgotten = map[string]uint64{"uses": 7, "levels": 1}
	got, err := ReadRecording(bytes.NewReader(file(t, want)))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read:\n%+v\nwritten:\n%+v", got, want)
	}
}

// Every table is in the list, in both a log and a recording.
func TestTables(t *testing.T) {
	want := sample()
	l := NewLog(1 << 20)
	v := reflect.ValueOf(want).Elem()
	n := 0
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Slice {
			n++
			add := reflect.ValueOf(l).Elem().FieldByName(v.Type().Field(i).Name).Addr().MethodByName("Add")
			for k := range f.Len() {
				add.Call([]reflect.Value{f.Index(k)})
			}
		}
	}
	if n != len(tables) {
		t.Errorf("%d tables are listed, and a recording has %d", len(tables), n)
	}
	got := l.Recording()
	got.Meta = want.Meta
	if !reflect.DeepEqual(got, want) {
		t.Errorf("of the log:\n%+v\nwritten:\n%+v", got, want)
	}
	for name, n := range l.Totals() {
		if n != 3 {
			t.Errorf("%s got %d records", name, n)
		}
	}
}

// A writer that drains now and then writes every record once.
func TestWriterDrains(t *testing.T) {
	var b bytes.Buffer
	w, err := NewWriter(&b, Meta{})
	if err != nil {
		t.Fatal(err)
	}
	l := NewLog(1 << 16)
	const records = 100_000
	for i := range records {
		l.Uses.Add(Use{Step: uint64(i)})
		if i%100 == 0 && i/1000%10 != 9 { // it falls behind now and then
			if err := w.Drain(l); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Drain(l); err != nil {
		t.Fatal(err)
	}
	r, err := ReadRecording(&b)
	if err != nil {
		t.Fatal(err)
	}
	missed := r.Forgotten["uses"]
	if missed == 0 || missed != w.Missed() || len(r.Uses)+int(missed) != records {
		t.Errorf("the file has %d records and says that %d are missing, the writer %d", len(r.Uses), missed, w.Missed())
	}
	for i := 1; i < len(r.Uses); i++ {
		if r.Uses[i].Step <= r.Uses[i-1].Step {
			t.Fatalf("record %d is of step %d, after %d", i, r.Uses[i].Step, r.Uses[i-1].Step)
		}
	}
}

// A file that was cut anywhere gives what is whole, or says what is wrong.
func TestCut(t *testing.T) {
	whole := file(t, sample())
	head := bytes.Index(whole, []byte(`"exactness"`))
	if head < 0 {
		head = bytes.IndexByte(whole, '}')
	}
	for n := range whole {
		r, err := ReadRecording(bytes.NewReader(whole[:n]))
		switch {
		case err != nil && n > head+1000:
			t.Fatalf("cut to %d of %d bytes: %v", n, len(whole), err)
		case err == nil && !r.Cut && n < len(whole)-1 && !atBorder(whole, n):
			t.Fatalf("cut to %d of %d bytes, and it is not said", n, len(whole))
		}
	}
}

// atBorder reports whether a chunk ends at n: then nothing tells that the file was cut.
func atBorder(whole []byte, n int) bool {
	r, err := ReadRecording(bytes.NewReader(append(bytes.Clone(whole[:n]), 0)))
	return err == nil && r.Cut
}

func TestDamaged(t *testing.T) {
	whole := file(t, sample())
	for _, tc := range []struct {
		name  string
		bytes []byte
		want  string
	}{
		{"empty", nil, "not a file of records"},
		{"another file", []byte("GGUF and so on, long enough for a head"), "not a file of records"},
		{"version", bytes.Replace(whole, []byte(Magic+string(rune(Version))), []byte(Magic+"\x7f"), 1), "version 127"},
		{"head", bytes.Replace(whole, []byte(`{"program"`), []byte(`["program"`), 1), "head of the file is damaged"},
	} {
		if _, err := ReadRecording(bytes.NewReader(tc.bytes)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: the error is %v", tc.name, err)
		}
	}
}

type fullDisk struct{ room int }

func (d *fullDisk) Write(p []byte) (int, error) {
	if d.room -= len(p); d.room < 0 {
		return 0, errors.New("no space left on device")
	}
	return len(p), nil
}

func TestFullDisk(t *testing.T) {
	whole := file(t, sample())
	for room := range len(whole) - 1 {
		if err := sample().Write(&fullDisk{room}); err == nil {
			t.Fatalf("%d bytes of room for a file of %d, and no error", room, len(whole))
		}
	}
}

func FuzzReadRecording(f *testing.F) {
	var b bytes.Buffer
	if err := sample().Write(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ReadRecording(bytes.NewReader(data))
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := r.Write(&b); err != nil {
			t.Fatal(err)
		}
	})
}

// Records are written as they lie in memory, which is what encoding/binary makes of them.
func TestRaw(t *testing.T) {
	r := new(Recording)
	next := uint64(0)
	for _, table := range tables {
		records := table.make(3)
		for i := range 3 {
			fill(reflect.ValueOf(records).Index(i), &next)
		}
		table.append(r, records)
		raw := table.raw(records)
		if raw == nil && littleEndian {
			t.Errorf("%s: its records lie otherwise in memory", table.name)
		}
		var want bytes.Buffer
		if err := binary.Write(&want, binary.LittleEndian, records); err != nil {
			t.Fatal(err)
		}
		if raw != nil && !bytes.Equal(raw, want.Bytes()) {
			t.Errorf("%s: got %x, want %x", table.name, raw, want.Bytes())
		}
	}
	if got := r.Bytes(); got < 1000 {
		t.Errorf("all records take %d bytes", got)
	}
}
