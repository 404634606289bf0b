package fault

import (
	"net/http"
	"strings"
)

// form writes a fault as the clients of an API expect it.
type form func(*Fault) any

// FormOf returns the form of the API that a path belongs to.
func FormOf(r *http.Request) form {
	if IsMessages(r) {
		return Anthropic
	}
	return OpenAI
}

// IsMessages reports whether a request is one of Anthropic's API.
func IsMessages(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/v1/messages") }

// OpenAI is the form of OpenAI's APIs.
func OpenAI(f *Fault) any {
	type inner struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
	e := inner{Message: f.Message, Type: f.Type}
	if f.Param != "" {
		e.Param = &f.Param
	}
	if f.Code != "" {
		e.Code = &f.Code
	}
	return map[string]inner{"error": e}
}

// Anthropic is the form of Anthropic's API.
func Anthropic(f *Fault) any {
	kind := f.Type
	if kind == ServerError {
		kind = "api_error"
	}
	return map[string]any{"type": "error", "error": map[string]string{"type": kind, "message": f.Message}}
}
