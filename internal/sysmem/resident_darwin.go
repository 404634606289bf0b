//go:build darwin

package sysmem

// ReadResident returns ErrUnknown: without cgo the system provides only the maximum.
func ReadResident() (Resident, error) { return Resident{}, ErrUnknown }
