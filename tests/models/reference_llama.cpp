// SPDX-License-Identifier: Apache-2.0
#include "models/reference_llama.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "formats/gguf/gguf.h"

namespace mrrope::test {

namespace {

constexpr std::uint32_t kF32 = 0;  // of ggml's types

}  // namespace

ReferenceLlama::ReferenceLlama(const std::filesystem::path& path) : facts_(read_model(path)) {
  const Gguf file = read_gguf(path);
  std::ifstream in(path, std::ios::binary);
  for (const GgufTensor& t : file.first().tensors) {
    if (t.type != kF32) throw std::runtime_error(t.name + " is not F32");
    std::vector<float>& values = tensors_[t.name];
    values.resize(std::size_t(t.elements()));
    in.seekg(std::streamoff(t.offset));
    in.read(reinterpret_cast<char*>(values.data()), std::streamsize(t.size));
  }
  const std::string prefix = facts_.architecture + ".";
  const auto number = [&](const char* key) {
    return std::size_t(*file.first().integer(prefix + key, 1, 1 << 20));
  };
  layers_ = number("block_count");
  heads_ = number("attention.head_count");
  kv_heads_ = number("attention.head_count_kv");
  head_ = number("attention.key_length");
  epsilon_ = 1e-5;
}

const std::vector<float>& ReferenceLlama::tensor(const std::string& name) const {
  return tensors_.at(name);
}

std::vector<double> ReferenceLlama::times(const std::string& name,
                                          const std::vector<double>& x) const {
  const std::vector<float>& w = tensor(name + ".weight");
  std::vector<double> out(w.size() / x.size());
  for (std::size_t r = 0; r < out.size(); ++r) {
    for (std::size_t c = 0; c < x.size(); ++c) out[r] += double(w[r * x.size() + c]) * x[c];
  }
  if (const auto bias = tensors_.find(name + ".bias"); bias != tensors_.end()) {
    for (std::size_t r = 0; r < out.size(); ++r) out[r] += double(bias->second[r]);
  }
  return out;
}

std::vector<double> ReferenceLlama::norm(const std::string& name,
                                         const std::vector<double>& x) const {
  double squares = 0;
  for (const double v : x) squares += v * v;
  const double scale = 1 / std::sqrt(squares / double(x.size()) + epsilon_);
  std::vector<double> out(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    out[i] = x[i] * scale * double(tensor(name + ".weight")[i]);
  }
  return out;
}

std::vector<std::vector<double>> ReferenceLlama::logits(const std::vector<std::int32_t>& tokens,
                                                        const Angle& angle,
                                                        const Weight& weight) const {
  const std::size_t count = tokens.size();
  const std::vector<float>& embeddings = tensor("token_embd.weight");
  std::vector<std::vector<double>> x(count);
  const std::size_t width = tensor("output_norm.weight").size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto row = embeddings.begin() + std::ptrdiff_t(std::size_t(tokens[i]) * width);
    x[i].assign(row, row + std::ptrdiff_t(width));
  }
  const auto pairs = std::size_t(facts_.geometry.rotary_dim / 2);
  const bool halves = facts_.geometry.pairing == Pairing::halves;
  // Cosines and sines are the same in all layers.
  std::vector<std::vector<double>> cosine(count);
  std::vector<std::vector<double>> sine(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      const double scale = weight(i, j);
      for (std::size_t p = 0; p < pairs; ++p) {
        const double radians = angle(i, j, p);
        cosine[i].push_back(std::cos(radians) * scale);
        sine[i].push_back(std::sin(radians) * scale);
      }
    }
  }
  for (std::size_t layer = 0; layer < layers_; ++layer) {
    const std::string block = "blk." + std::to_string(layer) + ".";
    std::vector<std::vector<double>> q(count);
    std::vector<std::vector<double>> k(count);
    std::vector<std::vector<double>> v(count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::vector<double> h = norm(block + "attn_norm", x[i]);
      q[i] = times(block + "attn_q", h);
      k[i] = times(block + "attn_k", h);
      v[i] = times(block + "attn_v", h);
    }
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<double> seen(heads_ * head_);
      for (std::size_t head = 0; head < heads_; ++head) {
        const double* query = q[i].data() + head * head_;
        const std::size_t kv = head * kv_heads_ / heads_ * head_;
        std::vector<double> score(i + 1);
        double largest = -1e300;
        for (std::size_t j = 0; j <= i; ++j) {
          const double* key = k[j].data() + kv;
          for (std::size_t p = 0; p < pairs; ++p) {
            const std::size_t a = halves ? p : 2 * p;
            const std::size_t b = halves ? p + pairs : 2 * p + 1;
            score[j] += (query[a] * key[a] + query[b] * key[b]) * cosine[i][j * pairs + p] -
                        (query[b] * key[a] - query[a] * key[b]) * sine[i][j * pairs + p];
          }
          for (std::size_t e = 2 * pairs; e < head_; ++e) score[j] += query[e] * key[e];
          score[j] /= std::sqrt(double(head_));
          largest = std::max(largest, score[j]);
        }
        double sum = 0;
        for (double& s : score) sum += s = std::exp(s - largest);
        for (std::size_t j = 0; j <= i; ++j) {
          for (std::size_t e = 0; e < head_; ++e) {
            seen[head * head_ + e] += score[j] / sum * v[j][kv + e];
          }
        }
      }
      const std::vector<double> out = times(block + "attn_output", seen);
      for (std::size_t e = 0; e < width; ++e) x[i][e] += out[e];
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::vector<double> h = norm(block + "ffn_norm", x[i]);
      std::vector<double> up = times(block + "ffn_up", h);
      std::vector<double> gate;
      if (tensors_.count(block + "ffn_gate.weight") > 0) {
        gate = times(block + "ffn_gate", h);
      } else {  // Phi-3: the front of one matrix
        const auto middle = up.begin() + std::ptrdiff_t(up.size() / 2);
        gate.assign(up.begin(), middle);
        up.erase(up.begin(), middle);
      }
      for (std::size_t e = 0; e < gate.size(); ++e) {
        gate[e] = gate[e] / (1 + std::exp(-gate[e])) * up[e];
      }
      const std::vector<double> out = times(block + "ffn_down", gate);
      for (std::size_t e = 0; e < width; ++e) x[i][e] += out[e];
    }
  }
  std::vector<std::vector<double>> rows;
  const bool tied = tensors_.count("output.weight") == 0;
  for (std::size_t i = 0; i < count; ++i) {
    rows.push_back(times(tied ? "token_embd" : "output", norm("output_norm", x[i])));
  }
  return rows;
}

}  // namespace mrrope::test
