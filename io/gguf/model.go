package gguf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// Model is all parts of a model, mapped read-only. It may be used from many goroutines until Close.
type Model struct {
	files  []*File
	byName map[string]*Tensor
}

// The keys of a model in parts.
const (
	splitNo      = "split.no" // from 0
	splitCount   = "split.count"
	splitTensors = "split.tensors.count" // of all parts
)

// OpenModel opens the model that path is, or of which it is any part: the other parts lie beside
// it, and their names end in -00001-of-0000N.gguf. The error is a *FormatError if a file is at
// fault, and names every part that is missing.
func OpenModel(path string) (*Model, error) {
	f, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	m := &Model{files: []*File{f}}
	_, count, err := f.split()
	if err == nil && count > 1 {
		f.Close()
		m.files = nil
		err = m.openParts(path, count)
	}
	if err == nil {
		err = m.index()
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// split returns which part of how many the file is.
func (f *File) split() (no, count int, err error) {
	bad := func(key string, n int64) error {
		return &FormatError{Path: f.path, Name: key, Why: fmt.Sprintf("%d cannot be", n), Err: ErrParts}
	}
	count = 1
	if n, ok := f.Metadata.Int(splitCount); ok && n != 0 {
		if n < 1 || n > 99999 {
			return 0, 0, bad(splitCount, n)
		}
		count = int(n)
	}
	n, _ := f.Metadata.Int(splitNo)
	if n < 0 || n >= int64(count) {
		return 0, 0, bad(splitNo, n)
	}
	return int(n), count, nil
}

// partName is how the names of parts end.
var partName = regexp.MustCompile(`-(\d{5})-of-(\d{5})\.gguf$`)

// openParts opens all parts of the model of which path is one of count.
func (m *Model) openParts(path string, count int) error {
	found := partName.FindStringSubmatch(path)
	if found == nil || found[2] != fmt.Sprintf("%05d", count) {
		return &FormatError{Path: path, Err: ErrParts, Why: fmt.Sprintf(
			"it is one part of %d, and the others are found by its name only if that ends in -00001-of-%05d.gguf", count, count)}
	}
	stem := strings.TrimSuffix(path, found[0])
	part := func(i int) string { return fmt.Sprintf("%s-%05d-of-%05d.gguf", stem, i+1, count) }
	if err := missingParts(part, count); err != nil {
		return err
	}
	for i := range count {
		f, err := OpenFile(part(i))
		if err != nil {
			return err
		}
		m.files = append(m.files, f)
		no, of, err := f.split()
		if err != nil {
			return err
		}
		if no != i || of != count {
			return &FormatError{Path: f.path, Name: splitNo, Err: ErrParts, Why: fmt.Sprintf("the file says that it is part %d of %d", no+1, of)}
		}
	}
	return nil
}

// missingParts names the parts that are not there.
func missingParts(part func(int) string, count int) error {
	const named = 8
	var missing []string
	for i := range count {
		if _, err := os.Stat(part(i)); errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, strconv.Itoa(i+1))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	list := strings.Join(missing[:min(len(missing), named)], ", ")
	if len(missing) > named {
		list += fmt.Sprintf(" and %d more", len(missing)-named)
	}
	return &FormatError{Path: part(0), Err: ErrParts, Why: fmt.Sprintf("of %d parts these are missing: %s", count, list)}
}

// index puts the tensors of all parts under their names.
func (m *Model) index() error {
	m.byName = map[string]*Tensor{}
	for part, f := range m.files {
		for i := range f.Tensors {
			t := &f.Tensors[i]
			t.Part = part
			if first := m.byName[t.Name]; first != nil {
				return &FormatError{Path: f.path, Name: t.Name, Err: ErrParts, Why: "the tensor is in part " + strconv.Itoa(first.Part+1) + " too"}
			}
			m.byName[t.Name] = t
		}
	}
	if want, ok := m.Metadata().Int(splitTensors); ok && want != int64(len(m.byName)) {
		return &FormatError{Path: m.files[0].path, Name: splitTensors, Err: ErrParts, Why: fmt.Sprintf("%d tensors are claimed, but the parts have %d", want, len(m.byName))}
	}
	return nil
}

// Files returns the parts in their order. They belong to the model.
func (m *Model) Files() []*File { return m.files }

// Metadata returns what the first part says, which is what holds for the model.
func (m *Model) Metadata() *Metadata { return m.files[0].Metadata }

// Tensors yields the tensors of all parts in the order of the files.
func (m *Model) Tensors(yield func(*Tensor) bool) {
	for _, f := range m.files {
		for i := range f.Tensors {
			if !yield(&f.Tensors[i]) {
				return
			}
		}
	}
}

// Tensor returns a tensor by name, nil if there is none.
func (m *Model) Tensor(name string) *Tensor { return m.byName[name] }

// Bytes returns the size of all files.
func (m *Model) Bytes() int64 {
	n := int64(0)
	for _, f := range m.files {
		n += f.Bytes()
	}
	return n
}

// Drop tells the system that a part of a tensor will not be read again soon, so that reading
// through a model does not fill memory.
func (m *Model) Drop(data []byte) {
	for _, f := range m.files {
		f.drop(data)
	}
}

// Close unmaps all files. Views of them must not be used afterwards.
func (m *Model) Close() error {
	var errs []error
	for _, f := range m.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
