package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/moeflux/moeflux-actor/internal/durable"
)

// WriteFile writes tensors, in the order given, and metadata (nil for none) to path. The file
// appears complete or not at all. The error is a *FormatError for tensors that a file cannot hold.
func WriteFile(path string, tensors []Tensor, metadata map[string]string) error {
	header, err := buildHeader(path, tensors, metadata)
	if err != nil {
		return err
	}
	err = durable.Replace(path, durable.Shared, func(w io.Writer) error { return writeAll(w, header, tensors) })
	if err != nil {
		return fmt.Errorf("safetensors: write %s: %w", path, err)
	}
	return nil
}

func writeAll(w io.Writer, header []byte, tensors []Tensor) error {
	if err := binary.Write(w, binary.LittleEndian, uint64(len(header))); err != nil {
		return err
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	for _, t := range tensors {
		if _, err := w.Write(t.Data); err != nil {
			return err
		}
	}
	return nil
}

// buildHeader returns the JSON header, padded so that the data begins at a multiple of 8.
func buildHeader(path string, tensors []Tensor, metadata map[string]string) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	seen := map[string]bool{metadataKey: true}
	put := func(key string, value any) error {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		k, err := json.Marshal(key)
		if err != nil {
			return err
		}
		v, err := json.Marshal(value)
		if err != nil {
			return err
		}
		b.Write(k)
		b.WriteByte(':')
		b.Write(v)
		return nil
	}
	if metadata != nil {
		if err := put(metadataKey, metadata); err != nil {
			return nil, fmt.Errorf("safetensors: %w", err)
		}
	}
	at := 0
	for _, t := range tensors {
		fail := func(format string, args ...any) error {
			return &FormatError{Path: path, Tensor: t.Name, Why: fmt.Sprintf(format, args...)}
		}
		if seen[t.Name] {
			return nil, fail("named twice, or reserved")
		}
		seen[t.Name] = true
		want, err := t.DType.Bytes(t.Shape)
		if err != nil {
			return nil, fail("%v", err)
		}
		if want != len(t.Data) {
			return nil, fail("%s %v takes %d bytes, but it has %d", t.DType, t.Shape, want, len(t.Data))
		}
		shape := t.Shape
		if shape == nil {
			shape = []int{}
		}
		d := struct {
			DType   DType  `json:"dtype"`
			Shape   []int  `json:"shape"`
			Offsets [2]int `json:"data_offsets"`
		}{t.DType, shape, [2]int{at, at + want}}
		if err := put(t.Name, d); err != nil {
			return nil, fmt.Errorf("safetensors: %w", err)
		}
		at += want
	}
	b.WriteByte('}')
	for (8+b.Len())%8 != 0 {
		b.WriteByte(' ')
	}
	if b.Len() > maxHeader {
		return nil, &FormatError{Path: path, Why: fmt.Sprintf("a header of %d bytes exceeds the limit of %d", b.Len(), maxHeader)}
	}
	return b.Bytes(), nil
}
