package sysmem

import "errors"

// Populate returns errors.ErrUnsupported: this system has no call for it.
func Populate([]byte) error { return errors.ErrUnsupported }

// YieldThread returns errors.ErrUnsupported.
func YieldThread() error { return errors.ErrUnsupported }
