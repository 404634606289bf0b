package server

import (
	"io"
	"net/http"
	"time"
)

// patientWriter gives each write a time.
type patientWriter struct {
	w        io.Writer
	control  *http.ResponseController
	patience time.Duration
}

func newPatient(w http.ResponseWriter, patience time.Duration) *patientWriter {
	return &patientWriter{w: w, control: http.NewResponseController(w), patience: patience}
}

// Write writes what a client has to take within the time.
func (p *patientWriter) Write(b []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(p.patience)) // the writer of a test may have none
	n, err := p.w.Write(b)
	if err == nil {
		err = p.control.Flush()
	}
	return n, err
}
