package demo

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
)

//go:embed files
var embedded embed.FS

// checkpointFiles are the files that make the checkpoint directory.
var checkpointFiles = [...]string{
	"config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
}

// checkpointSHA256 is over the checkpoint's files, and names the packed copy in the cache. It is
// written down since hashing 10 MB at every start takes longer than all the rest of it; a test
// computes it.
const checkpointSHA256 = "39f03ffc135ab7125aedb22ec61e9d32943faeadfabced25a3fb716dcbc1d559"

// packVersion must be raised when the same checkpoint is packed into other bytes: packed copies of
// earlier ones are then left alone, and a new one is made. A test knows the bytes.
const packVersion = 3

// Files returns the embedded files: a checkpoint directory in the layout of MLX, README.md, NOTICE,
// and reference.json.
func Files() fs.FS {
	sub, err := fs.Sub(embedded, "files")
	if err != nil {
		panic("demo: the embedded folder has another name: " + err.Error())
	}
	return sub
}

// Ref is what Hugging Face transformers computed from the dequantised weights in float32.
type Ref struct {
	About   string  `json:"about"`
	Seq     int     `json:"seq"`      // tokens of a window
	Windows int     `json:"windows"`  // windows in EvalIDs
	EvalIDs []int32 `json:"eval_ids"` // [Windows*Seq+1], held-out Go source
	// [Windows] mean loss in nats of tokens i*Seq+1 … i*Seq+Seq, with an empty state at i*Seq
	NLL     []float64 `json:"nll"`
	Greedy  []Greedy  `json:"greedy"`
	Routing Routing   `json:"routing"`
}

// Greedy is one greedy continuation.
type Greedy struct {
	Prompt    string    `json:"prompt"`
	PromptIDs []int32   `json:"prompt_ids"` // with the token that begins every text
	NewIDs    []int32   `json:"new_ids"`
	Text      string    `json:"text"`     // of NewIDs
	Top1Gap   []float64 `json:"top1_gap"` // [len(NewIDs)] the best logit less the second
}

// Routing is how predictable the routing of the first 2,048 tokens of EvalIDs is.
type Routing struct {
	About string `json:"about"`
	// [layers] share of experts that the token before had in the same layer
	HitLastToken []float64 `json:"hit_last_token"`
	// [layers-1] share of layer i+1's experts that its gate predicts from layer i's input
	HitPrevLayerGate []float64 `json:"hit_prev_layer_gate"`
	// [layers] share of picks that the busiest quarter of experts gets
	ExpertShareTop25 []float64 `json:"expert_share_top25pct"`
}

// Reference returns the reference figures.
func Reference() (*Ref, error) {
	raw, err := fs.ReadFile(Files(), "reference.json")
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	var r Ref
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fmt.Errorf("demo: reference.json: %w", err)
	}
	return &r, nil
}
