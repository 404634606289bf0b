package serveload

import (
	"encoding/json"
	"strings"
)

// api is one of the forms in which a text can be asked for.
type api struct {
	name, path string
	body       func(q *question) map[string]any
	whole      func(m *message) string          // the text of an answer in one piece
	event      func(m *message, a *answer) bool // takes an event; true: the answer is whole
}

// message is what an object of an answer may have, in any of the APIs.
type message struct {
	Type    string          `json:"type"`
	Error   json.RawMessage `json:"error"`
	Choices []struct {
		Text    string                   `json:"text"`
		Delta   struct{ Content string } `json:"delta"`
		Message struct{ Content string } `json:"message"`
		Finish  *string                  `json:"finish_reason"`
	} `json:"choices"`
	Delta   json.RawMessage `json:"delta"`
	Content []part          `json:"content"`
	Output  []struct {
		Content []part `json:"content"`
	} `json:"output"`
	Response *message `json:"response"`
	Message  *message `json:"message"`
	Usage    *usage   `json:"usage"`
}

type part struct{ Text string }

func joined(parts []part) (text string) {
	for _, p := range parts {
		text += p.Text
	}
	return text
}

// usage is what an answer cost, in the words of all APIs.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	Input     int `json:"input_tokens"`
	Output    int `json:"output_tokens"`
	InDetails struct {
		Cached int `json:"cached_tokens"`
	} `json:"input_tokens_details"`
}

// served returns the tokens that were computed: of the prompt what was not known, and the answer.
func (u *usage) served() int {
	if u == nil {
		return 0
	}
	return u.Prompt - u.Details.Cached + u.Completion + u.Input - u.InDetails.Cached + u.Output
}

// answer is what has come of an answer.
type answer struct {
	text   strings.Builder
	whole  bool
	fault  string // the error that it ended with; "": none
	tokens int    // served, as its usage says
}

var apis = []*api{
	{
		name: "chat", path: "/v1/chat/completions",
		body: func(q *question) map[string]any { return chatBody(q, "max_completion_tokens") },
		whole: func(m *message) (text string) {
			for _, c := range m.Choices {
				text += c.Message.Content
			}
			return text
		},
		event: func(m *message, a *answer) bool {
			for _, c := range m.Choices {
				a.text.WriteString(c.Delta.Content)
			}
			return false
		},
	}, {
		name: "completions", path: "/v1/completions",
		body: func(q *question) map[string]any {
			return map[string]any{"prompt": q.prompt, "max_tokens": q.tokens, "temperature": 0}
		},
		whole: func(m *message) (text string) {
			for _, c := range m.Choices {
				text += c.Text
			}
			return text
		},
		event: func(m *message, a *answer) bool {
			for _, c := range m.Choices {
				a.text.WriteString(c.Text)
			}
			return false
		},
	}, {
		name: "responses", path: "/v1/responses",
		body: func(q *question) map[string]any {
			return map[string]any{"input": q.prompt, "max_output_tokens": q.tokens, "temperature": 0, "store": false}
		},
		whole: func(m *message) (text string) {
			for _, o := range m.Output {
				text += joined(o.Content)
			}
			return text
		},
		event: func(m *message, a *answer) bool {
			if m.Type == "response.output_text.delta" {
				var text string
				_ = json.Unmarshal(m.Delta, &text) // what is no text is missing in the answer
				a.text.WriteString(text)
			}
			return m.Type == "response.completed" || m.Type == "response.incomplete"
		},
	}, {
		name: "messages", path: "/v1/messages",
		body:  func(q *question) map[string]any { return chatBody(q, "max_tokens") },
		whole: func(m *message) string { return joined(m.Content) },
		event: func(m *message, a *answer) bool {
			if m.Type == "content_block_delta" {
				var d struct{ Text string }
				_ = json.Unmarshal(m.Delta, &d)
				a.text.WriteString(d.Text)
			}
			return m.Type == "message_stop"
		},
	},
}

func chatBody(q *question, limit string) map[string]any {
	return map[string]any{"messages": []map[string]string{{"role": "user", "content": q.prompt}}, limit: q.tokens, "temperature": 0}
}
