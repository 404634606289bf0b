package jinja

import (
	"math"
	"math/big"
	"strings"
)

// unary is -v or +v.
func (r *run) unary(op string, v Value) (Value, error) {
	switch x := v.(type) {
	case *undefined:
		return nil, x.fail()
	case float64:
		if op == "-" {
			return -x, nil
		}
		return x, nil
	}
	b, ok := asBig(v)
	if !ok {
		return nil, typeErr("bad operand type for unary %s: '%s'", op, typeName(v))
	}
	if op == "-" {
		b = new(big.Int).Neg(b)
	}
	return normInt(b), nil
}

// binary is a op b for the arithmetic operators, those of strings and lists included.
func (r *run) binary(op string, a, b Value) (Value, error) {
	if isNumber(a) && isNumber(b) {
		return r.arithmetic(op, a, b)
	}
	if _, ok := asString(a); ok && op == "%" {
		return nil, fail(KindUnsupported, "the operator %% on a string is not supported in chat templates")
	}
	if u, ok := a.(*undefined); ok {
		return nil, u.fail()
	}
	if u, ok := b.(*undefined); ok {
		return nil, u.fail()
	}
	switch op {
	case "+":
		if v, ok, err := r.join(a, b); ok {
			return v, err
		}
	case "*":
		if v, ok, err := r.repeat(a, b); ok {
			return v, err
		}
		if v, ok, err := r.repeat(b, a); ok {
			return v, err
		}
	}
	return nil, badOperands(op, a, b)
}

// badOperands says what Python says about operands that do not go together.
func badOperands(op string, a, b Value) error {
	isSequence := func(v Value) bool {
		switch v.(type) {
		case string, markup, *List, *Tuple:
			return true
		}
		return false
	}
	switch {
	case op == "+" && isSequence(a):
		name := typeName(a)
		if isMarkup(a) {
			name = "str"
		}
		return typeErr(`can only concatenate %s (not "%s") to %s`, name, typeName(b), name)
	case op == "*" && isSequence(a):
		return typeErr("can't multiply sequence by non-int of type '%s'", typeName(b))
	case op == "*" && isSequence(b):
		return typeErr("can't multiply sequence by non-int of type '%s'", typeName(a))
	case op == "**":
		op = "** or pow()"
	}
	return typeErr("unsupported operand type(s) for %s: '%s' and '%s'", op, typeName(a), typeName(b))
}

// join is a + b of two strings, lists or tuples; ok is false for anything else.
func (r *run) join(a, b Value) (v Value, ok bool, err error) {
	switch x := a.(type) {
	case string, markup:
		s, _ := asString(a)
		t, ok := asString(b)
		if !ok {
			return nil, false, nil
		}
		_, am := a.(markup)
		_, bm := b.(markup)
		if am || bm { // marked text escapes what is added to it
			s, t = escapeText(a), escapeText(b)
		}
		if err := r.charge(len(s) + len(t)); err != nil {
			return nil, true, err
		}
		if am || bm {
			return markup(s + t), true, nil
		}
		return s + t, true, nil
	case *List:
		if y, ok := b.(*List); ok {
			items, err := r.concatItems(x.items, y.items)
			return &List{items}, true, err
		}
	case *Tuple:
		if y, ok := b.(*Tuple); ok {
			items, err := r.concatItems(x.items, y.items)
			return &Tuple{items: items}, true, err
		}
	}
	return nil, false, nil
}

func (r *run) concatItems(a, b []Value) ([]Value, error) {
	if err := r.chargeItems(len(a) + len(b)); err != nil {
		return nil, err
	}
	return append(append(make([]Value, 0, len(a)+len(b)), a...), b...), nil
}

// repeat is a * n of a string, list or tuple; ok is false for anything else.
func (r *run) repeat(a, n Value) (v Value, ok bool, err error) {
	if _, isInt := asBig(n); !isInt {
		return nil, false, nil
	}
	count, err := size(n)
	count = max(count, 0)
	text, isText := asString(a)
	var items []Value
	switch x := a.(type) {
	case string, markup:
	case *List:
		items = x.items
	case *Tuple:
		items = x.items
	default:
		return nil, false, nil
	}
	unit := max(len(text), len(items))
	if unit == 0 {
		count = 0
	} else if err == nil && count > r.cfg.MaxOutputBytes/unit {
		err = fail(KindLimit, "a value repeated %d times is too large", count)
	}
	if err != nil {
		return nil, true, err
	}
	if isText {
		if err := r.charge(len(text) * count); err != nil {
			return nil, true, err
		}
		return likeText(a, strings.Repeat(text, count)), true, nil
	}
	if err := r.chargeItems(len(items) * count); err != nil {
		return nil, true, err
	}
	out := make([]Value, 0, len(items)*count)
	for range count {
		out = append(out, items...)
	}
	if _, ok := a.(*Tuple); ok {
		return &Tuple{items: out}, true, nil
	}
	return &List{out}, true, nil
}

// arithmetic is a op b of two numbers.
func (r *run) arithmetic(op string, a, b Value) (Value, error) {
	_, af := a.(float64)
	_, bf := b.(float64)
	if af || bf {
		x, err := toFloat(a)
		if err != nil {
			return nil, err
		}
		y, err := toFloat(b)
		if err != nil {
			return nil, err
		}
		return floatArith(op, x, y)
	}
	if x, ok := asInt64(a); ok {
		if y, ok := asInt64(b); ok {
			if v, ok := smallArith(op, x, y); ok {
				return v, nil
			}
		}
	}
	x, _ := asBig(a)
	y, _ := asBig(b)
	return r.bigArith(op, x, y)
}

// smallArith is the common case: no overflow, no exception.
func smallArith(op string, x, y int64) (Value, bool) {
	const half = 1 << 31
	switch op {
	case "+":
		z := x + y
		return z, (z > x) == (y > 0)
	case "-":
		z := x - y
		return z, (z < x) == (y > 0)
	case "*":
		return x * y, x > -half && x < half && y > -half && y < half
	case "//", "%":
		if y == 0 || y == -1 {
			return nil, false
		}
		q, m := x/y, x%y
		if m != 0 && (m < 0) != (y < 0) {
			q, m = q-1, m+y
		}
		if op == "//" {
			return q, true
		}
		return m, true
	}
	return nil, false
}

func (r *run) bigArith(op string, x, y *big.Int) (Value, error) {
	z := new(big.Int)
	switch op {
	case "+":
		z.Add(x, y)
	case "-":
		z.Sub(x, y)
	case "*":
		if x.BitLen()+y.BitLen() > 2*maxIntBits {
			return nil, fail(KindLimit, "an int of more than %d bits", maxIntBits)
		}
		z.Mul(x, y)
	case "/", "//", "%":
		return divide(op, x, y)
	case "**":
		return r.bigPower(x, y)
	}
	if z.BitLen() > maxIntBits {
		return nil, fail(KindLimit, "an int of more than %d bits", maxIntBits)
	}
	return normInt(z), r.charge(z.BitLen() / 8)
}

func divide(op string, x, y *big.Int) (Value, error) {
	if y.Sign() == 0 {
		msg := "integer division or modulo by zero"
		switch op {
		case "/":
			msg = "division by zero"
		case "%":
			msg = "integer modulo by zero"
		}
		return nil, fail(KindZeroDivide, "%s", msg)
	}
	if op == "/" {
		f, _ := new(big.Rat).SetFrac(x, y).Float64() // correctly rounded, as Python's is
		if math.IsInf(f, 0) {
			return nil, fail(KindOverflow, "integer division result too large for a float")
		}
		if f == 0 && (x.Sign() < 0) != (y.Sign() < 0) && x.Sign() != 0 {
			f = math.Copysign(0, -1)
		}
		return f, nil
	}
	q, m := new(big.Int).QuoRem(x, y, new(big.Int))
	if m.Sign() != 0 && m.Sign() != y.Sign() {
		q.Sub(q, big.NewInt(1))
		m.Add(m, y)
	}
	if op == "//" {
		return normInt(q), nil
	}
	return normInt(m), nil
}

func (r *run) bigPower(x, y *big.Int) (Value, error) {
	if y.Sign() < 0 {
		a, err := toFloat(normInt(x))
		if err != nil {
			return nil, err
		}
		b, err := toFloat(normInt(y))
		if err != nil {
			return nil, err
		}
		return floatArith("**", a, b)
	}
	if x.BitLen() > 1 && (!y.IsInt64() || y.Int64() > maxIntBits || int64(x.BitLen())*y.Int64() > maxIntBits) {
		return nil, fail(KindLimit, "an int of more than %d bits", maxIntBits)
	}
	if x.BitLen() <= 1 && y.Sign() > 0 { // 0, 1 and -1: only whether y is odd matters
		y = big.NewInt(int64(2 - y.Bit(0)))
	}
	z := new(big.Int).Exp(x, y, nil)
	return normInt(z), r.charge(z.BitLen() / 8)
}

// floatArith is Python's arithmetic of floats.
func floatArith(op string, x, y float64) (Value, error) {
	switch op {
	case "+":
		return x + y, nil
	case "-":
		return x - y, nil
	case "*":
		return x * y, nil
	case "**":
		return floatPower(x, y)
	}
	if y == 0 {
		msg := map[string]string{"/": "float division by zero", "//": "float floor division by zero", "%": "float modulo"}[op]
		return nil, fail(KindZeroDivide, "%s", msg)
	}
	if op == "/" {
		return x / y, nil
	}
	m := math.Mod(x, y)
	div := (x - m) / y
	if m != 0 {
		if (y < 0) != (m < 0) {
			m += y
			div--
		}
	} else {
		m = math.Copysign(0, y)
	}
	if op == "%" {
		return m, nil
	}
	if div == 0 {
		return math.Copysign(0, x/y), nil
	}
	floor := math.Floor(div)
	if div-floor > 0.5 {
		floor++
	}
	return floor, nil
}

func floatPower(x, y float64) (Value, error) {
	z := math.Pow(x, y)
	finite := !math.IsInf(x, 0) && !math.IsInf(y, 0)
	switch {
	case x == 0 && y < 0:
		return nil, fail(KindZeroDivide, "0.0 cannot be raised to a negative power")
	case x < 0 && finite && y != math.Trunc(y):
		return nil, fail(KindUnsupported, "a fractional power of a negative number, which is complex, is not supported")
	case finite && math.IsInf(z, 0):
		return nil, fail(KindOverflow, "(34, 'Numerical result out of range')")
	}
	return z, nil
}
