package metal

import (
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/launch"
)

// Device computes on a Mac's GPU. Its methods may be called from many goroutines.
type Device struct {
	*launch.Device
	workingSet int64
}

var _ gpu.Unified = (*Device)(nil)

// WorkingSet returns how many bytes of the host's memory the GPU may use without slowing down; 0 if
// it does not say.
func (d *Device) WorkingSet() int64 { return d.workingSet }
