package serveload

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/internal/testmodel"
	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/server"
)

// agentModels are models with room for what an agent says: one that can go back in its states, and
// one that cannot.
var agentModels = []testmodel.Spec{
	{
		Arch: model.Qwen3MoE, Hidden: 64, Layers: 2, Vocab: 4096, MaxPositions: 16384, Eps: 1e-6, Heads: 4, RopeTheta: 1e6, KVHeads: 2, HeadDim: 16, RotaryDim: 16,
		QKNorm: true, Experts: 8, TopK: 2, ExpertWidth: 32,
	},
	{
		Arch: model.Qwen35MoE, Hidden: 64, Layers: 4, Vocab: 4096, MaxPositions: 16384, Eps: 1e-6, Heads: 4, RopeTheta: 1e6, KVHeads: 2, HeadDim: 16, RotaryDim: 16,
		QKNorm: true, FullEvery: 2, LinearKeyHeads: 2, LinearValueHeads: 4, LinearKeyDim: 16, LinearValueDim: 16, ConvKernel: 4,
		Experts: 8, TopK: 2, ExpertWidth: 32, SharedWidth: 32, NormTopK: true,
	},
}

// openAgentModel makes a model and opens it, with the tokenizer and the chat template of the demo
// model.
func openAgentModel(t *testing.T, spec testmodel.Spec) *moeflux.Model {
	t.Helper()
	src, dir := t.TempDir(), filepath.Join(t.TempDir(), "packed")
	if err := testmodel.Write(src, spec, 1); err != nil {
		t.Fatal(err)
	}
	if err := convert.Convert(t.Context(), src, dir, convert.Options{}); err != nil {
		t.Fatal(err)
	}
	demo, err := moeflux.DemoDir(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
		raw, err := os.ReadFile(filepath.Join(demo, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), raw, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	o := moeflux.Options{Tuned: "off"}
	o.Config.Context = 12288
	m, err := moeflux.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return m
}

// agentTokens is how long an agent's first prompt is, at least.
const agentTokens = 10_000

// instructions are as long as those of agents.
func instructions(t *testing.T, m *moeflux.Model) string {
	t.Helper()
	for n := 500; ; n += 100 {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "Tool %d reads a file and returns its lines.\n", i)
		}
		ids, err := m.Tokenizer().Encode(b.String(), false)
		if err != nil {
			t.Fatal(err)
		}
		if len(ids) >= agentTokens {
			return b.String()
		}
	}
}

// turn is what a turn of a conversation cost.
type turn struct {
	prompt, known, answer int
	said                  string
}

// agentAPI asks as an agent does: with the whole conversation, and what it puts before it.
type agentAPI struct {
	name string
	ask  func(t *testing.T, c *client, system string, turns []string) turn
}

var agentAPIs = []agentAPI{
	{"chat", func(t *testing.T, c *client, system string, turns []string) turn {
		messages := append([]map[string]string{{"role": "system", "content": system}}, said(turns)...)
		var r struct {
			Choices []struct{ Message struct{ Content string } }
			Usage   usage
		}
		c.post(t, "/v1/chat/completions", map[string]any{"messages": messages, "max_completion_tokens": 8, "temperature": 0}, &r)
		return turn{r.Usage.Prompt, r.Usage.Details.Cached, r.Usage.Completion, r.Choices[0].Message.Content}
	}},
	{"responses", func(t *testing.T, c *client, system string, turns []string) turn {
		var r struct {
			Output []struct{ Content []part }
			Usage  usage
		}
		c.post(t, "/v1/responses", map[string]any{"instructions": system, "input": said(turns), "max_output_tokens": 8, "temperature": 0, "store": false}, &r)
		text := ""
		for _, o := range r.Output {
			text += joined(o.Content)
		}
		return turn{r.Usage.Input, r.Usage.InDetails.Cached, r.Usage.Output, text}
	}},
	{"messages, whose first block changes", func(t *testing.T, c *client, system string, turns []string) turn {
		blocks := []map[string]any{
			{"type": "text", "text": fmt.Sprintf("x-anthropic-billing-header: cc_version=1; cch=%d;", len(turns))},
			{"type": "text", "text": system, "cache_control": map[string]string{"type": "ephemeral"}},
		}
		var r struct {
			Content []part
			Usage   struct {
				Input   int `json:"input_tokens"`
				Written int `json:"cache_creation_input_tokens"`
				Read    int `json:"cache_read_input_tokens"`
				Output  int `json:"output_tokens"`
			}
		}
		c.post(t, "/v1/messages", map[string]any{"system": blocks, "messages": said(turns), "max_tokens": 8, "temperature": 0}, &r)
		return turn{r.Usage.Input + r.Usage.Written + r.Usage.Read, r.Usage.Read, r.Usage.Output, joined(r.Content)}
	}},
}

// said returns the messages of a conversation, the user's first.
func said(turns []string) (messages []map[string]string) {
	for i, text := range turns {
		messages = append(messages, map[string]string{"role": []string{"user", "assistant"}[i%2], "content": text})
	}
	return messages
}

// post asks, and reads the answer.
func (c *client) post(t *testing.T, path string, body, to any) {
	t.Helper()
	resp, err := c.send(t.Context(), path, c.secret, strings.NewReader(string(encode(body))))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		_, err := refusal(resp)
		t.Fatalf("%s: %s, %v", path, resp.Status, err)
	}
	if err := json.NewDecoder(resp.Body).Decode(to); err != nil {
		t.Fatal(err)
	}
}

// The second turn of an agent on a prompt of 10,000 tokens reads only what is new, in each API:
// what the answers say of it, and what the engine has computed.
func TestSecondTurn(t *testing.T) {
	for n, spec := range agentModels {
		t.Run(string(spec.Arch), func(t *testing.T) {
			m := openAgentModel(t, spec)
			s, err := server.New(server.Options{Models: []server.Served{{Name: "agent", Model: m}}})
			if err != nil {
				t.Fatal(err)
			}
			listener := httptest.NewServer(s)
			defer listener.Close()
			c := (&Load{URL: listener.URL}).client("", 0, nil)
			defer c.close()
			long := instructions(t, m)
			for i, api := range agentAPIs {
				if testenv.Rounds(0, 0, 1) == 0 && i%len(agentModels) != n {
					continue // each API with one of the models
				}
				system := fmt.Sprintf("You are agent %d.\n", i) + long // what another has read is of no use
				first := api.ask(t, c, system, []string{"What is in the file?"})
				if first.prompt < agentTokens || first.known > 100 {
					t.Errorf("%s: the first prompt has %d tokens, %d of them known", api.name, first.prompt, first.known)
				}
				before := rows(t, m)
				second := api.ask(t, c, system, []string{"What is in the file?", first.said, "And in the next one?"})
				computed := rows(t, m) - before
				t.Logf("%s: %d tokens, then %d, of which %d were known; %d rows were computed", api.name, first.prompt, second.prompt, second.known, computed)
				if second.prompt <= first.prompt || second.known < first.prompt {
					t.Errorf("%s: of a prompt of %d tokens %d were known; the one before had %d", api.name, second.prompt, second.known, first.prompt)
				}
				// one more has the next turn know the answer
				if most := second.prompt - first.prompt + second.answer + 1; computed > int64(most) {
					t.Errorf("%s: %d rows were computed; what is new has %d", api.name, computed, most)
				}
			}
		})
	}
}

// rows returns how many rows the engine has computed.
func rows(t *testing.T, m *moeflux.Model) int64 {
	t.Helper()
	stats, err := m.Engine().Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return stats.Rows
}
