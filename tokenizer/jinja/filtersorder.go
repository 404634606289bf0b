package jinja

import (
	"sort"
	"strings"
)

// Filters that compare: sort, dictsort, groupby, unique, min, max.

// foldKey is v as those filters compare it unless they are told that case matters.
func foldKey(v Value, caseSensitive bool) Value {
	if s, ok := asString(v); ok && !caseSensitive {
		return lower(s)
	}
	return v
}

func flag(v Value) bool { return v != missing && truth(v) }

// intFlag is a flag that Python wants to be an int.
func intFlag(v Value) (bool, error) {
	if v == missing {
		return false, nil
	}
	n, err := index(v)
	return n != 0, err
}

// sortBy returns items in the order of their keys; those with equal keys stay in order.
func (r *run) sortBy(items, keys []Value, reverse bool) ([]Value, error) {
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	var failed error
	sort.SliceStable(order, func(i, j int) bool {
		if failed != nil {
			return false
		}
		a, b := keys[order[i]], keys[order[j]]
		if reverse {
			a, b = b, a
		}
		less, err := r.ordered("<", a, b)
		failed = err
		return less
	})
	out := make([]Value, len(items))
	for i, k := range order {
		out[i] = items[k]
	}
	return out, failed
}

func filterSort(r *run, in Value, a arguments) (Value, error) {
	v, err := a.bind("sort", 0, "reverse", "case_sensitive", "attribute")
	if err != nil {
		return nil, err
	}
	items, err := r.items(in)
	if err != nil {
		return nil, err
	}
	var paths []path
	attr := optional(v[2], nil)
	if s, ok := asString(attr); ok {
		for _, part := range strings.Split(s, ",") {
			paths = append(paths, newPath(part))
		}
	} else {
		paths = []path{newPath(attr)}
	}
	keys := make([]Value, len(items))
	for i, item := range items {
		k := &List{make([]Value, len(paths))}
		for j, p := range paths {
			part, err := r.get(p, item, nil)
			if err != nil {
				return nil, err
			}
			k.items[j] = foldKey(part, flag(v[1]))
		}
		keys[i] = k
		if err := r.chargeItems(len(paths) + 1); err != nil {
			return nil, err
		}
	}
	reverse, err := intFlag(v[0])
	if err != nil {
		return nil, err
	}
	return r.newList(r.sortBy(items, keys, reverse))
}

func filterDictsort(r *run, in Value, a arguments) (Value, error) {
	v, err := a.bind("dictsort", 0, "case_sensitive", "by", "reverse")
	if err != nil {
		return nil, err
	}
	by, _ := asString(optional(v[1], "key"))
	if by != "key" && by != "value" {
		return nil, fail(KindFilterArg, `You can only sort by either "key" or "value"`)
	}
	d, ok := in.(*Dict)
	if !ok {
		if u, ok := in.(*undefined); ok {
			return nil, u.fail()
		}
		return nil, fail(KindAttribute, "'%s' object has no attribute 'items'", typeName(in))
	}
	items := make([]Value, d.Len())
	keys := make([]Value, d.Len())
	for i, e := range d.entries {
		items[i] = entryPair(e)
		keys[i] = foldKey(e.key, flag(v[0]))
		if by == "value" {
			keys[i] = foldKey(e.val, flag(v[0]))
		}
	}
	if err := r.chargeItems(3 * len(items)); err != nil {
		return nil, err
	}
	reverse, err := intFlag(v[2])
	if err != nil {
		return nil, err
	}
	return r.newList(r.sortBy(items, keys, reverse))
}

func filterGroupby(r *run, in Value, a arguments) (Value, error) {
	v, err := a.bind("groupby", 1, "attribute", "default", "case_sensitive")
	if err != nil {
		return nil, err
	}
	items, err := r.items(in)
	if err != nil {
		return nil, err
	}
	p, def := newPath(v[0]), optional(v[1], nil)
	keys := make([]Value, len(items))
	for i, item := range items {
		if keys[i], err = r.get(p, item, def); err != nil {
			return nil, err
		}
		keys[i] = foldKey(keys[i], flag(v[2]))
	}
	if err := r.chargeItems(4 * len(items)); err != nil {
		return nil, err
	}
	pairs := make([]Value, len(items))
	for i := range pairs {
		pairs[i] = &Tuple{items: []Value{keys[i], items[i]}}
	}
	if pairs, err = r.sortBy(pairs, keys, false); err != nil {
		return nil, err
	}
	var groups []Value
	var last Value
	for i, pair := range pairs {
		k, item := pair.(*Tuple).items[0], pair.(*Tuple).items[1]
		same := false
		if i > 0 {
			if same, err = r.equal(last, k); err != nil {
				return nil, err
			}
		}
		last = k
		if same {
			members := groups[len(groups)-1].(*Tuple).items[1].(*List)
			members.items = append(members.items, item)
			continue
		}
		name, err := r.get(p, item, def) // as the first one writes it
		if err != nil {
			return nil, err
		}
		groups = append(groups, &Tuple{[]Value{name, &List{[]Value{item}}}, []string{"grouper", "list"}})
	}
	return r.newList(groups, nil)
}

func filterUnique(_ *run, in Value, a arguments) (Value, error) {
	v, err := a.bind("unique", 0, "case_sensitive", "attribute")
	if err != nil {
		return nil, err
	}
	return lazy(func(r *run) (iterator, error) {
		it, err := r.iter(in)
		if err != nil {
			return nil, err
		}
		p := newPath(optional(v[1], nil))
		seen := map[key]bool{}
		return iterFunc(func(r *run) (Value, bool, error) {
			for {
				item, ok, err := it.next(r)
				if !ok || err != nil {
					return nil, false, err
				}
				k, err := r.get(p, item, nil)
				if err != nil {
					return nil, false, err
				}
				hash, err := r.keyOf(foldKey(k, flag(v[0])))
				if err == nil {
					err = r.chargeItems(4)
				}
				if err != nil {
					return nil, false, err
				}
				if !seen[hash] {
					seen[hash] = true
					return item, true, nil
				}
			}
		}), nil
	}), nil
}

// extremeFilter is min or max: the first item whose key is op all others'.
func extremeFilter(name, op string) filterFunc {
	return func(r *run, in Value, a arguments) (Value, error) {
		v, err := a.bind(name, 0, "case_sensitive", "attribute")
		if err != nil {
			return nil, err
		}
		it, err := r.iter(in)
		if err != nil {
			return nil, err
		}
		p := newPath(optional(v[1], nil))
		var best, bestKey Value
		for n := 0; ; n++ {
			item, ok, err := it.next(r)
			if err != nil {
				return nil, err
			}
			if !ok {
				if n == 0 {
					return undefinedHint("No aggregated item, sequence was empty."), nil
				}
				return best, nil
			}
			k, err := r.get(p, item, nil)
			if err != nil {
				return nil, err
			}
			k = foldKey(k, flag(v[0]))
			better := n == 0
			if !better {
				if better, err = r.ordered(op, k, bestKey); err != nil {
					return nil, err
				}
			}
			if better {
				best, bestKey = item, k
			}
		}
	}
}
