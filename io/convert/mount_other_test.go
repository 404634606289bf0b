//go:build !linux

package convert_test

import "errors"

func mountSmall(string) error { return errors.New("only on linux") }
