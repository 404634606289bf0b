package expertfile

import "fmt"

// ReadError reports an expert that could not be read in full.
type ReadError struct {
	Path            string // "" if the layer has no file
	Layer, Expert   int
	OffsetBytes     int64
	WantLen, GotLen int   // bytes
	Err             error // cause; io.ErrUnexpectedEOF for a short read
}

func (e *ReadError) Error() string {
	where := ""
	if e.Path != "" {
		where = e.Path + ": "
	}
	return fmt.Sprintf("expertfile: %slayer %d expert %d at %d: read %d of %d bytes: %v",
		where, e.Layer, e.Expert, e.OffsetBytes, e.GotLen, e.WantLen, e.Err)
}

func (e *ReadError) Unwrap() error { return e.Err }

// SizeError reports a layer file whose size is not that of its experts.
type SizeError struct {
	Path      string
	Layer     int
	Want, Got int64 // bytes; Want is 0 if the size fits no known layout
}

func (e *SizeError) Error() string {
	if e.Want == 0 {
		return fmt.Sprintf("expertfile: %s: %d bytes fit no known format of this model's experts; without %s the format follows from the size",
			e.Path, e.Got, LayoutName)
	}
	return fmt.Sprintf("expertfile: %s: %d bytes, expected %d", e.Path, e.Got, e.Want)
}

// MissingError reports that the file of a layer does not exist.
type MissingError struct {
	Path  string
	Layer int
	Err   error // wraps fs.ErrNotExist
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("expertfile: layer %d: %v", e.Layer, e.Err)
}

func (e *MissingError) Unwrap() error { return e.Err }

// LayoutError reports a layout.json that cannot be read, contradicts itself, or belongs to another
// model.
type LayoutError struct {
	Path      string
	Component string // e.g. "gate_proj.weight"; "" if no single one is at fault
	Why       string
	Err       error // cause, if another error is one
}

func (e *LayoutError) Error() string {
	if e.Component == "" {
		return fmt.Sprintf("expertfile: %s: %s", e.Path, e.Why)
	}
	return fmt.Sprintf("expertfile: %s: component %q: %s", e.Path, e.Component, e.Why)
}

func (e *LayoutError) Unwrap() error { return e.Err }
