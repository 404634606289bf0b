package jinja

// macro is a macro or the body of a call block, with the scope in which it was defined.
type macro struct {
	def   *macroDef
	scope *scope
}

func (s *macroStmt) exec(_ *run, sc *scope, _ *buffer) (flow, error) {
	sc.set(s.def.name, &macro{s.def, sc})
	return flowNext, nil
}

func (s *callStmt) exec(r *run, sc *scope, out *buffer) (flow, error) {
	v, err := r.call(s.call, sc, &macro{s.caller, sc})
	if err != nil {
		return flowNext, at(err, r.name, s.call.lineNo())
	}
	text, err := r.str(v)
	if err != nil {
		return flowNext, err
	}
	return flowNext, out.write(text)
}

// call runs the macro.
func (m *macro) call(r *run, a arguments) (Value, error) {
	sc := m.scope.inner()
	if err := m.bind(r, sc, a); err != nil {
		return nil, err
	}
	text, _, err := r.capture(m.def.body, sc)
	if err != nil {
		return nil, err
	}
	return text, nil
}

// bind gives the arguments to the parameters, in sc. The rules are the reference's, those for
// caller included.
func (m *macro) bind(r *run, sc *scope, a arguments) error {
	d := m.def
	kw := append([]keyword(nil), a.kw...)
	take := func(name string) Value {
		for i, k := range kw {
			if k.name == name {
				kw = append(kw[:i], kw[i+1:]...)
				return k.val
			}
		}
		return missing
	}
	given := make([]Value, len(d.params))
	foundCaller := len(a.pos) >= len(d.params) && d.paramIndex("caller") >= 0
	for i, name := range d.params {
		if i < len(a.pos) {
			given[i] = a.pos[i]
			continue
		}
		given[i] = take(name)
		foundCaller = foundCaller || name == "caller"
	}
	if d.usesCaller && !foundCaller {
		caller := take("caller")
		if caller == missing || caller == nil {
			caller = undefinedHint("No caller defined")
		}
		sc.set("caller", caller)
	}
	if d.usesKwargs {
		sc.set("kwargs", kwDict(kw))
	} else if len(kw) > 0 {
		for _, k := range kw {
			if k.name == "caller" {
				return typeErr("macro %s was invoked with two values for the special caller argument."+
					" This is most likely a bug.", d.reprName())
			}
		}
		return typeErr("macro %s takes no keyword argument %s", d.reprName(), reprString(kw[0].name))
	}
	if extra := max(len(a.pos)-len(d.params), 0); d.usesVarargs {
		sc.set("varargs", &Tuple{items: a.pos[len(a.pos)-extra:]})
	} else if extra > 0 {
		return typeErr("macro %s takes not more than %d argument(s)", d.reprName(), len(d.params))
	}
	return m.defaults(r, sc, given)
}

// defaults sets the parameters. A default may use those before it.
func (m *macro) defaults(r *run, sc *scope, given []Value) error {
	d := m.def
	for i, name := range d.params {
		v := given[i]
		if v == missing {
			k := i - (len(d.params) - len(d.defaults))
			if k < 0 {
				v = undefinedHint("parameter " + reprString(name) + " was not provided")
			} else {
				var err error
				if v, err = r.value(d.defaults[k], sc); err != nil {
					return err
				}
			}
		}
		sc.set(name, v)
	}
	return nil
}

func (d *macroDef) reprName() string {
	if d.name == "" {
		return "None"
	}
	return reprString(d.name)
}

// attr is an attribute of a macro.
func (m *macro) attr(name string) (Value, bool) {
	d := m.def
	switch name {
	case "name":
		if d.name == "" {
			return nil, true
		}
		return d.name, true
	case "arguments":
		t := &Tuple{}
		for _, p := range d.params {
			t.items = append(t.items, p)
		}
		return t, true
	case "catch_kwargs":
		return d.usesKwargs, true
	case "catch_varargs":
		return d.usesVarargs, true
	case "caller":
		return d.usesCaller, true
	case "explicit_caller":
		return d.paramIndex("caller") >= 0, true
	}
	return nil, false
}

// keyword is an argument given by name.
type keyword struct {
	name string
	val  Value
}

// arguments are those of one call.
type arguments struct {
	pos []Value
	kw  []keyword
}

func kwDict(kw []keyword) *Dict {
	d := NewDict()
	for _, k := range kw {
		d.Set(k.name, k.val)
	}
	return d
}

// bind matches the arguments with the parameters of a function, of which the first required ones
// must be there. What is not given is missing.
func (a arguments) bind(fn string, required int, params ...string) ([]Value, error) {
	if len(a.pos) > len(params) {
		return nil, typeErr("%s() takes at most %d arguments (%d given)", fn, len(params), len(a.pos))
	}
	out := make([]Value, len(params))
	for i := range out {
		out[i] = missing
	}
	copy(out, a.pos)
	for _, k := range a.kw {
		i := 0
		for i < len(params) && params[i] != k.name {
			i++
		}
		if i == len(params) {
			return nil, typeErr("%s() got an unexpected keyword argument %s", fn, reprString(k.name))
		}
		if out[i] != missing {
			return nil, typeErr("%s() got multiple values for argument %s", fn, reprString(k.name))
		}
		out[i] = k.val
	}
	for i := range required {
		if out[i] == missing {
			return nil, typeErr("%s() missing required argument: %s", fn, reprString(params[i]))
		}
	}
	return out, nil
}
