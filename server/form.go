package server

import (
	"net/http"
	"strings"
)

// form writes a fault as the clients of an API expect it.
type form func(*fault) any

// formOf returns the form of the API that a path belongs to.
func formOf(r *http.Request) form {
	if isMessages(r) {
		return anthropicForm
	}
	return openAIForm
}

// isMessages reports whether a request is one of Anthropic's API.
func isMessages(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/v1/messages") }

// openAIForm is the form of OpenAI's APIs.
func openAIForm(f *fault) any {
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

// anthropicForm is the form of Anthropic's API.
func anthropicForm(f *fault) any {
	kind := f.Type
	if kind == serverError {
		kind = "api_error"
	}
	return map[string]any{"type": "error", "error": map[string]string{"type": kind, "message": f.Message}}
}
