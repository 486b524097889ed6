// SPDX-License-Identifier: Apache-2.0
// Greedy answers of real models: those of stock llama.cpp, token for token, where no plan changes
// the model.
#include <llama.h>

#include <algorithm>

#include "engine/llama/loader.h"
#include "engine/llama/local.h"
#include "real/models.h"

namespace mrrope::engine {
namespace {

constexpr int kContext = 512;
constexpr int kAnswer = 32;
constexpr int kThreads = 2;

const std::vector<std::string> kPrompts = {
    "The rotary position embedding turns every pair of a query by an angle that",
    "def fibonacci(n):\n    \"\"\"The n-th number of the sequence.\"\"\"\n",
    "Question: Why is the sky blue?\nAnswer:",
};

struct Answer {
  std::vector<Token> prompt;
  std::vector<Token> tokens;  // up to the end of the text
};

// By libllama alone, as its own examples use it.
std::vector<Answer> stock_answers(const std::filesystem::path& file) {
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  llama_backend_init();
  llama_model_params model_params = llama_model_default_params();
  model_params.n_gpu_layers = 0;
  const LlamaPtr<llama_model> model(llama_model_load_from_file(file.c_str(), model_params));
  llama_context_params params = llama_context_default_params();
  params.n_ctx = kContext;
  params.n_batch = params.n_ubatch = kContext;
  params.n_threads = params.n_threads_batch = kThreads;
  const LlamaPtr<llama_context> context(llama_init_from_model(model.get(), params));
  const LlamaPtr<llama_sampler> greedy(llama_sampler_init_greedy());
  const llama_vocab* vocab = llama_model_get_vocab(model.get());
  std::vector<Answer> answers;
  for (const std::string& text : kPrompts) {
    Answer answer;
    answer.prompt.resize(text.size() + 8);
    answer.prompt.resize(std::size_t(
        std::max(0, llama_tokenize(vocab, text.data(), int(text.size()), answer.prompt.data(),
                                   int(answer.prompt.size()), true, true))));
    llama_memory_clear(llama_get_memory(context.get()), true);
    std::vector<Token> next = answer.prompt;
    while (answer.tokens.size() < kAnswer) {
      EXPECT_EQ(llama_decode(context.get(), llama_batch_get_one(next.data(), int(next.size()))), 0);
      const llama_token token = llama_sampler_sample(greedy.get(), context.get(), -1);
      if (llama_vocab_is_eog(vocab, token)) break;
      answer.tokens.push_back(token);
      next = {token};
    }
    answers.push_back(std::move(answer));
  }
  return answers;
}

using RealGreedy = test::RealModel;

TEST_P(RealGreedy, EqualsStockLlamaCpp) {
  const std::vector<Answer> stock = stock_answers(path);
  LocalOptions options;
  options.context = kContext;
  options.gpu_layers = 0;
  options.threads = kThreads;
  options.timelines = 1;
  const auto model = open_local(read_model(path), options);
  const Geometry& geometry = model->facts().geometry;
  const auto answer = [&](const std::vector<Token>& prompt) {
    const auto timeline = model->timeline();
    timeline->append(prompt);
    GenerateOptions generate;
    generate.max_tokens = kAnswer;
    return timeline->generate(generate);
  };
  // The ladder changes nothing inside the window, and these texts stay there.
  std::size_t longest = 0;
  for (const Ladder& ladder :
       {make_ladder(make_plan(geometry, {}), kContext),
        make_ladder(geometry, parse_method("elastic:pro"), geometry.train_length * 4)}) {
    SCOPED_TRACE(ladder.elastic() ? "elastic:pro" : "none");
    model->use(ladder);
    for (std::size_t i = 0; i < kPrompts.size(); ++i) {
      SCOPED_TRACE(kPrompts[i]);
      const std::vector<Token> prompt = model->tokenize(kPrompts[i], true, true);
      EXPECT_EQ(prompt, stock[i].prompt);
      const Generation ours = answer(prompt);
      EXPECT_EQ(ours.tokens, stock[i].tokens) << ours.text;
      EXPECT_EQ(ours.finish, stock[i].tokens.size() == kAnswer ? "length" : "stop");
      longest = std::max(longest, ours.tokens.size());
    }
  }
  EXPECT_EQ(longest, std::size_t(kAnswer)) << "the answers are too short to say much";

  // The comparison can fail: a plan that changes every pair gives other answers, even to prompts so
  // short.
  model->use(make_ladder(make_plan(geometry, {.method = "pi", .scale = 64}), kContext));
  EXPECT_TRUE(std::any_of(stock.begin(), stock.end(), [&](const Answer& unchanged) {
    return answer(unchanged.prompt).tokens != unchanged.tokens;
  }));
}

MRROPE_REAL_MODELS(RealGreedy, testing::ValuesIn(test::kRealModels));

}  // namespace
}  // namespace mrrope::engine
