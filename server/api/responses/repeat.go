package responses

import (
	"encoding/json"
	"fmt"

	"github.com/moeflux/moeflux-actor/server/api"
	"github.com/moeflux/moeflux-actor/server/body"
	"github.com/moeflux/moeflux-actor/server/wire"
)

// Replies of the Responses API repeat what was asked for, with the fields that its schema requires
// and a client may leave out.

// repeatedTool is a function as a reply repeats it.
type repeatedTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description *string         `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
}

// repeatedTools returns the functions among the tools; the model does not hear of others.
func repeatedTools(o *body.Object) json.RawMessage {
	all := []repeatedTool{}
	for i, raw := range o.List("tools", api.MaxTools) {
		fields := o.Element("tools", i, raw)
		if fields == nil {
			return nil
		}
		if kind, _ := fields.Text("type"); kind != "function" {
			continue
		}
		var t repeatedTool
		if err := json.Unmarshal(raw, &t); err != nil {
			o.Fail(fmt.Sprintf("tools[%d]", i), "tools[%d]: %v", i, err)
			return nil
		}
		all = append(all, t)
	}
	return wire.Encode(all)
}

// repeatedFormat is the form of an answer as a reply repeats it. The last four are those of a
// schema.
type repeatedFormat struct {
	Type        string           `json:"type"`
	Name        *string          `json:"name,omitempty"`
	Description *json.RawMessage `json:"description,omitempty"`
	Schema      json.RawMessage  `json:"schema,omitempty"`
	Strict      *bool            `json:"strict,omitempty"`
}

// repeatedText returns how the text was wanted.
func repeatedText(o *body.Object) json.RawMessage {
	text := struct {
		Format    repeatedFormat  `json:"format"`
		Verbosity json.RawMessage `json:"verbosity,omitempty"`
	}{Format: repeatedFormat{Type: "text"}}
	if o.Has("text") {
		if err := json.Unmarshal(o.Fields["text"], &text); err != nil {
			o.Fail("text", "text: %v", err)
			return nil
		}
	}
	if f := &text.Format; f.Type == "json_schema" {
		if f.Description == nil {
			f.Description = new(json.RawMessage("null"))
		}
		if f.Strict == nil {
			f.Strict = new(bool)
		}
	}
	return wire.Encode(text)
}
