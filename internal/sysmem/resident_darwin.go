//go:build darwin

package sysmem

// ReadResident returns ErrUnknown: without cgo the system tells only what the process had at most.
func ReadResident() (Resident, error) { return Resident{}, ErrUnknown }
