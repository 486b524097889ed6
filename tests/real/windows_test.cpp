// SPDX-License-Identifier: Apache-2.0
// A plan on a real model with sliding-window layers: every rotation of the graph is compared with
// one computed here. Windowed layers turn as they were shipped, full layers as the plan says.
#include <llama.h>

#include <cmath>
#include <map>

#include "engine/llama/graph/capture.h"
#include "engine/llama/graph/inject.h"
#include "engine/llama/loader.h"
#include "real/models.h"

namespace mrrope::engine {
namespace {

constexpr std::int64_t kTokens = 640;    // longer than the sliding window of 512
constexpr double kWindowedBase = 10000;  // of Gemma 3, which its files do not state
constexpr std::size_t kStep = 7;         // of the positions that are compared
// Angles in float, of up to 640 radians.
constexpr double kNoise = 1e-3;
constexpr double kLeastSignal = 0.05;

// The vectors of one rotation: [token][head][element].
struct Turned {
  Operand operand;
  std::size_t heads = 0;
  std::size_t row = 0;
  std::vector<float> before, after;
};

// Reads what goes into every rotation and what comes out. A rotation may overwrite what it turns,
// so a first decode shows which nodes to read before.
class Reader {
 public:
  explicit Reader(Injector& injector) : injector_(injector) {}

  void begin(bool reading) {
    reading_ = reading;
    index_ = 0;
    rotation_ = 0;
    seen_.clear();
    turned.assign(injector_.rotations().size(), {});
  }

  static bool callback(ggml_tensor* node, bool ask, void* data) noexcept {
    auto& self = *static_cast<Reader*>(data);
    const bool wanted = Injector::callback(node, ask, &self.injector_);
    return ask ? self.asked(node) || wanted : self.computed(node);
  }

  std::vector<Turned> turned;  // per rotation

 private:
  bool asked(ggml_tensor* node) {
    const std::size_t index = index_++;
    current_ = index;
    if (!reading_) {
      seen_[node] = index;
      if (node->op == GGML_OP_ROPE) source_[seen_.at(node->src[0])] = rotation_++;
      return false;
    }
    if (node->op == GGML_OP_ROPE) ++rotation_;
    return node->op == GGML_OP_ROPE || source_.count(index) > 0;
  }

  bool computed(ggml_tensor* node) {
    if (!reading_) return true;
    if (const auto at = source_.find(current_); at != source_.end()) {
      turned[at->second].before = content(node);
    }
    if (node->op == GGML_OP_ROPE) {
      Turned& t = turned[rotation_ - 1];
      t.operand = operand_of(node->name);
      t.row = std::size_t(node->ne[0]);
      t.heads = std::size_t(node->ne[1]);
      t.after = content(node);
    }
    return true;
  }

  static std::vector<float> content(const ggml_tensor* node) {
    EXPECT_EQ(node->type, GGML_TYPE_F32);
    const auto row = std::size_t(node->ne[0]);
    const auto heads = std::size_t(node->ne[1]);
    std::vector<float> out(std::size_t(ggml_nelements(node)));
    for (std::size_t i = 0; i < out.size() / row; ++i) {
      ggml_backend_tensor_get(node, out.data() + i * row,
                              i / heads * node->nb[2] + i % heads * node->nb[1],
                              row * sizeof(float));
    }
    return out;
  }

  Injector& injector_;
  bool reading_ = false;
  std::size_t index_ = 0;
  std::size_t current_ = 0;
  std::size_t rotation_ = 0;
  std::map<const ggml_tensor*, std::size_t> seen_;
  std::map<std::size_t, std::size_t> source_;  // a node's number to the rotation that it feeds
};

std::string some_text() {
  std::string text;
  for (int i = 0; i < 200; ++i) text += " Lemma " + std::to_string(i * i) + " holds by induction.";
  return text;
}

std::vector<Turned> read_rotations(const Model& facts, llama_model* model, const Plan& plan) {
  LocalOptions options;
  options.threads = 2;
  options.gpu_layers = 0;
  options.type_k = options.type_v = "f32";
  options.flash_attention = "off";
  options.ubatch = int(kTokens);
  llama_context_params params = context_params(options, kTokens);
  params.n_seq_max = 1;
  const std::vector<Rotation> rotations = probe_rotations(model, params);
  check_rotations(rotations, facts);
  Injector injector(rotations);
  injector.add(make_setting(rotations, plan, false));
  Reader reader(injector);
  params.cb_eval = Reader::callback;
  params.cb_eval_user_data = &reader;
  const LlamaPtr<llama_context> context = make_context(model, params);
  std::vector<Token> tokens = first_tokens(*open_vocabulary(facts), some_text(), kTokens);
  for (const bool reading : {false, true}) {
    reader.begin(reading);
    injector.begin(0, {}, false);
    llama_memory_clear(llama_get_memory(context.get()), true);
    EXPECT_EQ(llama_decode(context.get(), llama_batch_get_one(tokens.data(), int(kTokens))), 0);
    injector.finish();
  }
  return std::move(reader.turned);
}

// The largest distance of a rotated vector from what these angles and this temperature give, by its
// own length. Pairs in halves.
double distance(const Turned& t, const std::vector<double>& theta, double temperature) {
  double largest = 0;
  const std::size_t half = t.row / 2;
  for (std::size_t v = 0; v < t.before.size() / t.row; ++v) {
    if (v / t.heads % kStep != 0) continue;
    const float* x = t.before.data() + v * t.row;
    const float* y = t.after.data() + v * t.row;
    const auto position = double(v / t.heads);
    double squares = 0;
    double apart = 0;
    for (std::size_t i = 0; i < half; ++i) {
      const double c = std::cos(position * theta[i]) * temperature;
      const double s = std::sin(position * theta[i]) * temperature;
      const double re = x[i] * c - x[i + half] * s;
      const double im = x[i] * s + x[i + half] * c;
      squares += re * re + im * im;
      apart += (y[i] - re) * (y[i] - re) + (y[i + half] - im) * (y[i + half] - im);
    }
    largest = std::max(largest, std::sqrt(apart / squares));
  }
  return largest;
}

using RealWindows = test::RealModel;

TEST_P(RealWindows, OnlyFullLayersFollowAPlan) {
  const Model facts = read_model(path);
  ASSERT_EQ(facts.geometry.pairing, Pairing::halves);
  const LlamaPtr<llama_model> model = load_model(facts.files, 0);
  const Plan none = make_plan(facts.geometry, {});
  const Plan pro = make_plan(facts.geometry, {.method = "pro", .scale = 4});
  std::vector<double> windowed;
  const int dims = facts.geometry.rotary_dim;
  for (int i = 0; i < dims; i += 2) windowed.push_back(std::pow(kWindowedBase, -double(i) / dims));

  const std::vector<Turned> shipped = read_rotations(facts, model.get(), none);
  const std::vector<Turned> planned = read_rotations(facts, model.get(), pro);
  ASSERT_EQ(shipped.size(), 2 * facts.layers.size());
  ASSERT_EQ(planned.size(), shipped.size());
  int windows = 0;
  int full = 0;
  for (std::size_t i = 0; i < shipped.size(); ++i) {
    const Turned& a = shipped[i];
    const Turned& b = planned[i];
    SCOPED_TRACE(testing::Message()
                 << (a.operand.query ? "queries" : "keys") << " of layer " << a.operand.layer);
    ASSERT_EQ(std::int64_t(a.before.size()), kTokens * std::int64_t(a.heads * a.row));
    ASSERT_EQ(a.before.size(), a.after.size());
    ASSERT_EQ(b.before.size(), a.before.size());
    ASSERT_EQ(a.operand.layer, b.operand.layer);
    const bool is_full = facts.layers.at(std::size_t(a.operand.layer)).kind == LayerKind::full;
    if (is_full) {
      ++full;
      EXPECT_LT(distance(a, none.theta(), 1), kNoise);
      EXPECT_LT(distance(b, pro.theta(), pro.attention_scale()), kNoise);
      EXPECT_GT(distance(b, none.theta(), 1), kLeastSignal);
    } else {
      ++windows;
      EXPECT_LT(distance(a, windowed, 1), kNoise);
      EXPECT_LT(distance(b, windowed, 1), kNoise);
      EXPECT_GT(distance(b, none.theta(), 1), kLeastSignal);
    }
    // Up to the first full layer the plan has changed nothing that the model computes.
    if (full == 0) {
      EXPECT_EQ(a.after, b.after);
    }
    if (is_full && full <= 2) {
      EXPECT_EQ(a.before, b.before);
      EXPECT_NE(a.after, b.after);
    }
  }
  EXPECT_EQ(full, 2 * 3);
  EXPECT_EQ(windows, 2 * 15);
}

MRROPE_REAL_MODELS(RealWindows, testing::Values("gemma-3-270m"));

}  // namespace
}  // namespace mrrope::engine
