package split

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/gpu"
)

// Device is several devices.
type Device struct {
	parts []gpu.Device
}

var _ gpu.Split = (*Device)(nil)

// Discrete is a Device whose parts have memory of their own.
type Discrete struct {
	Device
}

var (
	_ gpu.Split    = (*Discrete)(nil)
	_ gpu.Discrete = (*Discrete)(nil)
)

// New makes one device of two or more, which it closes when it is closed: a *Discrete of those with
// memory of their own, else a *Device. Where only some have it, that is an error, and the parts
// stay the caller's.
func New(parts ...gpu.Device) (gpu.Split, error) {
	if len(parts) < 2 {
		return nil, fmt.Errorf("split: %d devices, two at least can be made one", len(parts))
	}
	own := 0
	for _, p := range parts {
		if _, ok := p.(gpu.Discrete); ok {
			own++
		}
	}
	d := Device{slices.Clone(parts)}
	switch own {
	case 0:
		return &d, nil
	case len(parts):
		return &Discrete{d}, nil
	}
	return nil, fmt.Errorf("split: %s: only some have memory of their own; such devices are not made one", d.Name())
}

// Name names the parts, equal ones once, with their number: "2 × cuda (NVIDIA H200, …)".
func (d *Device) Name() string {
	var names []string
	counts := map[string]int{}
	for _, p := range d.parts {
		if n := p.Name(); counts[n] == 0 {
			names = append(names, n)
		}
		counts[p.Name()]++
	}
	for i, n := range names {
		if counts[n] > 1 {
			names[i] = fmt.Sprintf("%d × %s", counts[n], n)
		}
	}
	return strings.Join(names, " and ")
}

// Parts returns the devices.
func (d *Device) Parts() []gpu.Device { return d.parts }

// NewBuffer returns memory of the first part.
func (d *Device) NewBuffer(n int) (gpu.Buffer, error) { return d.parts[0].NewBuffer(n) }

// Wrap makes host memory visible to the first part.
func (d *Device) Wrap(mem []byte) (gpu.Buffer, error) { return d.parts[0].Wrap(mem) }

// Close closes the parts, all of them even if some refuse.
func (d *Device) Close() error {
	var errs []error
	for _, p := range d.parts {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// Memory returns what all parts have together.
func (d *Discrete) Memory() (free, total int64, err error) {
	for _, p := range d.parts {
		f, t, err := p.(gpu.Discrete).Memory()
		if err != nil {
			return 0, 0, fmt.Errorf("split: the memory of %s: %w", p.Name(), err)
		}
		free, total = free+f, total+t
	}
	return free, total, nil
}

// NewPinned returns host memory of the first part, from which uploads of all parts take no detour.
func (d *Discrete) NewPinned(n int) (gpu.Buffer, error) {
	return d.parts[0].(gpu.Discrete).NewPinned(n)
}
