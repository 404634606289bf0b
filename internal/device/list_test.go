package device

import (
	"errors"
	"slices"
	"testing"
)

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		name string
		want []int
		ok   bool
	}{
		{"", nil, true}, {"auto", nil, true}, {"cuda", nil, true}, {"cuda:0", []int{0}, true}, {"cuda:3,1", []int{3, 1}, true}, {"emu:0,1,2", []int{0, 1, 2}, true},
		{"host:0", nil, false}, {"metal:0,1", nil, false}, {"cuda:", nil, false}, {"cuda:0,", nil, false}, {"cuda:0,0", nil, false}, {"cuda:-1", nil, false},
		{"cuda:a", nil, false}, {"gpu", nil, false}, {"gpu:0", nil, false}, {":0", nil, false},
	} {
		err := CheckName(c.name)
		if (err == nil) != c.ok || err != nil && !errors.As(err, new(*ConfigError)) {
			t.Errorf("%q: %v", c.name, err)
		}
		if got, err := numbers(c.name); err == nil && c.ok && !slices.Equal(got, c.want) {
			t.Errorf("%q: numbers %v, want %v", c.name, got, c.want)
		}
	}
}
