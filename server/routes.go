package server

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/moeflux/moeflux-actor/server/fault"
	"github.com/moeflux/moeflux-actor/server/models"
	"github.com/moeflux/moeflux-actor/server/page"
	"github.com/moeflux/moeflux-actor/server/wire"
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
	handle("GET", "/debug/records", s.inside(s.views.Records))
	handle("GET", "/debug/live", s.inside(s.views.Live))
	page := page.Handler(unknownPath)
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
		fault.Write(w, &fault.Fault{
			Status: http.StatusMethodNotAllowed, Type: fault.InvalidRequest, Code: "method_not_allowed",
			Message: fmt.Sprintf("%s does not take %s; it takes %s", r.URL.Path, r.Method, allowed),
		}, fault.FormOf(r))
	}
}

func unknownPath(w http.ResponseWriter, r *http.Request) {
	message := fmt.Sprintf("there is nothing at %s", r.URL.Path)
	if strings.HasPrefix(r.URL.Path, "/v1/v1/") {
		message += ": the base URL ends with /v1 already"
	}
	fault.Write(w, &fault.Fault{Status: http.StatusNotFound, Type: fault.NotFound, Code: "unknown_url", Message: message}, fault.FormOf(r))
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
	Value models.Status `json:"value"`
}

func (s *Server) listed(m *models.Served) listed {
	return listed{
		ID: m.Name, Object: "model", Created: s.began.Unix(), OwnedBy: "moeflux", Context: m.Model.Info().Context,
		Aliases: m.Aliases, Status: listedStatus{models.StatusOf(m.Model)},
	}
}

// listModels answers GET /v1/models.
func (s *Server) listModels(w http.ResponseWriter, _ *http.Request) {
	list := struct {
		Object string   `json:"object"`
		Data   []listed `json:"data"`
	}{Object: "list"}
	for i := range s.models {
		list.Data = append(list.Data, s.listed(&s.models[i]))
	}
	wire.JSON(w, http.StatusOK, list)
}

// showModel answers GET /v1/models/ID.
func (s *Server) showModel(w http.ResponseWriter, r *http.Request) {
	m, f := s.models.Find(r.PathValue("id"))
	if f != nil {
		fault.Write(w, f, fault.FormOf(r))
		return
	}
	wire.JSON(w, http.StatusOK, s.listed(m))
}

func noEmbeddings(w http.ResponseWriter, r *http.Request) {
	fault.Write(w, &fault.Fault{Status: http.StatusNotImplemented, Type: fault.InvalidRequest, Code: "unsupported", Message: "models that write text make no embeddings here"}, fault.FormOf(r))
}
