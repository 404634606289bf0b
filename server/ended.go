package server

import (
	"context"
	"errors"
	"net/http"
)

// failure says how an answer ended that did not end in order.
type failure struct {
	code      string
	cancelled bool
}

// clientLeft is the code of what ended because its client did not wait: nobody's failure.
const clientLeft = "client_left"

// endedWith returns what the log and the figures have of an error. Codes are this package's own.
func endedWith(err error) failure {
	switch {
	case err == nil, errors.Is(err, errGone), errors.Is(err, context.Canceled), errors.Is(err, http.ErrAbortHandler):
		return failure{clientLeft, true}
	case errors.Is(err, errDraining):
		return failure{"stopping", true}
	}
	return failure{faultOf(err).Code, false}
}
