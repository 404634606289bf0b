package record

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var write = flag.Bool("write", false, "write the files in testdata of a new Version")

// golden returns a file of a version in testdata. With -write it is made of content first, but
// never made anew: what is different needs a version of its own.
func golden(t *testing.T, version int, suffix string, content []byte) []byte {
	t.Helper()
	path := filepath.Join("testdata", fmt.Sprintf("v%d%s", version, suffix))
	if *write && version == Version {
		if f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666); err == nil {
			_, err = f.Write(content)
			if err = errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%v; a new Version needs its files: go test ./tracing/record -run TestVersion -write", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestVersion wants the format to be what its Version was given for: the tables, the names, types
// and order of fields, the constants, and every byte of a file.
func TestVersion(t *testing.T) {
	now := schema(t)
	if want := golden(t, Version, ".txt", []byte(now)); now != string(want) {
		t.Errorf("the format has changed: raise Version, and run this test with -write.\n%s", difference(string(want), now))
	}
	if bytes := file(t, sample()); !reflect.DeepEqual(bytes, golden(t, Version, ".records", bytes)) {
		t.Error("the bytes of a file have changed: raise Version, and run this test with -write")
	}
}

// TestOldVersions wants a file of each earlier version to be refused with its version, and one of
// this version to be read.
func TestOldVersions(t *testing.T) {
	for v := 1; v <= Version; v++ {
		rec, err := ReadRecording(bytes.NewReader(golden(t, v, ".records", file(t, sample()))))
		if v == Version {
			if err != nil || !reflect.DeepEqual(rec, sample()) {
				t.Errorf("this version: %v\n%+v", err, rec)
			}
			continue
		}
		want := fmt.Sprintf("written by version %d of the format, and this program reads version %d", v, Version)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("version %d: the error is %v, want one line with %q", v, err, want)
		}
	}
}

// schema writes down what the format consists of, in lines.
func schema(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for i, table := range tables {
		typ := reflect.TypeOf(table.make(0)).Elem()
		fmt.Fprintf(&b, "table %d %s, %s of %d bytes\n", i, table.name, typ.Name(), table.bytes())
		for f := range typ.Fields() {
			fmt.Fprintf(&b, "\t%d %s %s\n", f.Offset, f.Name, f.Type)
		}
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[Meta](), reflect.TypeFor[Model](), reflect.TypeFor[Machine](), reflect.TypeFor[Engine]()} {
		fmt.Fprintf(&b, "JSON of %s\n", typ.Name())
		for f := range typ.Fields() {
			fmt.Fprintf(&b, "\t%s %s\n", f.Tag.Get("json"), f.Type)
		}
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, "types.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
			g.Doc = nil
			if err := format.Node(&b, set, g); err != nil {
				t.Fatal(err)
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// difference returns the first line that differs.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d is %q, and was %q", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("there are %d lines, and were %d", len(g), len(w))
}
