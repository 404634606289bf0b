package ggufmodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/moeflux/moeflux-actor/io/gguf"
)

// object is a config.json in the making.
type object map[string]any

// keys reads the metadata of one architecture and gathers what is wrong with it.
type keys struct {
	path   string
	prefix string // with the point
	file   *gguf.Model
	errs   []error
}

// failed returns everything that was wrong, nil if nothing was.
func (k *keys) failed() error { return errors.Join(k.errs...) }

// fail notes a key that is missing or cannot be used.
func (k *keys) fail(name, format string, args ...any) {
	k.errs = append(k.errs, &gguf.FormatError{Path: k.path, Name: k.prefix + name, Why: fmt.Sprintf(format, args...)})
}

func (k *keys) get(name string) (gguf.Value, bool) { return k.file.Metadata().Get(k.prefix + name) }

func (k *keys) has(name string) bool {
	_, ok := k.get(name)
	return ok
}

// int returns the whole number of a key that must be there, 0 after an error. Where each layer has
// one, those that are not 0 must agree.
func (k *keys) int(name string) int {
	if !k.has(name) {
		k.fail(name, "the key is missing")
		return 0
	}
	return k.intOr(name, 0)
}

// intOr is int for a key that may be absent.
func (k *keys) intOr(name string, absent int) int {
	v, ok := k.get(name)
	if !ok {
		return absent
	}
	n, ok := count(v)
	for e := range v.Elements() {
		one, fits := count(e)
		if ok = fits && (n == 0 || one == 0 || n == one); !ok {
			break
		}
		n = max(n, one)
	}
	if !ok {
		k.fail(name, "is no whole number from 0 to %d that all layers share", math.MaxInt32)
		return 0
	}
	return n
}

// count returns a whole number that can be a size.
func count(v gguf.Value) (int, bool) {
	if v.Type == gguf.Array {
		return 0, v.Len > 0
	}
	n, ok := v.Int()
	return int(n), ok && n >= 0 && n <= math.MaxInt32
}

// float returns the number of a key that must be there; it is written as the shortest decimal that
// stands for it, which is what the checkpoint's configuration said before it became a float32.
func (k *keys) float(name string) json.Number {
	if !k.has(name) {
		k.fail(name, "the key is missing")
		return "0"
	}
	return decimal(k.floatOr(name, 0))
}

// floatOr returns the number of a key that may be absent.
func (k *keys) floatOr(name string, absent float64) float64 {
	v, ok := k.get(name)
	if !ok {
		return absent
	}
	x, ok := v.Float()
	if n, whole := v.Int(); whole {
		x, ok = float64(n), true
	}
	if !ok || math.IsNaN(x) || math.IsInf(x, 0) {
		k.fail(name, "is no finite number")
		return 0
	}
	return x
}

// decimal returns the shortest decimal of a float32.
func decimal(x float64) json.Number { return json.Number(strconv.FormatFloat(x, 'g', -1, 32)) }

// boolOr returns the truth value of a key that may be absent.
func (k *keys) boolOr(name string, absent bool) bool {
	v, ok := k.get(name)
	if !ok {
		return absent
	}
	b, ok := v.Bool()
	if !ok {
		k.fail(name, "is no truth value")
	}
	return b
}

// textOr returns the string of a key that may be absent.
func (k *keys) textOr(name, absent string) string {
	v, ok := k.get(name)
	if !ok {
		return absent
	}
	s, ok := v.Text()
	if !ok {
		k.fail(name, "is no string")
	}
	return s
}

// refuse notes a key that asks for what the engine does not do, unless it has a value that asks for
// nothing.
func (k *keys) refuse(name string, nothing ...float64) {
	x := k.floatOr(name, 0)
	for _, n := range append(nothing, 0) {
		if x == n {
			return
		}
	}
	k.fail(name, "is %v, which is not supported in this architecture", x)
}

// perLayer returns the numbers of a key that has one for each layer, more of which are those of
// draft layers; nil if it is absent. Truth values count as 0 and 1.
func (k *keys) perLayer(name string, layers int) []float64 {
	v, ok := k.get(name)
	if !ok {
		return nil
	}
	var out []float64
	for e := range v.Elements() {
		x, ok := e.Float()
		if n, whole := e.Int(); whole {
			x, ok = float64(n), true
		}
		if b, truth := e.Bool(); truth {
			x, ok = 0, true
			if b {
				x = 1
			}
		}
		if !ok || math.IsNaN(x) || math.IsInf(x, 0) {
			break
		}
		out = append(out, x)
	}
	if v.Type != gguf.Array || len(out) != v.Len || len(out) < layers {
		k.fail(name, "is not a list of a number for each of %d layers", layers)
		return make([]float64, layers)
	}
	return out[:layers]
}

// rows returns the rows of a matrix, 0 if there is none.
func (k *keys) rows(format string, args ...any) int {
	t := k.file.Tensor(fmt.Sprintf(format, args...))
	if t == nil || len(t.Shape) != 2 {
		return 0
	}
	return t.Shape[0]
}

// tensor reports whether the file has a tensor.
func (k *keys) tensor(format string, args ...any) bool {
	return k.file.Tensor(fmt.Sprintf(format, args...)) != nil
}
