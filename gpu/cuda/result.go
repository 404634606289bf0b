//go:build linux && (amd64 || arm64)

package cuda

// result is what a function of the driver returns.
type result int32

// Results that are told apart here.
const (
	success              result = 0
	outOfMemory          result = 2
	noDevice             result = codeNoDevice
	eccUncorrectable     result = 214
	illegalAddress       result = 700
	launchOutOfResources result = 701
	launchTimeout        result = 702
	contextIsDestroyed   result = 709
	kernelAssert         result = 710
	hardwareStackError   result = 714
	launchFailed         result = 719
	unknownError         result = 999
)

// spoils reports whether the context can no longer be used after r: the error came from a kernel or
// from the hardware.
func (r result) spoils() bool {
	switch r {
	case eccUncorrectable, illegalAddress, launchTimeout, contextIsDestroyed, kernelAssert, unknownError:
		return true
	}
	return hardwareStackError <= r && r <= launchFailed
}

// check returns nil for success, else an *Error.
func (d *driver) check(r result, function, doing string) error {
	if r == success {
		return nil
	}
	return &Error{Function: function, Code: int(r), Text: d.describe(r), Doing: doing}
}

// describe returns what the driver says of a result.
func (d *driver) describe(r result) string {
	name, text := d.errorName(r), d.errorString(r)
	if name == "" {
		return "unknown to the driver"
	}
	return name + ", " + text
}
