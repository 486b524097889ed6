#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pack.sh BUNDLE TINY TEXT: what a GPU machine without a network needs to try vLLM (docs/guide/export.md), in pieces
# of 48 MiB. TINY: MrRoPE Tiny as a Hugging Face folder in float16. TEXT: a text of at least 16383 of its
# tokens. Needs ./run build with score_tokens, uv, and MRROPE_PYTHON with torch, transformers 5 and gguf. The
# random model of 1 B takes the engine half an hour on two cores. ENGINE="tiny" leaves its scores out, ENGINE="" those
# of Tiny too: all.sh needs both, rungs.sh and far.sh make their own.
set -euo pipefail
bundle=${1:?usage: pack.sh BUNDLE TINY TEXT} tiny=$(realpath "$2") text=$(realpath "$3")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
bin=$root/build/release/bin
python=${MRROPE_PYTHON:-python3}
read -ra scored <<<"${ENGINE-tiny 1b}"
export PYTHONPATH=$root/python:$root/tests/python MRROPE_NATIVE=$root/build/release MRROPE_HOME=$root
mkdir -p "$bundle/kit"/{wheels,models,refs/rungs,home/models,home/data}
cd "$bundle"

# The versions of the day that vLLM was published, less torch and what serving text does not import.
echo vllm==0.26.0 >vllm.in
uv pip compile --quiet vllm.in --python-platform x86_64-manylinux_2_35 --python-version 3.12 \
  --only-binary :all: --exclude-newer 2026-07-28 -o all.txt
grep -E '^[a-z]' all.txt | grep -vE "^($(tr -s ' \n' '|' <"$here/left_out.txt" | sed 's/|$//'))==" >wanted.txt
platforms=()
for tag in 1 2010 2014 _2_5 _2_12 _2_17 _2_24 _2_26 _2_27 _2_28 _2_31 _2_34 _2_35; do
  platforms+=(--platform "manylinux${tag}_x86_64")
done
"$python" -m pip download --quiet --no-deps "${platforms[@]}" --python-version 3.12 --implementation cp \
  --abi cp312 --abi abi3 --abi none --only-binary=:all: -d kit/wheels -r wanted.txt gguf==0.19.0
"$python" "$here/models.py" plugin kit/wheels

# Models, and what mrrope says about them.
"$python" "$here/models.py" glm glm "$tiny"
"$python" "$here/models.py" tiny "$tiny" tiny.gguf
"$python" "$here/random_1b.py" 1b ${scored[1]:+1b.gguf "$root/models/mrrope-tiny.gguf"}
"$python" "$here/models.py" shape shape "$tiny"
cp "$tiny"/tokenizer*.json 1b/
for name in tiny glm 1b; do
  from=$name
  [ $name != tiny ] || from=$tiny
  for dialect in v5 mrrope; do
    to=hf
    [ $dialect = v5 ] || to=hf-$dialect
    "$bin/mrrope" export "$from" --method pro --ctx 8k --to $to --copy --force -o "kit/models/$name-$dialect"
  done
done
# A rung for every request (rungs.sh): Tiny up to 32K, the random Llama up to 128K.
ladder='elastic:pro(rung_step=2,headroom=1)'
"$bin/mrrope" export "$tiny" --method "$ladder" --ctx 32k --to hf-mrrope --copy --force -o kit/models/tiny-ladder
for name in 1b shape; do
  "$bin/mrrope" export $name --method "$ladder" --ctx 128k --to hf-mrrope --copy --force -o kit/models/$name-ladder
done
"$bin/mrrope" export 1b --method pro --ctx 128k --to hf-mrrope --copy --force -o kit/models/1b-static
"$bin/mrrope" export "$tiny" --method yarn --ctx 8k --to hf --copy --force -o kit/models/tiny-yarn
# Near and far keys (far.sh).
far='far:pi(rung_step=2)'
"$bin/mrrope" export "$tiny" --method "$far" --ctx 32k --to hf-mrrope --copy --force -o kit/models/tiny-far
for name in 1b shape; do
  "$bin/mrrope" export $name --method "$far" --ctx 128k --to hf-mrrope --copy --force -o kit/models/$name-far
done
rm kit/models/1b-*/model.safetensors # made there
for name in mrrope ladder yarn far; do # once in the archive
  ln -f kit/models/tiny-v5/model.safetensors kit/models/tiny-$name/model.safetensors
done
cp "$text" kit/refs/text.txt
"$python" "$here/models.py" tokens "$tiny" "$text" kit/refs/tokens.json
score() { # MODEL METHOD LENGTH OUT: one less than LENGTH, as max_tokens is 1; kept from the last time
  [ -s "$4" ] && return
  "$bin/mrrope" plan "$1" --method "$2" --ctx "$3" -o plan.json
  "$bin/score_tokens" "$1" plan.json "$text" "$(($3 - 1))" >scores.json
  "$python" "$here/models.py" rung-reference scores.json "$4" "$3"
}
for name in "${scored[@]}"; do
  for method in pro none; do score $name.gguf $method 8192 kit/refs/$name-$method.json; done
done
for pair in ${scored[0]:+0:1024:none 2:4096:pro 3:8192:pro 4:16384:pro}; do
  IFS=: read -r rung length method <<<"$pair"
  score tiny.gguf "$method" "$length" "kit/refs/rungs/rung-$rung.json"
done
[ -s kit/refs/glm-pro.json ] || [ -z "${scored[*]}" ] ||
  "$python" "$here/models.py" score-glm glm kit/refs/tiny-pro.json kit/refs
cp "$root/models/mrrope-tiny.gguf" kit/home/models/
cp -r "$root/data/texts" kit/home/data/
tar -C kit -cf - wheels models refs home | split -b 48m -d -a 3 - vllm.tar.part-
sha256sum vllm.tar.part-* >vllm.sums
