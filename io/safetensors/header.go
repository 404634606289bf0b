package safetensors

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// maxHeader bounds the JSON header, as the reference implementation does.
const maxHeader = 100_000_000

// entry is a tensor as the header describes it.
type entry struct {
	name       string
	dtype      DType
	shape      []int
	begin, end int // in the data part
}

// metadataKey is the only key of a header that is not a tensor.
const metadataKey = "__metadata__"

// parseHeader reads the JSON header of a file whose data part has dataLen bytes. It returns entries
// in the order of their data. They cover the data part without gaps or overlaps.
func parseHeader(path string, header []byte, dataLen int) ([]entry, map[string]string, error) {
	p := headerParser{path: path, dataLen: dataLen, seen: map[string]bool{}}
	if err := p.parse(header); err != nil {
		return nil, nil, err
	}
	slices.SortFunc(p.entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end), cmp.Compare(a.name, b.name))
	})
	at := 0
	for _, e := range p.entries {
		switch {
		case e.begin < at:
			return nil, nil, p.fail(e.name, "its data begins at %d, inside the tensor before it, which ends at %d", e.begin, at)
		case e.begin > at:
			return nil, nil, p.fail(e.name, "its data begins at %d, which leaves a hole after %d", e.begin, at)
		}
		at = e.end
	}
	if at != dataLen {
		return nil, nil, p.fail("", "%d bytes of data, but the header accounts for %d", dataLen, at)
	}
	return p.entries, p.metadata, nil
}

type headerParser struct {
	path     string
	dataLen  int
	seen     map[string]bool
	entries  []entry
	metadata map[string]string
}

func (p *headerParser) fail(tensor, format string, args ...any) error {
	return &FormatError{Path: p.path, Tensor: tensor, Why: fmt.Sprintf(format, args...)}
}

// parse reads the top-level object key by key, because a map would hide duplicate names.
func (p *headerParser) parse(header []byte) error {
	dec := json.NewDecoder(bytes.NewReader(header))
	broken := func(err error) error {
		return &FormatError{Path: p.path, Why: "header is not valid JSON: " + err.Error(), Err: err}
	}
	tok, err := dec.Token()
	if err != nil {
		return broken(err)
	}
	if tok != json.Delim('{') {
		return p.fail("", "header is not a JSON object")
	}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return broken(err)
		}
		name, ok := tok.(string)
		if !ok {
			return p.fail("", "header is not a JSON object")
		}
		if p.seen[name] {
			return p.fail(name, "named twice in the header")
		}
		p.seen[name] = true
		if name == metadataKey {
			if err := dec.Decode(&p.metadata); err != nil {
				return broken(err)
			}
			continue
		}
		if err := p.tensor(dec, name); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return broken(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return p.fail("", "header goes on after its JSON object")
	}
	return nil
}

// tensor reads and checks the description of one tensor.
func (p *headerParser) tensor(dec *json.Decoder, name string) error {
	var d struct {
		DType   *DType `json:"dtype"`
		Shape   *[]int `json:"shape"`
		Offsets *[]int `json:"data_offsets"`
	}
	if err := dec.Decode(&d); err != nil {
		return &FormatError{Path: p.path, Tensor: name, Why: "description is not valid: " + err.Error(), Err: err}
	}
	if d.DType == nil || d.Shape == nil || d.Offsets == nil {
		return p.fail(name, "description lacks dtype, shape or data_offsets")
	}
	if len(*d.Offsets) != 2 {
		return p.fail(name, "data_offsets %v are not two numbers", *d.Offsets)
	}
	e := entry{name: name, dtype: *d.DType, shape: *d.Shape, begin: (*d.Offsets)[0], end: (*d.Offsets)[1]}
	if e.begin < 0 || e.end < e.begin || e.end > p.dataLen {
		return p.fail(name, "data_offsets [%d, %d] are outside the %d bytes of data", e.begin, e.end, p.dataLen)
	}
	want, err := e.dtype.Bytes(e.shape)
	if err != nil {
		return &FormatError{Path: p.path, Tensor: name, Why: err.Error(), Err: err}
	}
	if want != e.end-e.begin {
		return p.fail(name, "%s %v takes %d bytes, but data_offsets span %d", e.dtype, e.shape, want, e.end-e.begin)
	}
	p.entries = append(p.entries, e)
	return nil
}
