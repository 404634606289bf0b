package jinja

import "math"

// Filters of numbers, and those that make numbers of text.

func filterAbs(r *run, in Value, a arguments) (Value, error) {
	if _, err := a.bind("abs", 0); err != nil {
		return nil, err
	}
	if f, ok := in.(float64); ok {
		return math.Abs(f), nil
	}
	if u, ok := in.(*undefined); ok {
		return nil, typeErr("bad operand type for abs(): '%s'", typeName(u))
	}
	b, ok := asBig(in)
	if !ok {
		return nil, typeErr("bad operand type for abs(): '%s'", typeName(in))
	}
	if b.Sign() < 0 {
		return r.unary("-", in)
	}
	return normInt(b), nil
}

func filterInt(_ *run, in Value, a arguments) (Value, error) {
	v, err := a.bind("int", 0, "default", "base")
	if err != nil {
		return nil, err
	}
	def := v[0]
	if def == missing {
		def = int64(0)
	}
	if u, ok := in.(*undefined); ok {
		return nil, u.fail()
	}
	if f, ok := in.(float64); ok {
		n, err := truncFloat(f)
		if hasKind(err, KindValue) {
			return def, nil
		}
		return n, err
	}
	if b, ok := asBig(in); ok {
		return normInt(b), nil
	}
	s, ok := asString(in)
	if !ok {
		return def, nil
	}
	base := 10
	if v[1] != missing {
		if base, err = size(v[1]); err != nil {
			base = -1 // not an int: the reference goes on with float
		}
	}
	if n, err := parseInt(s, base); err == nil {
		return n, nil
	}
	f, err := parseFloat(s)
	if err != nil {
		return def, nil
	}
	n, err := truncFloat(f)
	if err != nil {
		return def, nil
	}
	return n, nil
}

func filterFloat(_ *run, in Value, a arguments) (Value, error) {
	v, err := a.bind("float", 0, "default")
	if err != nil {
		return nil, err
	}
	def := v[0]
	if def == missing {
		def = 0.0
	}
	if u, ok := in.(*undefined); ok {
		return nil, u.fail()
	}
	if isNumber(in) {
		f, err := toFloat(in)
		return f, err
	}
	if s, ok := asString(in); ok {
		if f, err := parseFloat(s); err == nil {
			return f, nil
		}
	}
	return def, nil
}

func filterRound(r *run, in Value, a arguments) (Value, error) {
	v, err := a.bind("round", 0, "precision", "method")
	if err != nil {
		return nil, err
	}
	how, ok := asString(optional(v[1], "common"))
	if !ok || how != "common" && how != "ceil" && how != "floor" {
		return nil, fail(KindFilterArg, "method must be common, ceil or floor")
	}
	prec := Value(int64(0))
	if v[0] != missing {
		prec = v[0]
	}
	if how == "common" {
		if prec == nil {
			return nil, fail(KindUnsupported, "round with the precision None is not supported")
		}
		n, err := size(prec)
		if err != nil {
			return nil, err
		}
		return round(in, n)
	}
	unit, err := r.binary("**", int64(10), prec)
	if err != nil {
		return nil, err
	}
	x, err := r.binary("*", in, unit)
	if err != nil {
		return nil, err
	}
	if f, ok := x.(float64); ok {
		if how == "ceil" {
			f = math.Ceil(f)
		} else {
			f = math.Floor(f)
		}
		if x, err = truncFloat(f); err != nil {
			return nil, err
		}
	}
	return r.binary("/", x, unit)
}
