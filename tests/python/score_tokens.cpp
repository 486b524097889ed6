// SPDX-License-Identifier: Apache-2.0
// score_tokens MODEL.gguf PLAN.json TEXT.txt LENGTH: the log-probability of each of the first
// LENGTH tokens of a text under a plan or a ladder, as JSON, for comparison with other engines.
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/llama/local.h"
#include "formats/plan_file.h"
#include "mrrope/error.h"

int main(int argc, char** argv) try {
  if (argc != 5) {
    std::cerr << "usage: score_tokens MODEL.gguf PLAN.json TEXT.txt LENGTH\n";
    return 2;
  }
  const auto length = static_cast<std::size_t>(std::stoul(argv[4]));
  mrrope::engine::LocalOptions options;
  options.context = static_cast<std::int64_t>(length);
  options.gpu_layers = 0;
  options.type_k = options.type_v = "f32";
  options.flash_attention = "off";
  options.timelines = 1;
  const auto model = mrrope::engine::open_local(mrrope::read_model(argv[1]), options);
  const mrrope::Ladder ladder = mrrope::read_plan_file(argv[2]);
  std::ostringstream text;
  text << std::ifstream(argv[3]).rdbuf();
  std::vector<mrrope::Token> tokens = model->tokenize(text.str(), true, false);
  if (tokens.size() < length) {
    std::cerr << "the text has " << tokens.size() << " tokens only\n";
    return 2;
  }
  tokens.resize(length);
  model->use(ladder.growth() == mrrope::Growth::none
                 ? mrrope::make_ladder(ladder.rungs().front().plan, options.context)
                 : ladder);
  std::vector<double> scores = model->timeline()->append_scored(tokens);
  scores.erase(scores.begin());  // nothing predicts the first
  std::cout << nlohmann::json{{"tokens", tokens}, {"scores", scores}}.dump() << "\n";
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
