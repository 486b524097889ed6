// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/graph/operands.h"

#include <algorithm>
#include <cstdlib>

#include "base/text.h"
#include "engine/llama/loader.h"
#include "engine/llama/tokenize.h"
#include "mrrope/error.h"

namespace mrrope::engine {

std::vector<Token> first_tokens(const llama_model* model, const std::string& file,
                                std::string_view text, std::int64_t wanted) {
  const llama_vocab* vocab = llama_model_get_vocab(model);
  // More bytes than the wanted tokens could have need no reading.
  text = text.substr(0, std::size_t(std::min<std::int64_t>(wanted * 64, std::int64_t(1) << 30)));
  std::vector<Token> tokens = tokens_of(vocab, file, text, false);
  if (const auto bos = bos_of(vocab)) tokens.insert(tokens.begin(), *bos);
  const auto count = static_cast<std::int64_t>(tokens.size());
  if (count < wanted) {
    throw Error(ErrorKind::usage,
                cat("the text has ", count, " tokens, and --length asks for ", wanted),
                "give a longer --text, or a smaller --length");
  }
  tokens.resize(std::size_t(wanted));
  return tokens;
}

Operand operand_of(const std::string& name) {
  const std::size_t dash = name.rfind('-');
  if (name.empty() || dash == std::string::npos) return {};
  const char first = name.front();
  if (first != 'Q' && first != 'q' && first != 'K' && first != 'k') return {};
  return {std::atoi(name.c_str() + dash + 1), first == 'Q' || first == 'q'};
}

std::vector<int> rotating_layers(const std::vector<Rotation>& rotations) {
  std::vector<int> queries;
  std::vector<int> keys;
  for (const Rotation& r : rotations) {
    const Operand o = operand_of(r.name);
    if (r.takes_plan && o.layer >= 0) (o.query ? queries : keys).push_back(o.layer);
  }
  std::sort(keys.begin(), keys.end());
  std::vector<int> both;
  for (const int layer : queries) {
    if (std::binary_search(keys.begin(), keys.end(), layer)) both.push_back(layer);
  }
  std::sort(both.begin(), both.end());
  both.erase(std::unique(both.begin(), both.end()), both.end());
  return both;
}

std::vector<int> chosen_layers(const std::vector<int>& there, std::vector<int> wanted) {
  if (there.empty()) {
    throw Error(ErrorKind::unsupported,
                "no layer of this model rotates a query and a key under a name that is known",
                "the other figures need no captured queries: mrrope theory bound MODEL");
  }
  if (wanted.empty()) {
    const std::size_t count = std::min<std::size_t>(4, there.size());
    for (std::size_t i = 0; i < count; ++i) {
      wanted.push_back(there[count == 1 ? 0 : i * (there.size() - 1) / (count - 1)]);
    }
  }
  for (const int layer : wanted) {
    if (std::find(there.begin(), there.end(), layer) != there.end()) continue;
    throw Error(ErrorKind::usage, cat("layer ", layer, " does not rotate queries and keys here"),
                cat("give layers from ", there.front(), " to ", there.back()));
  }
  return wanted;
}

Opened open_to_read(const Model& model, const LocalOptions& options, bool whole_windows,
                    std::string_view text, std::int64_t tokens, std::vector<int> layers) {
  if (model.format != "gguf") {
    throw Error(ErrorKind::unsupported, cat(model.path.string(), " is not a GGUF file"),
                "give a GGUF file: the figure runs the model");
  }
  Opened out{
      load_model(model.files, options.gpu_layers), context_params(options, tokens), {}, {}, {}};
  out.text = first_tokens(out.model.get(), model.path.filename().string(), text, tokens);
  out.params.n_seq_max = 1;
  out.params.swa_full = whole_windows;
  out.rotations = probe_rotations(out.model.get(), out.params);
  check_rotations(out.rotations, model);
  out.layers = chosen_layers(rotating_layers(out.rotations), std::move(layers));
  return out;
}

}  // namespace mrrope::engine
