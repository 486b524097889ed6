// SPDX-License-Identifier: Apache-2.0
// The shapes of answers: OpenAI's, which llama-server and vLLM share, that of its responses, that
// of llama-server's own /completion, and ollama's.
#pragma once

#include <memory>
#include <string_view>

#include "serve/api/format.h"

namespace mrrope::serve {

std::unique_ptr<AnswerFormat> make_openai_format(const AnswerFacts& facts,
                                                 const CompletionRequest& request);
std::unique_ptr<AnswerFormat> make_llama_format(const AnswerFacts& facts,
                                                const CompletionRequest& request);
std::unique_ptr<AnswerFormat> make_responses_format(const AnswerFacts& facts,
                                                    const CompletionRequest& request);
std::unique_ptr<AnswerFormat> make_ollama_format(const AnswerFacts& facts,
                                                 const CompletionRequest& request);

}  // namespace mrrope::serve
