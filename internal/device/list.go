package device

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/split"
)

// numbered are the devices that can be asked for by number, several as one: "cuda:0,1".
var numbered = []string{"cuda", "emu"}

// Kind returns the name of what computes without numbers: "cuda" of "cuda:0,1".
func Kind(name string) string {
	kind, _, _ := strings.Cut(name, ":")
	return kind
}

// numbers returns the numbers of a name; none if it has none. The error is a *ConfigError.
func numbers(name string) (list []int, err error) {
	kind, text, given := strings.Cut(name, ":")
	if !given {
		return nil, nil
	}
	if !slices.Contains(numbered, kind) {
		return nil, &ConfigError{fmt.Errorf("device %s: only %s have numbers", name, strings.Join(numbered, " and "))}
	}
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 0 || slices.Contains(list, n) {
			return nil, &ConfigError{fmt.Errorf("device %s: give numbers from 0 on, each once, separated by commas, as in %s:0,1", name, kind)}
		}
		list = append(list, n)
	}
	return list, nil
}

// CheckName reports a name that no machine can serve, as a *ConfigError.
func CheckName(name string) error {
	if name != "" && !slices.Contains(Names, Kind(name)) {
		return &ConfigError{fmt.Errorf("there is no device %q; available: %s", name, strings.Join(Names, ", "))}
	}
	_, err := numbers(name)
	return err
}

// each opens a device for each number, and makes one of several.
func each(list []int, open func(number int) (gpu.Device, error)) (gpu.Device, error) {
	var all []gpu.Device
	fail := func(err error) (gpu.Device, error) {
		for _, d := range all {
			err = errors.Join(err, d.Close())
		}
		return nil, err
	}
	for _, n := range list {
		d, err := open(n)
		if err != nil {
			return fail(err)
		}
		all = append(all, d)
	}
	if len(all) == 1 {
		return all[0], nil
	}
	d, err := split.New(all...)
	if err != nil {
		return fail(err)
	}
	return d, nil
}
