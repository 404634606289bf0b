package base

import (
	"log"
	"strings"
)

// sizes are the bytes of types other than slices and pointers.
var sizes = map[string]int{"bool": 1, "float32": 4, "int": 8}

// Args are the offsets of a function's arguments and results from its frame pointer.
type Args struct {
	Size    int // of all
	offsets map[string]int
}

// Args returns the offsets of f's arguments and results.
func (f *Func) Args() Args {
	a := Args{offsets: map[string]int{}}
	args, results, _ := strings.Cut(strings.Trim(f.Signature, "()"), ") (")
	a.add(args)
	if results != "" {
		a.Size = (a.Size + 7) &^ 7 // results begin at a word
		a.add(results)
	}
	return a
}

// add appends a list of names and types, such as "y, x []float32, f float32".
func (a *Args) add(list string) {
	var names []string
	for _, part := range strings.Split(list, ", ") {
		name, kind, typed := strings.Cut(part, " ")
		names = append(names, name)
		if !typed {
			continue
		}
		for _, n := range names {
			size, align := size(kind)
			a.Size = (a.Size + align - 1) &^ (align - 1)
			a.offsets[n] = a.Size
			a.Size += size
		}
		names = nil
	}
}

func size(kind string) (size, align int) {
	switch {
	case strings.HasPrefix(kind, "[]"):
		return 24, 8
	case strings.HasPrefix(kind, "*"):
		return 8, 8
	}
	n, ok := sizes[kind]
	if !ok {
		log.Fatalf("gen: an argument of type %s", kind)
	}
	return n, n
}

// Offset returns the offset of an argument or result.
func (a *Args) Offset(name string) int {
	at, ok := a.offsets[name]
	if !ok {
		log.Fatalf("gen: no argument %s", name)
	}
	return at
}
