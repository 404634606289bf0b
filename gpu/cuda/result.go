//go:build linux && (amd64 || arm64)

package cuda

import "fmt"

// result is what a function of the driver returns.
type result int32

// Results that are told apart here.
const (
	success               result = 0
	outOfMemory           result = 2
	noDevice              result = 100
	eccUncorrectable      result = 214
	notReady              result = 600
	illegalAddress        result = 700
	launchOutOfResources  result = 701
	launchTimeout         result = 702
	contextIsDestroyed    result = 709
	kernelAssert          result = 710
	hostAlreadyRegistered result = 712
	hardwareStackError    result = 714
	launchFailed          result = 719
	unknownError          result = 999
)

// spoils reports whether the context is of no use after r: it came out of a kernel or out of the hardware.
func (r result) spoils() bool {
	switch r {
	case eccUncorrectable, illegalAddress, launchTimeout, contextIsDestroyed, kernelAssert, unknownError:
		return true
	}
	return hardwareStackError <= r && r <= launchFailed
}

// Error is a function of the driver that failed.
type Error struct {
	Function string // "cuMemAlloc_v2"
	Code     int    // CUresult
	Text     string // what the driver says of it: "CUDA_ERROR_ILLEGAL_ADDRESS, an illegal memory access was encountered"
	Doing    string // for what it was called; "" if the function says it all
}

func (e *Error) Error() string {
	doing := ""
	if e.Doing != "" {
		doing = e.Doing + ": "
	}
	return fmt.Sprintf("cuda: %s%s: error %d, %s", doing, e.Function, e.Code, e.Text)
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
		return "which the driver does not know"
	}
	return name + ", " + text
}
