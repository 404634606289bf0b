package constraint

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/testenv"
)

var updateSuite = flag.Bool("update-suite", false, "write testdata/json-schema-suite.txt anew")

// suiteGroup is a schema of the public test suite, with instances.
type suiteGroup struct {
	draft, file string // "draft7", "optional/format/date"
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

func (s *suiteGroup) String() string { return s.draft + "/" + s.file + ": " + s.Description }

// readSuite returns the groups of the public test suite in order.
func readSuite(t *testing.T) (all []*suiteGroup) {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(readTestdata(t, "json-schema-test-suite.tar.gz")))
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(unzipped); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		draft, file, ok := strings.Cut(strings.TrimPrefix(path.Clean(h.Name), "tests/"), "/")
		if !ok || h.Typeflag != tar.TypeReg || !strings.HasSuffix(file, ".json") || !strings.HasPrefix(draft, "draft") {
			continue
		}
		var groups []*suiteGroup
		if err := json.NewDecoder(files).Decode(&groups); err != nil {
			t.Fatalf("%s: %v", h.Name, err)
		}
		for _, g := range groups {
			g.draft, g.file = draft, strings.TrimSuffix(file, ".json")
			g.Schema = withDraft(g.Schema, draft)
		}
		all = append(all, groups...)
	}
	slices.SortStableFunc(all, func(a, b *suiteGroup) int {
		return cmp.Or(strings.Compare(a.draft, b.draft), strings.Compare(a.file, b.file))
	})
	return all
}

// withDraft says in a schema of which draft it is, if it does not say so itself.
func withDraft(schema json.RawMessage, draft string) json.RawMessage {
	const draft7 = `{"$schema":"http://json-schema.org/draft-07/schema#"`
	rest, isObject := bytes.CutPrefix(bytes.TrimSpace(schema), []byte("{"))
	if draft != "draft7" || !isObject || bytes.Contains(schema, []byte(`"$schema"`)) {
		return schema
	}
	if bytes.TrimSpace(rest)[0] != '}' {
		rest = append([]byte(","), rest...)
	}
	return append([]byte(draft7), rest...)
}

// suiteRow is what came of the schemas of one file.
type suiteRow struct {
	schemas, compiled        int
	valid, invalid, narrower int            // instances; the last are valid, and refused as unusual texts of a format
	refused                  map[string]int // schemas by the keyword, or the kind of error
}

func (r *suiteRow) add(o *suiteRow) {
	r.schemas, r.compiled = r.schemas+o.schemas, r.compiled+o.compiled
	r.valid, r.invalid, r.narrower = r.valid+o.valid, r.invalid+o.invalid, r.narrower+o.narrower
	for why, n := range o.refused {
		r.refused[why] += n
	}
}

func (r *suiteRow) String() string {
	text := fmt.Sprintf("%d of %d schemas, %d valid and %d invalid instances", r.compiled, r.schemas, r.valid, r.invalid)
	if r.narrower > 0 {
		text += fmt.Sprintf(", %d more valid", r.narrower)
	}
	for i, why := range slices.Sorted(maps.Keys(r.refused)) {
		text += fmt.Sprintf("%s%s %d", map[bool]string{true: "; refused: ", false: ", "}[i == 0], why, r.refused[why])
	}
	return text
}

// Every schema of the public suite is compiled, and then allows exactly its valid instances, as far
// as they can be written in the order and the form of constraints, and gives only valid texts; or
// is refused for a keyword that it has. What is supported is on record.
func TestSuite(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	draw := newDrawer(t, jsonVocabulary(rng), rng)
	rows, total := map[string]*suiteRow{}, &suiteRow{refused: map[string]int{}}
	for _, group := range readSuite(t) {
		name := group.draft + "/" + group.file
		if rows[name] == nil {
			rows[name] = &suiteRow{refused: map[string]int{}}
		}
		row := group.check(t, draw)
		rows[name].add(row)
		total.add(row)
	}
	var table strings.Builder
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprintf(&table, "%s: %v\n", name, rows[name])
	}
	fmt.Fprintf(&table, "all: %v\n", total)
	t.Logf("%v", total)
	if *updateSuite {
		if err := os.WriteFile("testdata/json-schema-suite.txt", []byte(table.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	recorded := strings.Split(string(readTestdata(t, "json-schema-suite.txt")), "\n")
	for i, line := range strings.Split(table.String(), "\n") {
		if i >= len(recorded) || line != recorded[i] {
			t.Errorf("%s\ndiffers from what is on record; if it is meant, run this test with -update-suite", line)
		}
	}
}

// check compiles the schema and tries its instances.
func (s *suiteGroup) check(t *testing.T, draw *drawer) *suiteRow {
	t.Helper()
	row := &suiteRow{schemas: 1, refused: map[string]int{}}
	g, err := JSONSchema(s.Schema)
	if err != nil {
		row.refused[s.refusal(t, err)]++
		return row
	}
	row.compiled = 1
	judge := judgeIfAny(s.Schema)
	formats := strings.Contains(s.file, "format")
	for _, x := range s.Tests {
		valid := x.Valid
		judged := judge == nil || judge(string(x.Data)) == nil
		switch {
		case strings.HasPrefix(s.file, "optional/format/"): // the judge knows some formats only roughly
			valid = valid && judged
		case formats, s.file == "optional/content": // formats bind here, and what strings contain does not
			valid = judged
		}
		list, _ := spellings(t, string(x.Data), 5000)
		spelling, ok := matchesSome(g, list)
		switch {
		case valid && !ok && formats: // fewer texts than the standard has
			row.narrower++
		case valid && !ok:
			t.Errorf("%v: %s is valid, and none of its spellings, as %s, is allowed", s, x.Data, list[0])
		case !valid && ok:
			t.Errorf("%v: %s is not valid, and is allowed", s, spelling)
		case valid:
			row.valid++
		default:
			row.invalid++
		}
	}
	for range testenv.Rounds(3, 5, 100) {
		if text := draw.text(g); judge != nil && judge(text) != nil {
			t.Errorf("%v: drew %s: %v", s, text, judge(text))
		}
	}
	return row
}

// refusal returns what an error says is not supported, having checked that it is so.
func (s *suiteGroup) refusal(t *testing.T, err error) string {
	t.Helper()
	if u, ok := errors.AsType[*UnsupportedError](err); ok {
		root, err := parseJSON(s.Schema)
		if err != nil {
			t.Fatal(err)
		}
		if at := root.at(u.Pointer); at == nil || at.member[u.Keyword] == nil {
			t.Errorf("%v: refused for %q at %q, where it is not", s, u.Keyword, u.Pointer)
		}
		return u.Keyword
	}
	if errors.Is(err, ErrUnsatisfiable) {
		for _, x := range s.Tests {
			if x.Valid {
				t.Errorf("%v: no value is said to satisfy it, and %s does", s, x.Data)
			}
		}
		return "(unsatisfiable)"
	}
	t.Errorf("%v: %v", s, err)
	return "(other)"
}
