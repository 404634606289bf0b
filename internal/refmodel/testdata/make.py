"""Runs the checkpoints that `go test ./internal/refmodel -run OtherImplementation -write DIR` writes through Hugging Face
transformers and puts ids, logits and hidden states of each into others.safetensors. Usage: make.py DIR others.safetensors"""

import os
import sys

import numpy
import torch
from safetensors.numpy import save_file
from transformers import AutoModelForCausalLM

directory, target = sys.argv[1:]
torch.manual_seed(0)
torch.backends.cuda.matmul.allow_tf32 = False
ids = [(7 * i * i + 3 * i + 1) % 40 for i in range(24)]
out = {"ids": numpy.array(ids, dtype=numpy.float32)}
for name in sorted(os.listdir(directory)):
    model, info = AutoModelForCausalLM.from_pretrained(
        os.path.join(directory, name), dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    for kind, keys in info.items():
        assert not keys, f"{name}: {kind}: {keys}"
    with torch.no_grad():
        r = model.eval()(input_ids=torch.tensor([ids]), output_hidden_states=True, use_cache=False)
    out[name + ".logits"] = r.logits[0].float().numpy()
    out[name + ".hidden"] = torch.stack([h[0] for h in r.hidden_states]).float().numpy()
    print(name, type(model).__name__, out[name + ".logits"].shape, float(out[name + ".logits"].std()))
save_file(out, target)
