package jinja

import (
	"math"
	"math/big"
	"strconv"
)

// maxIntBits bounds ints; the longest that Python prints has about 14300.
const maxIntBits = 1 << 16

// normInt is n as an int64 if it fits.
func normInt(n *big.Int) Value {
	if n.IsInt64() {
		return n.Int64()
	}
	return n
}

// asBig is the value of an int or a bool.
func asBig(v Value) (*big.Int, bool) {
	switch v := v.(type) {
	case int64:
		return big.NewInt(v), true
	case *big.Int:
		return v, true
	case bool:
		if v {
			return big.NewInt(1), true
		}
		return new(big.Int), true
	}
	return nil, false
}

// asInt64 is the value of an int or a bool that fits.
func asInt64(v Value) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

func isNumber(v Value) bool {
	switch v.(type) {
	case bool, int64, *big.Int, float64:
		return true
	}
	return false
}

// toFloat is Python's conversion of a number.
func toFloat(v Value) (float64, error) {
	switch v := v.(type) {
	case float64:
		return v, nil
	case *big.Int:
		f, _ := new(big.Float).SetInt(v).Float64()
		if math.IsInf(f, 0) {
			return 0, fail(KindOverflow, "int too large to convert to float")
		}
		return f, nil
	}
	n, ok := asInt64(v)
	if !ok {
		return 0, typeErr("must be real number, not %s", typeName(v))
	}
	return float64(n), nil
}

// index is the value of an int that a length or a position is given by. One too large becomes the
// largest.
func index(v Value) (int64, error) {
	switch v := v.(type) {
	case *big.Int:
		if v.Sign() < 0 {
			return math.MinInt64, nil
		}
		return math.MaxInt64, nil
	case *undefined:
		return 0, typeErr("'Undefined' object cannot be interpreted as an integer")
	}
	n, ok := asInt64(v)
	if !ok {
		return 0, typeErr("'%s' object cannot be interpreted as an integer", typeName(v))
	}
	return n, nil
}

// size is index cut to what can be a count of characters or items: those beyond the limit stay
// beyond it.
func size(v Value) (int, error) {
	n, err := index(v)
	const most = 1 << 40
	return int(min(max(n, -most), most)), err
}

// intString is str of an int.
func intString(v Value) (string, error) {
	switch v := v.(type) {
	case int64:
		return strconv.FormatInt(v, 10), nil
	case *big.Int:
		s := v.String()
		if len(s) > maxIntDigits+1 || len(s) == maxIntDigits+1 && v.Sign() > 0 {
			return "", fail(KindValue, "Exceeds the limit (%d digits) for integer string conversion", maxIntDigits)
		}
		return s, nil
	}
	return "", typeErr("%s is no int", typeName(v))
}

// floatString is repr of a float: the shortest digits that give it back, with an exponent below
// 1e-4 and from 1e16 on.
func floatString(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if f == math.Trunc(f) {
		s += ".0"
	}
	return s
}
