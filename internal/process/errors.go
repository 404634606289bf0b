package process

import (
	"errors"
	"fmt"

	"github.com/moeflux/moeflux-actor/internal/device"
)

// UsageError is a fault of the command line: exit code 2.
type UsageError struct{ msg string }

func (e *UsageError) Error() string { return e.msg }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Sprintf(format, args...)}
}

// Usage makes an error that reports the caller's settings one of the command line.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return &UsageError{err.Error()}
}

// IsUsage reports whether an error is a fault of the command line, or of the environment beside it.
func IsUsage(err error) bool {
	return errors.As(err, new(*UsageError)) || errors.As(err, new(*device.ConfigError))
}

// ErrInterrupted ends a command that was stopped and has nothing more to say.
var ErrInterrupted = errors.New("interrupted")
