// SPDX-License-Identifier: Apache-2.0
// The chat templates of real models give the prompts that transformers gives, whose hashes
// tools/record_chats.py has recorded.
#include "base/sha256.h"
#include "engine/llama/local.h"
#include "real/models.h"
#include "support/test.h"

namespace mrrope::engine {
namespace {

using RealChat = test::RealModel;

TEST_P(RealChat, RendersAsTransformersDoes) {
  const auto golden = nlohmann::json::parse(std::ifstream(MRROPE_GOLDEN_DIR "/chats.json"));
  const nlohmann::json& recorded = golden.at("models").at(GetParam());
  const auto vocabulary = open_vocabulary(path);
  const auto prompt = [&](const nlohmann::json& conversation) {
    std::vector<ChatMessage> messages;
    for (const auto& m : conversation) messages.push_back({m.at("role"), m.at("content")});
    return vocabulary->apply_chat_template(messages);
  };
  for (const auto& [name, conversation] : golden.at("conversations").items()) {
    SCOPED_TRACE(name);
    if (!recorded.is_null()) {
      const std::string made = prompt(conversation);
      EXPECT_EQ(sha256(made), recorded.at("prompts").at(name).get<std::string>()) << made;
      continue;
    }
    // A model without instruction tuning.
    try {
      ADD_FAILURE() << "a prompt without a template: " << prompt(conversation);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::unsupported);
      EXPECT_TRUE(contains(error.what(), "has no chat template"));
    }
  }
}

MRROPE_REAL_MODELS(RealChat, testing::ValuesIn(test::kRealModels));

}  // namespace
}  // namespace mrrope::engine
