package server

import (
	"fmt"
	"net/http"
	"strings"
)

// routes returns the handler of all paths.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	paths := make(map[string][]string) // methods
	handle := func(method, path string, f http.HandlerFunc) {
		mux.HandleFunc(method+" "+path, f)
		paths[path] = append(paths[path], method)
	}
	handle("POST", "/v1/chat/completions", s.chatCompletions)
	handle("POST", "/v1/completions", s.completions)
	handle("POST", "/v1/responses", s.responses)
	handle("POST", "/v1/messages", s.messages)
	handle("POST", "/v1/messages/count_tokens", s.countTokens)
	handle("POST", "/tokenize", s.tokenize)
	handle("POST", "/detokenize", s.detokenize)
	handle("POST", "/apply-template", s.applyTemplate)
	handle("GET", "/v1/models", s.listModels)
	handle("GET", "/v1/models/{id...}", s.showModel)
	handle("GET", "/healthz", s.alive)
	handle("GET", "/readyz", s.ready)
	handle("POST", "/v1/embeddings", noEmbeddings)
	handle("GET", "/debug/records", s.inside(s.views.records))
	handle("GET", "/debug/live", s.inside(s.views.live))
	page := page(unknownPath)
	handle("GET", "/{$}", page)
	handle("GET", "/page/", page)
	if s.o.Figures != nil {
		handle("GET", "/metrics", s.inside(s.o.Figures.ServeHTTP))
	}
	for path, methods := range paths {
		mux.HandleFunc(path, wrongMethod(methods))
	}
	mux.HandleFunc("/", unknownPath)
	return mux
}

// wrongMethod answers the other methods of a path.
func wrongMethod(methods []string) http.HandlerFunc {
	allowed := strings.Join(append(methods, "OPTIONS"), ", ")
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", allowed)
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		writeFault(w, &fault{
			Status: http.StatusMethodNotAllowed, Type: invalidRequest, Code: "method_not_allowed",
			Message: fmt.Sprintf("%s does not take %s; it takes %s", r.URL.Path, r.Method, allowed),
		}, formOf(r))
	}
}

func unknownPath(w http.ResponseWriter, r *http.Request) {
	message := fmt.Sprintf("there is nothing at %s", r.URL.Path)
	if strings.HasPrefix(r.URL.Path, "/v1/v1/") {
		message += ": the base URL ends with /v1 already"
	}
	writeFault(w, &fault{Status: http.StatusNotFound, Type: notFound, Code: "unknown_url", Message: message}, formOf(r))
}

// listed is a model as clients see it.
type listed struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
	Context int    `json:"context_length"`
	// Aliases are further names, and Status is where the model is, as llama.cpp tells it.
	Aliases []string     `json:"aliases,omitempty"`
	Status  listedStatus `json:"status"`
}

type listedStatus struct {
	Value Status `json:"value"`
}

func (s *Server) listed(m *Served) listed {
	return listed{
		ID: m.Name, Object: "model", Created: s.began.Unix(), OwnedBy: "moeflux", Context: m.Model.Info().Context,
		Aliases: m.Aliases, Status: listedStatus{statusOf(m.Model)},
	}
}

// listModels answers GET /v1/models.
func (s *Server) listModels(w http.ResponseWriter, _ *http.Request) {
	list := struct {
		Object string   `json:"object"`
		Data   []listed `json:"data"`
	}{Object: "list"}
	for i := range s.o.Models {
		list.Data = append(list.Data, s.listed(&s.o.Models[i]))
	}
	writeJSON(w, http.StatusOK, list)
}

// showModel answers GET /v1/models/ID.
func (s *Server) showModel(w http.ResponseWriter, r *http.Request) {
	m, f := s.models.find(r.PathValue("id"))
	if f != nil {
		writeFault(w, f, formOf(r))
		return
	}
	writeJSON(w, http.StatusOK, s.listed(m))
}

func noEmbeddings(w http.ResponseWriter, r *http.Request) {
	writeFault(w, &fault{Status: http.StatusNotImplemented, Type: invalidRequest, Code: "unsupported", Message: "models that write text make no embeddings here"}, formOf(r))
}
