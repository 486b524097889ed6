// SPDX-License-Identifier: Apache-2.0
#include "support/scripted.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <limits>

#include "base/text.h"
#include "mrrope/error.h"

namespace mrrope {

namespace {

constexpr int kVocabulary = 258;
constexpr std::int64_t kMemory = 4;  // tokens that the next one depends on

std::uint64_t mix(std::uint64_t h, std::uint64_t value) {
  h += value + 0x9e3779b97f4a7c15u;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
  return h ^ (h >> 31);
}

std::uint64_t fingerprint(const Plan& plan) {
  // As floats, so that they are the same where pow() rounds the last bit of a double otherwise.
  const auto bits = [](double x) { return std::bit_cast<std::uint64_t>(double(float(x))); };
  std::uint64_t h = bits(plan.attention_scale());
  for (const double factor : plan.factor()) h = mix(h, bits(factor));
  return h;
}

double log_sum(std::span<const float> logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(double(x) - top);
  return top + std::log(sum);
}

class ScriptedTimeline : public Timeline {
 public:
  ScriptedTimeline(const ScriptedOptions& options, const Ladder& ladder,
                   std::shared_ptr<std::int64_t> computed)
      : options_(options), ladder_(ladder), computed_(std::move(computed)) {}

  std::int64_t length() const override { return std::int64_t(tokens_.size()); }
  std::size_t rung() const override { return ladder_.rung_at(std::max<std::int64_t>(1, length())); }
  std::vector<Token> tokens() const override { return tokens_; }
  void save(const std::filesystem::path& path) const override {
    std::ofstream out(path);
    for (const Token token : tokens_) out << token << "\n";
  }

  std::vector<double> read(std::span<const Token> tokens, std::span<const std::size_t> wanted,
                           const LogitObserver& observer, bool scored) override {
    std::vector<double> scores;
    std::size_t next = 0;
    const Unfinished guard(*this);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (scored) scores.push_back(score(tokens[i]));
      push(tokens[i]);
      if (next < wanted.size() && wanted[next] == i) {
        observer(i, logits());
        ++next;
      }
    }
    guard.keep(tokens);
    return scores;
  }

  std::unique_ptr<Timeline> fork() override { return std::make_unique<ScriptedTimeline>(*this); }

  void truncate(std::int64_t length) override {
    if (length < 0 || length > this->length()) {
      throw Error(ErrorKind::usage, cat("cannot truncate ", this->length(), " tokens to ", length),
                  "give a length up to that");
    }
    tokens_.resize(std::size_t(length));
  }

  Generation generate(const GenerateOptions& options) override {
    if (options_.reader) return answer_to_prompt(options);
    if (options.sampling.temperature > 0) {
      throw Error(ErrorKind::unsupported, "the scripted engine only decodes greedily",
                  "set the temperature to 0");
    }
    const std::string script = answer_to_question();
    Generation result{{}, {}, "length", std::numeric_limits<double>::infinity()};
    while (int(result.tokens.size()) < options.max_tokens) {
      Token token = ScriptedModel::kEnd;
      if (result.tokens.size() < script.size()) {
        token = static_cast<unsigned char>(script[result.tokens.size()]);
      } else if (script.empty()) {
        std::vector<float> now = logits();
        if (std::isnan(now[0])) {
          throw NanLogits(cat("NaN logits after position ", length() - 1), "it was told to");
        }
        token = Token(std::max_element(now.begin(), now.end()) - now.begin());
        std::nth_element(now.begin(), now.begin() + 1, now.end(), std::greater<>());
        result.smallest_gap = std::min(result.smallest_gap, double(now[0]) - double(now[1]));
      }
      if (token >= 256) {
        result.finish = "stop";
        break;
      }
      push(token);
      result.tokens.push_back(token);
      result.text.push_back(char(token));
      for (const std::string& stop : options.stop) {
        const std::size_t at = result.text.find(stop);
        if (at == std::string::npos) continue;
        result.text.resize(at);
        result.finish = "stop";
        return result;
      }
      if (options.on_text && !options.on_text(std::string_view(&result.text.back(), 1))) {
        result.finish = "cancelled";
        break;
      }
    }
    return result;
  }

 private:
  // The tokens of a call become part of the timeline when all of them are computed, and are then
  // read from the caller's span a second time, after the observers. A call that fails in the middle
  // changes nothing.
  class Unfinished {
   public:
    explicit Unfinished(ScriptedTimeline& timeline)
        : timeline_(timeline), before_(timeline.tokens_.size()) {}
    ~Unfinished() {
      if (!kept_) timeline_.tokens_.resize(before_);
    }
    void keep(std::span<const Token> tokens) const {
      timeline_.tokens_.resize(before_);
      timeline_.tokens_.insert(timeline_.tokens_.end(), tokens.begin(), tokens.end());
      kept_ = true;
    }

   private:
    ScriptedTimeline& timeline_;
    std::size_t before_;
    mutable bool kept_ = false;
  };

  void push(Token token) {
    if (token < 0 || token >= kVocabulary) {
      throw Error(ErrorKind::usage, cat("token ", token, " is outside the vocabulary"),
                  "tokens come from tokenize()");
    }
    if (length() >= options_.context) {
      throw Error(ErrorKind::usage, cat("the context of ", options_.context, " tokens is full"),
                  "make the context longer");
    }
    ++*computed_;
    if (options_.fail_at && *computed_ == *options_.fail_at) {
      throw Error(ErrorKind::failed, cat("the computation of token ", *computed_, " failed"),
                  "it was told to");
    }
    tokens_.push_back(token);
  }

  // The scores of the token that follows the present end.
  std::vector<float> logits() const {
    const Plan& plan = ladder_.rungs()[ladder_.rung_at(length())].plan;
    std::vector<float> result(kVocabulary);
    const auto applies = [&](const std::optional<std::int64_t>& at, const std::string& method) {
      return at && length() > *at && (method.empty() || method == plan.extension().method);
    };
    if (applies(options_.nan_at, options_.nan_method)) {
      std::fill(result.begin(), result.end(), std::numeric_limits<float>::quiet_NaN());
      return result;
    }
    if (applies(options_.certain_at, options_.certain_method)) {
      std::fill(result.begin() + 1, result.end(), -std::numeric_limits<float>::infinity());
      return result;
    }
    std::uint64_t state = mix(options_.seed, fingerprint(plan));
    for (std::int64_t i = std::max<std::int64_t>(0, length() - kMemory); i < length(); ++i) {
      state = mix(state, std::uint64_t(tokens_[std::size_t(i)]));
    }
    for (int v = 0; v < kVocabulary; ++v) {
      result[std::size_t(v)] = float(mix(state, std::uint64_t(v)) >> 40) / float(1 << 21) - 4.0f;
    }
    return result;
  }

  double score(Token token) const {
    if (tokens_.empty()) return std::numeric_limits<double>::quiet_NaN();
    const std::vector<float> now = logits();
    return double(now[std::size_t(token)]) - log_sum(now);
  }

  Generation answer_to_prompt(const GenerateOptions& options) const {
    std::string prompt;
    for (const Token t : tokens_) prompt.push_back(t == ScriptedModel::kBos ? '^' : char(t));
    Generation said{options_.reader(prompt), {}, "stop", 1};
    if (options.on_text && !options.on_text(said.text)) said.finish = "cancelled";
    return said;
  }

  std::string answer_to_question() const {
    const std::string& q = options_.question;
    if (q.empty() || tokens_.size() < q.size()) return {};
    const bool asked =
        std::equal(q.begin(), q.end(), tokens_.end() - std::ptrdiff_t(q.size()),
                   [](char c, Token t) { return Token(static_cast<unsigned char>(c)) == t; });
    return asked ? options_.answer : std::string();
  }

  ScriptedOptions options_;
  Ladder ladder_;
  std::shared_ptr<std::int64_t> computed_;
  std::vector<Token> tokens_;
};

Model scripted_facts(const ScriptedOptions& options) {
  Model model;
  model.format = "scripted";
  model.name = "scripted";
  model.architecture = "scripted";
  model.vocabulary = kVocabulary;
  model.geometry.rotary_dim = 16;
  model.geometry.base = 10000;
  model.geometry.train_length = options.train_length;
  return model;
}

}  // namespace

ScriptedModel::ScriptedModel(const ScriptedOptions& options)
    : options_(options),
      facts_(scripted_facts(options)),
      ladder_(make_ladder(make_plan(facts_.geometry, Extension{}), options.context)),
      computed_(std::make_shared<std::int64_t>(0)) {}

std::string ScriptedModel::description() const { return cat("scripted, seed ", options_.seed); }

std::vector<Token> ScriptedModel::tokenize(std::string_view text, bool add_bos,
                                           bool /*special*/) const {
  std::vector<Token> tokens;
  if (add_bos && options_.has_bos) tokens.push_back(kBos);
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

std::string ScriptedModel::detokenize(std::span<const Token> tokens) const {
  std::string text;
  for (const Token token : tokens) {
    if (token < 256) text.push_back(char(token));
  }
  return text;
}

std::optional<Token> ScriptedModel::bos() const {
  return options_.has_bos ? std::optional<Token>(kBos) : std::nullopt;
}

std::string ScriptedModel::apply_chat_template(std::span<const ChatMessage> messages) const {
  std::string text;
  for (const ChatMessage& message : messages) text += message.role + ": " + message.content + "\n";
  return text + "assistant: ";
}

std::unique_ptr<Timeline> ScriptedModel::restore(const std::filesystem::path& path,
                                                 std::size_t /*rung*/) {
  auto restored = timeline();
  std::ifstream in(path);
  for (Token token = 0; in >> token;) restored->append({&token, 1});
  return restored;
}

std::unique_ptr<Timeline> ScriptedModel::timeline() {
  return std::make_unique<ScriptedTimeline>(options_, ladder_, computed_);
}

}  // namespace mrrope
