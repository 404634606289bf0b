package dump

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/io/safetensors"
)

// Comparison is how two dumps differ. Tensors are in the order of computation.
type Comparison struct {
	A         string  `json:"a"`
	B         string  `json:"b"`
	Tolerance float64 `json:"tolerance"`
	// what the files say of the engines that wrote them (Metadata); empty where they do not
	OfA      map[string]string `json:"of_a"`
	OfB      map[string]string `json:"of_b"`
	Compared int               `json:"compared"` // tensors that both have
	Departed int               `json:"departed"` // of those
	First    *Difference       `json:"first"`    // the first tensor that departs; null if none does
	Tensors  []Difference      `json:"tensors"`
	OnlyA    []string          `json:"only_a"`
	OnlyB    []string          `json:"only_b"`
}

// Difference is how a tensor differs: at the number that is farthest off, in proportion to the
// largest number of its row (the first axis).
type Difference struct {
	Name    string `json:"name"`
	Departs bool   `json:"departs"`
	Index   []int  `json:"index"` // of that number; null if all are equal
	A       number `json:"a"`
	B       number `json:"b"`
	Off     number `json:"off"`           // |a-b|
	Part    number `json:"part"`          // in proportion; at most Comparison.Tolerance unless it departs
	Why     string `json:"why,omitempty"` // where the numbers cannot be compared
}

// number is null in JSON where it is not finite.
type number float64

// MarshalJSON writes a number, or null.
func (n number) MarshalJSON() ([]byte, error) {
	if f := float64(n); !math.IsNaN(f) && !math.IsInf(f, 0) {
		return json.Marshal(f)
	}
	return []byte("null"), nil
}

// CompareFiles is Compare for files.
func CompareFiles(a, b string, tolerance float64) (*Comparison, error) {
	x, err := safetensors.Open(a)
	if err != nil {
		return nil, err
	}
	defer x.Close()
	y, err := safetensors.Open(b)
	if err != nil {
		return nil, err
	}
	defer y.Close()
	return Compare(x, y, tolerance)
}

// Compare compares two dumps. A number departs if it is off by more than tolerance times the
// largest number of its row in a; whole numbers depart if they differ at all, and so does what is
// not a number on one side only.
func Compare(a, b *safetensors.File, tolerance float64) (*Comparison, error) {
	c := &Comparison{A: a.Path(), B: b.Path(), Tolerance: tolerance, OnlyA: []string{}, OnlyB: []string{}, Tensors: []Difference{}, OfA: a.Metadata(), OfB: b.Metadata()}
	names := a.Names()
	sortByComputation(names)
	for _, name := range names {
		x, _ := a.Tensor(name)
		y, ok := b.Tensor(name)
		if !ok {
			c.OnlyA = append(c.OnlyA, name)
			continue
		}
		d, err := difference(x, y, tolerance)
		if err != nil {
			return nil, err
		}
		c.Compared++
		if c.Tensors = append(c.Tensors, d); d.Departs {
			c.Departed++
		}
	}
	for _, name := range b.Names() {
		if _, ok := a.Tensor(name); !ok {
			c.OnlyB = append(c.OnlyB, name)
		}
	}
	if c.Compared == 0 {
		return nil, fmt.Errorf("%s and %s have no tensor in common", a.Path(), b.Path())
	}
	if i := slices.IndexFunc(c.Tensors, func(d Difference) bool { return d.Departs }); i >= 0 {
		c.First = &c.Tensors[i]
	}
	return c, nil
}

// difference compares two tensors.
func difference(a, b safetensors.Tensor, tolerance float64) (Difference, error) {
	d := Difference{Name: a.Name}
	switch {
	case !slices.Equal(a.Shape, b.Shape):
		d.Departs, d.Why = true, fmt.Sprintf("shapes %v and %v", a.Shape, b.Shape)
		return d, nil
	case a.DType != b.DType:
		d.Departs, d.Why = true, fmt.Sprintf("types %s and %s", a.DType, b.DType)
		return d, nil
	}
	x, err := numbers(a)
	if err != nil {
		return d, err
	}
	y, err := numbers(b)
	if err != nil {
		return d, err
	}
	if a.DType == safetensors.I32 {
		tolerance = 0
	}
	row := len(x)
	if len(a.Shape) > 1 && a.Shape[0] > 0 {
		row = len(x) / a.Shape[0]
	}
	worst := -1
	for at := 0; at < len(x); at += row {
		scale := largest(x[at : at+row])
		for i := at; i < at+row; i++ {
			if off, part := apart(x[i], y[i], scale); part > float64(d.Part) {
				worst, d.Off, d.Part = i, number(off), number(part)
			}
		}
	}
	if worst >= 0 {
		d.Index, d.A, d.B = indexOf(worst, a.Shape), number(x[worst]), number(y[worst])
	}
	d.Departs = float64(d.Part) > tolerance
	return d, nil
}

// apart returns how far two numbers are from each other, and in proportion to scale.
func apart(x, y, scale float64) (off, part float64) {
	switch off = math.Abs(x - y); {
	case x == y || math.IsNaN(x) && math.IsNaN(y):
		return 0, 0
	case math.IsNaN(off) || scale == 0:
		return off, math.Inf(1)
	}
	return off, off / scale
}

// largest returns the largest finite magnitude.
func largest(x []float64) (most float64) {
	for _, v := range x {
		if v = math.Abs(v); v > most && !math.IsInf(v, 0) {
			most = v
		}
	}
	return most
}

func indexOf(at int, shape []int) []int {
	out := make([]int, len(shape))
	for i := len(shape) - 1; i >= 0; i-- {
		out[i], at = at%shape[i], at/shape[i]
	}
	return out
}

// numbers widens a tensor.
func numbers(t safetensors.Tensor) ([]float64, error) {
	out := make([]float64, t.Elements())
	if t.DType == safetensors.I32 {
		for i := range out {
			out[i] = float64(int32(binary.LittleEndian.Uint32(t.Data[4*i:])))
		}
		return out, nil
	}
	narrow := make([]float32, len(out))
	if err := t.Floats(narrow, 0); err != nil {
		return nil, err
	}
	for i, v := range narrow {
		out[i] = float64(v)
	}
	return out, nil
}

// Text says in words how the dumps differ, with the departed tensors that come first.
func (c *Comparison) Text() string {
	var b strings.Builder
	if c.First == nil {
		worst := slices.MaxFunc(c.Tensors, func(a, b Difference) int { return cmp.Compare(a.Part, b.Part) })
		if worst.Part == 0 {
			return fmt.Sprintf("all %d tensors are equal\n", c.Compared) + c.onlyText()
		}
		fmt.Fprintf(&b, "%d tensors agree within %g; the farthest is %s, off by %.3g of its row's largest number\n", c.Compared, c.Tolerance, worst.Name, worst.Part)
	} else if c.Departed == 1 {
		fmt.Fprintf(&b, "%s is the only one of %d tensors that departs by more than %g\n", c.First.Name, c.Compared, c.Tolerance)
	} else {
		fmt.Fprintf(&b, "%s is the first of %d tensors, of %d, that depart by more than %g\n", c.First.Name, c.Departed, c.Compared, c.Tolerance)
	}
	for _, key := range []string{"model", "exactness"} {
		if x, y := c.OfA[key], c.OfB[key]; x != y {
			fmt.Fprintf(&b, "%s: %s\n%*s: %s\n", key, x, len(key), "and", y)
		}
	}
	shown := 0
	for i := range c.Tensors {
		if d := &c.Tensors[i]; d.Departs && shown < mostShown {
			fmt.Fprintf(&b, "  %s\n", d.text())
			shown++
		}
	}
	return b.String() + c.onlyText()
}

// onlyText names what only one file has.
func (c *Comparison) onlyText() string {
	var b strings.Builder
	for _, only := range []struct {
		file  string
		names []string
	}{{c.A, c.OnlyA}, {c.B, c.OnlyB}} {
		if n := len(only.names); n > 0 {
			fmt.Fprintf(&b, "only %s has %s%s\n", only.file, only.names[0], more(n-1))
		}
	}
	return b.String()
}

// mostShown is how many departed tensors Text lists.
const mostShown = 8

func more(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

func (d *Difference) text() string {
	if d.Why != "" {
		return d.Name + ": " + d.Why
	}
	return fmt.Sprintf("%s%v: %.6g and %.6g, off by %.3g, %.3g of its row's largest number", d.Name, d.Index, d.A, d.B, d.Off, d.Part)
}
