# SPDX-License-Identifier: Apache-2.0
"""A model of transformers beyond its window, without training: python transformers_patch.py FOLDER TEXT

FOLDER: a checkpoint with its tokenizer. TEXT: a file that is longer than the model's window.
Needs: pip install mrrope transformers torch
"""
# %% The model, and a text of two windows.
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import mrrope

folder, text = sys.argv[1:3]
model = AutoModelForCausalLM.from_pretrained(folder)
tokenizer = AutoTokenizer.from_pretrained(folder)
window = model.config.max_position_embeddings
tokens = tokenizer(open(text).read(), return_tensors="pt")["input_ids"][:, : 2 * window]


def report(name):
    """Perplexity of the tokens inside the window, and of those beyond it."""
    with torch.no_grad():
        logits = model(tokens).logits[0, :-1].log_softmax(-1)
    scores = logits.gather(1, tokens[0, 1:, None])[:, 0]
    inside, beyond = (float(part.mean().neg().exp())
                      for part in (scores[: window - 1], scores[window:]))
    print(f"  {name:12} {inside:8.2f} {beyond:8.2f}")


# %% The model as it is fails beyond its window.
print(f"window {window}, text {tokens.shape[1]} tokens; perplexity inside and beyond the window:")
report("untouched")

# %% A static plan: one set of frequencies for every length.
plan = mrrope.patch(model, "pro", ctx=2 * window)
report("pro")
mrrope.unpatch(model)

# %% A growing context: nothing changes inside the window, and cached keys turn beyond it.
ladder = mrrope.patch(model, "elastic:pro", ctx=2 * window)
report("elastic:pro")

# %% generate() works as before, over the rungs.
prompt = tokens[:, : window - 8]
made = model.generate(prompt, max_new_tokens=24, do_sample=False, pad_token_id=0,
                      attention_mask=torch.ones_like(prompt))
print("continued over the end of the window:")
print(repr(tokenizer.decode(made[0, prompt.shape[1]:])))
mrrope.unpatch(model)
