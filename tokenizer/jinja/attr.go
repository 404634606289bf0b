package jinja

import "strings"

// getAttr is obj.name: an attribute, or else an item.
func (r *run) getAttr(obj Value, name string) (Value, error) {
	if u, ok := obj.(*undefined); ok && !isDunder(name) {
		return nil, u.fail()
	}
	v, ok, err := r.attribute(obj, name)
	if ok || err != nil {
		return v, err
	}
	if u, ok := obj.(*undefined); ok {
		return nil, u.fail()
	}
	if d, ok := obj.(*Dict); ok {
		if v, ok := d.Get(name); ok {
			return v, nil
		}
	}
	return undefinedIn(obj, name), nil
}

// getItem is obj[arg]: an item, or else an attribute if arg is a string.
func (r *run) getItem(obj, arg Value) (Value, error) {
	if u, ok := obj.(*undefined); ok {
		return nil, u.fail()
	}
	v, ok, err := r.item(obj, arg)
	if ok || err != nil {
		return v, err
	}
	if name, isText := asString(arg); isText {
		v, ok, err := r.attribute(obj, name)
		if ok || err != nil {
			return v, err
		}
	}
	return undefinedIn(obj, arg), nil
}

// item is obj[arg] without a fallback.
func (r *run) item(obj, arg Value) (v Value, ok bool, err error) {
	if d, ok := obj.(*Dict); ok {
		k, err := r.keyOf(arg)
		if err != nil {
			if hasKind(err, KindType) {
				return nil, false, nil // an unhashable key is in no dict
			}
			return nil, false, err
		}
		v, ok := d.find(k)
		return v, ok, nil
	}
	i, isInt := asInt64(arg)
	n, sized := length(obj)
	if !isInt || !sized {
		return nil, false, nil
	}
	if i < 0 {
		i += int64(n)
	}
	if i < 0 || i >= int64(n) {
		return nil, false, nil
	}
	switch o := obj.(type) {
	case *List:
		return o.items[i], true, nil
	case *Tuple:
		return o.items[i], true, nil
	case *rangeValue:
		return o.at(int(i)), true, nil
	case string, markup:
		s, _ := asString(obj)
		if err := r.step(len(s) / 16); err != nil {
			return nil, false, err
		}
		from := byteOffset(s, int(i))
		return likeText(obj, s[from:from+byteOffset(s[from:], 1)]), true, nil
	}
	return nil, false, nil
}

// isDunder reports whether name is one of Python's own.
func isDunder(name string) bool {
	return len(name) > 4 && strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__")
}

// everyObjectHas are attributes of every object. The sandbox forbids them all.
var everyObjectHas = map[string]bool{
	"__class__": true, "__delattr__": true, "__dir__": true, "__doc__": true, "__eq__": true, "__format__": true,
	"__ge__": true, "__getattribute__": true, "__getstate__": true, "__gt__": true, "__hash__": true, "__init__": true,
	"__init_subclass__": true, "__le__": true, "__lt__": true, "__ne__": true, "__new__": true, "__reduce__": true,
	"__reduce_ex__": true, "__repr__": true, "__setattr__": true, "__sizeof__": true, "__str__": true, "__subclasshook__": true,
}

// containersHave are attributes of most containers, and forbidden.
var containersHave = map[string]bool{
	"__len__": true, "__iter__": true, "__contains__": true, "__getitem__": true, "__add__": true, "__mul__": true, "__rmul__": true,
}

var mutates = map[string]map[string]bool{
	"list": {"append": true, "clear": true, "pop": true, "reverse": true, "insert": true, "sort": true, "extend": true, "remove": true},
	"dict": {"clear": true, "pop": true, "popitem": true, "setdefault": true, "update": true},
}

// attribute is an attribute of obj in Python's sense, methods included; ok is false if it has none
// of that name. What the sandbox forbids comes as an undefined value that fails when used.
func (r *run) attribute(obj Value, name string) (v Value, ok bool, err error) {
	if strings.HasPrefix(name, "_") {
		ns, isNS := obj.(*namespace)
		if isNS {
			_, ok = ns.attrs.Get(name)
			ok = ok || name == "__class__"
		} else {
			_, sized := length(obj)
			ok = everyObjectHas[name] || sized && containersHave[name]
		}
		return unsafeAttr(obj, name), ok, nil
	}
	switch o := obj.(type) {
	case *namespace:
		v, ok = o.attrs.Get(name)
		return v, ok, nil
	case *loopContext:
		return o.attr(r, name)
	case *macro:
		v, ok = o.attr(name)
		return v, ok, nil
	case *cycler:
		v, ok = o.attr(name)
		return v, ok, nil
	case *joiner:
		v, ok = o.attr(name)
		return v, ok, nil
	case *rangeValue:
		switch name {
		case "start":
			return o.start, true, nil
		case "stop":
			return o.stop, true, nil
		case "step":
			return o.step, true, nil
		}
	case *Tuple:
		for i, f := range o.fields {
			if f == name {
				return o.items[i], true, nil
			}
		}
	}
	kind := typeName(obj)
	if mutates[kind][name] {
		return unsafeAttr(obj, name), true, nil
	}
	if fn := methodOf(kind, name); fn != nil {
		return &method{obj, name, fn}, true, nil
	}
	return nil, false, nil
}

// path is an attribute as filters take it: names and positions with points between.
type path []Value

// newPath reads the attribute argument of a filter: a string, an int, or None for the value itself.
func newPath(v Value) path {
	s, ok := asString(v)
	if v == nil {
		return nil
	}
	if !ok {
		return path{v}
	}
	var p path
	for _, part := range strings.Split(s, ".") {
		if n, err := parseInt(part, 10); err == nil && isAllDigits(part) {
			p = append(p, n)
		} else {
			p = append(p, part)
		}
	}
	return p
}

// get follows the path from v. Unless def is nil, it takes the place of what is undefined.
func (r *run) get(p path, v Value, def Value) (Value, error) {
	for _, part := range p {
		var err error
		if v, err = r.getItem(v, part); err != nil {
			return nil, err
		}
		if _, ok := v.(*undefined); ok && def != nil {
			v = def
		}
	}
	return v, nil
}

// slice is obj[start:stop:step], where None leaves a bound open.
func (r *run) slice(obj Value, bounds [3]Value) (Value, error) {
	if u, ok := obj.(*undefined); ok {
		return nil, u.fail()
	}
	n, _ := length(obj)
	from, to, step, count, err := sliceBounds(bounds, n)
	switch o := obj.(type) {
	case *Dict:
		return nil, typeErr("unhashable type: 'slice'")
	case *List, *Tuple, string, markup, *rangeValue:
		if err == nil {
			err = r.chargeItems(count)
		}
		if err != nil {
			return nil, err
		}
		switch o := o.(type) {
		case *List:
			return &List{pick(o.items, from, step, count)}, nil
		case *Tuple:
			return &Tuple{items: pick(o.items, from, step, count)}, nil
		case *rangeValue:
			return &rangeValue{o.start + int64(from)*o.step, o.start + int64(to)*o.step, int64(step) * o.step}, nil
		}
		s, _ := asString(obj)
		return likeText(obj, sliceString(s, from, step, count)), nil
	}
	return nil, typeErr("'%s' object is not subscriptable", typeName(obj))
}

// sliceBounds resolves the bounds for a length of n: count positions from from on, step apart,
// before to.
func sliceBounds(b [3]Value, n int) (from, to, step, count int, err error) {
	num := func(v Value, def int) int {
		if v == nil || err != nil {
			return def
		}
		i, e := size(v)
		if e != nil {
			err = typeErr("slice indices must be integers or None or have an __index__ method")
		}
		return i
	}
	step = num(b[2], 1)
	if err == nil && step == 0 {
		err = fail(KindValue, "slice step cannot be zero")
	}
	if err != nil {
		return 0, 0, 0, 0, err
	}
	low, high := 0, n // where a bound is cut to
	from, to = 0, n
	if step < 0 {
		low, high = -1, n-1
		from, to = n-1, -1
	}
	cut := func(v Value, def int) int {
		i := num(v, def)
		if v != nil && i < 0 {
			i += n
		}
		return min(max(i, low), high)
	}
	from, to = cut(b[0], from), cut(b[1], to)
	if step > 0 && from < to {
		count = (to-from-1)/step + 1
	}
	if step < 0 && from > to {
		count = (from-to-1)/-step + 1
	}
	return from, to, step, count, err
}

func pick(items []Value, from, step, count int) []Value {
	if step == 1 {
		return items[from : from+count : from+count]
	}
	out := make([]Value, count)
	for i := range out {
		out[i] = items[from+i*step]
	}
	return out
}

func sliceString(s string, from, step, count int) string {
	if step == 1 {
		start := byteOffset(s, from)
		return s[start : start+byteOffset(s[start:], count)]
	}
	chars := []rune(s)
	out := make([]rune, count)
	for i := range out {
		out[i] = chars[from+i*step]
	}
	return string(out)
}
