package wire

import (
	"io"
	"net/http"
	"time"
)

// Patient gives each write a time.
type Patient struct {
	w        io.Writer
	control  *http.ResponseController
	patience time.Duration
}

// NewPatient returns a writer to w whose writes take at most patience each.
func NewPatient(w http.ResponseWriter, patience time.Duration) *Patient {
	return &Patient{w: w, control: http.NewResponseController(w), patience: patience}
}

// Write writes what a client has to take within the time.
func (p *Patient) Write(b []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(p.patience)) // the writer of a test may have none
	n, err := p.w.Write(b)
	if err == nil {
		err = p.control.Flush()
	}
	return n, err
}
