// SPDX-License-Identifier: Apache-2.0
// The scripted model with answers from the test: a function of the test gets the whole prompt as
// text and returns the answer. Keeps every prompt.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/scripted.h"

namespace mrrope::test {

class ReadingModel : public ScriptedModel {
 public:
  using Reader = std::function<std::string(const std::string& prompt)>;
  ReadingModel(const ScriptedOptions& options, Reader reader)
      : ScriptedModel(options), reader_(std::move(reader)) {}

  std::unique_ptr<Timeline> timeline() override;

  std::string read(const std::string& prompt) {
    prompts.push_back(prompt);
    return reader_(prompt);
  }
  std::vector<std::string> prompts;  // BOS shown as ^

 private:
  Reader reader_;
};

class ReadingTimeline : public Timeline {
 public:
  ReadingTimeline(std::unique_ptr<Timeline> inner, ReadingModel& model, std::string text)
      : inner_(std::move(inner)), model_(model), text_(std::move(text)) {}
  std::int64_t length() const override { return inner_->length(); }
  std::size_t rung() const override { return inner_->rung(); }
  std::vector<Token> tokens() const override { return inner_->tokens(); }
  void save(const std::filesystem::path& path) const override { inner_->save(path); }
  void append(std::span<const Token> tokens) override {
    inner_->append(tokens);
    for (const Token t : tokens) text_.push_back(t == ScriptedModel::kBos ? '^' : char(t));
  }
  std::vector<double> append_scored(std::span<const Token> tokens) override {
    return inner_->append_scored(tokens);
  }
  void append_observed(std::span<const Token> tokens, std::span<const std::size_t> wanted,
                       const LogitObserver& observer) override {
    inner_->append_observed(tokens, wanted, observer);
  }
  std::unique_ptr<Timeline> fork() override {
    return std::make_unique<ReadingTimeline>(inner_->fork(), model_, text_);
  }
  void truncate(std::int64_t length) override {
    inner_->truncate(length);
    text_.resize(std::size_t(length));
  }
  Generation generate(const GenerateOptions& options) override {
    Generation said;
    said.text = model_.read(text_);
    said.finish = "stop";
    said.smallest_gap = 1;
    if (options.on_text && !options.on_text(said.text)) said.finish = "cancelled";
    return said;
  }

 private:
  std::unique_ptr<Timeline> inner_;
  ReadingModel& model_;
  std::string text_;
};

inline std::unique_ptr<Timeline> ReadingModel::timeline() {
  return std::make_unique<ReadingTimeline>(ScriptedModel::timeline(), *this, "");
}

}  // namespace mrrope::test
