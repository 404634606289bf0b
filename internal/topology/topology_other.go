//go:build !linux

package topology

import "errors"

// Here returns no processors: the system does not say which there are.
func Here() (Machine, error) { return nil, nil }

// Bind fails: the system does not bind threads to processors.
func Bind(int) error {
	return errors.New("topology: this system does not bind threads to processors; leave out --pin-threads")
}

// Interleave does nothing: the system places memory.
func Interleave([]byte, []int) error { return nil }
