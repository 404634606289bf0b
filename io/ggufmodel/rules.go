package ggufmodel

import "github.com/moeflux/moeflux-actor/model"

// rule is how GGUF files of a family are written.
type rule struct {
	// config fills in the keys of config.json from those of the file.
	config func(k *keys, c object)
	// windows means that config reads the window of layers; others must have none.
	windows bool
	// headsByLayer means that layers may have other numbers of heads: config reads them.
	headsByLayer bool
	// tiled means that value heads of linear attention stand apart: first the first of each key
	// head, then the second of each, and so on. In checkpoints those of a key head are together.
	tiled bool
	// names are those in a pack of layers' tensors that only this family has, or has for something
	// else than others.
	names map[string]string
	// read is a tensor that config reads and that is no part of the model; "" if there is none.
	read string
}

// rules are the families whose files are read. A family without one is refused by name.
var rules = map[model.Arch]rule{
	model.Qwen3MoE:     {config: qwen3MoE},
	model.Qwen3Next:    {config: hybrid},
	model.Qwen35MoE:    {config: hybrid, tiled: true},
	model.DeepseekV3:   {config: deepseek},
	model.Glm4MoE:      {config: glm4MoE},
	model.MiniMaxM2:    {config: miniMaxM2},
	model.HyV3:         {config: hyV3},
	model.GptOss:       {config: gptOss, windows: true},
	model.HunyuanV1MoE: {config: hunyuanMoE},
	model.DeepseekV32:  {config: deepseek32},
	model.GLMMoEDSA:    {config: glmDSA},
	model.MiniMaxM3:    {config: miniMaxM3, names: miniMaxM3Names},
	model.Step35:       {config: step35, windows: true, headsByLayer: true, names: step35Names, read: ropeFactors},
}
