// SPDX-License-Identifier: Apache-2.0
// Continuing a timeline: choosing tokens, stopping, and handing out text in whole characters.
#include <algorithm>
#include <limits>

#include "base/text_stream.h"
#include "engine/llama/choose.h"
#include "engine/llama/timeline.h"

namespace mrrope {

Generation LocalTimeline::generate(const GenerateOptions& options) {
  Generation result;
  TextStream stream(options.stop);
  Chooser chooser(options.sampling);
  float smallest_gap = std::numeric_limits<float>::infinity();
  result.finish = "length";
  const std::int64_t room = model_.longest() - length();
  const auto most = std::min<std::int64_t>(options.max_tokens, room);
  ensure_logits();
  std::span<const float> logits = last_logits_;
  while (static_cast<std::int64_t>(result.tokens.size()) < most) {
    const auto [token, gap] = chooser.choose(logits, length() - 1);
    smallest_gap = std::min(smallest_gap, gap);
    if (model_.ends_text(token)) {
      result.finish = "stop";
      break;
    }
    result.tokens.push_back(token);
    logits = step(token);
    const std::string fresh = stream.add(model_.piece(token));
    result.text += fresh;
    if (!fresh.empty() && options.on_text && !options.on_text(fresh)) {
      result.finish = "cancelled";
      break;
    }
    if (stream.stopped()) {
      result.finish = "stop";
      break;
    }
  }
  if (!result.tokens.empty()) last_logits_.assign(logits.begin(), logits.end());
  const std::string rest = stream.finish();
  result.text += rest;
  if (!rest.empty() && options.on_text && result.finish != "cancelled") options.on_text(rest);
  if (chooser.greedy() && !result.tokens.empty()) result.smallest_gap = smallest_gap;
  return result;
}

}  // namespace mrrope
