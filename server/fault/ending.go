package fault

import (
	"context"
	"errors"
	"net/http"
)

// Ending says how an answer ended that did not end in order.
type Ending struct {
	Code      string
	Cancelled bool
}

// ClientLeft is the code of what ended because its client did not wait: nobody's failure.
const ClientLeft = "client_left"

// EndingOf returns what the log and the figures have of an error. Codes are this package's own.
func EndingOf(err error) Ending {
	switch {
	case err == nil, errors.Is(err, ErrGone), errors.Is(err, context.Canceled), errors.Is(err, http.ErrAbortHandler):
		return Ending{ClientLeft, true}
	case errors.Is(err, ErrDraining):
		return Ending{"stopping", true}
	}
	return Ending{Of(err).Code, false}
}
