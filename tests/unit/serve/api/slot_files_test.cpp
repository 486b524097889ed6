// SPDX-License-Identifier: Apache-2.0
// Conversations saved and restored, over a small random model whose context grows.
#include <sys/stat.h>

#include "models/random_model.h"
#include "unit/serve/trial.h"

namespace mrrope::serve {
namespace {

constexpr std::int64_t kContext = 512;
constexpr int kSlots = 3;

class SlotFiles : public testing::Test {
 protected:
  SlotFiles() : file_(metadata_of("llama"), 7) {
    Model facts = read_model(file_.path());
    facts.geometry.train_length = 64;
    ServerSettings settings;
    settings.slots = kSlots;
    settings.context = kContext;
    settings.slot_folder = folder_.path();
    settings.slot_owner = {"this model", "this ladder", "f32", "f32", "3 caches"};
    trial_ = std::make_unique<LocalTrial>(facts, exact_caches_apart(kSlots, kContext),
                                          growing(facts.geometry, kContext), settings);
    service_ = std::make_unique<Service>(
        make_service(*trial_->model, trial_->ladder, renderer_, settings));
  }

  ordered_json act(const std::string& slot, const std::string& action, const std::string& name) {
    return slot_action_reply(*service_, *trial_->scheduler, slot, action,
                             name.empty() ? "{}" : ordered_json{{"filename", name}}.dump(),
                             [] { return false; });
  }
  int status(const std::string& slot, const std::string& action, const std::string& name) {
    try {
      act(slot, action, name);
    } catch (const ApiError& error) {
      EXPECT_FALSE(contains(error.what(), folder_.path().string()));
      return error.status;
    }
    return 200;
  }
  Said ask(const std::vector<Token>& prompt, std::int64_t length, bool reuse = true,
           const std::string& salt = {}) {
    return trial_->ask(prompt, length, reuse, salt);
  }

  RandomModel file_;
  test::TempFolder folder_;
  engine::ChatRenderer renderer_;
  std::unique_ptr<LocalTrial> trial_;
  std::unique_ptr<Service> service_;
};

TEST_F(SlotFiles, AConversationGoesOnOnItsRung) {
  std::vector<Token> prompt = random_words(200);
  const Said first = ask(prompt, 10);
  ASSERT_GT(first.outcome.rung, 2U);
  const ordered_json saved = act("0", "save", "chat_1.bin");
  EXPECT_EQ(saved["n_saved"], 209);  // the last token was not read
  EXPECT_EQ(saved["n_written"], std::filesystem::file_size(folder_ / "chat_1.bin"));
  EXPECT_EQ(act("0", "erase", "")["n_erased"], 209);
  EXPECT_EQ(trial_->scheduler->slots()[0].length, 0);

  prompt.insert(prompt.end(), first.tokens.begin(), first.tokens.end());
  prompt.push_back(5);
  const Said cold = ask(prompt, 40, false);
  for (int slot = 0; slot < kSlots; ++slot) act(std::to_string(slot), "erase", "");
  const ordered_json restored = act("2", "restore", "chat_1.bin");
  EXPECT_EQ(restored["n_restored"], 209);
  EXPECT_EQ(trial_->scheduler->slots()[2].length, 209);
  EXPECT_EQ(trial_->scheduler->slots()[2].rung, first.outcome.rung);
  const Said warm = ask(prompt, 40);
  EXPECT_EQ(warm.outcome.cached, 209);
  EXPECT_EQ(warm.tokens, cold.tokens);
  EXPECT_GT(warm.outcome.rung, first.outcome.rung);
}

TEST_F(SlotFiles, ASavedConversationKeepsItsSalt) {
  const std::vector<Token> prompt = random_words(60);
  ask(prompt, 2, true, "mine");
  act("0", "save", "salted");
  const auto restored = [&](const std::string& salt) {
    for (int slot = 0; slot < kSlots; ++slot) act(std::to_string(slot), "erase", "");
    ask(random_words(5), 2, true, salt);  // in slot 0
    act("0", "restore", "salted");
    return ask(prompt, 2, true, salt).outcome.cached;
  };
  EXPECT_EQ(restored("mine"), 59);
  EXPECT_EQ(restored("yours"), 0);
  EXPECT_EQ(restored(""), 0);
  // One without a salt is for those without.
  ask(prompt, 2);
  for (int slot = 0; slot < kSlots; ++slot) {
    if (trial_->scheduler->slots()[std::size_t(slot)].length > 20)
      act(std::to_string(slot), "save", "salted");
  }
  EXPECT_EQ(restored("mine"), 0);
  EXPECT_EQ(restored(""), 59);
}

TEST_F(SlotFiles, NamesAndSlotsAreChecked) {
  ask(random_words(20), 2);
  for (const char* name : {"", ".", "..", ".hidden", "-f", "../up", "a/b", "/etc/passwd", "a\\b",
                           "a b", "a\nb", "caf\xc3\xa9"}) {
    EXPECT_EQ(status("0", "save", name), 400) << name;
    EXPECT_EQ(status("0", "restore", name), 400) << name;
  }
  EXPECT_EQ(status("0", "save", std::string(200, 'a')), 400);
  for (const char* slot : {"", "3", "-1", "x", "0x", "99999999999999999999"}) {
    EXPECT_EQ(status(slot, "save", "good"), 400) << slot;
  }
  EXPECT_EQ(status("0", "delete", "good"), 400);
  EXPECT_EQ(status("0", "", "good"), 400);
  EXPECT_EQ(status("0", "restore", "missing"), 404);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  const Service without = make_service(*trial_->model, trial_->ladder, renderer_, {});
  EXPECT_THROW(
      slot_action_reply(without, *trial_->scheduler, "0", "erase", "{}", [] { return false; }),
      ApiError);
}

// A file may come from anywhere.
TEST_F(SlotFiles, ForeignFilesAreRefused) {
  ask(random_words(100), 2);
  act("0", "save", "good");
  const std::string good = test::read_file(folder_ / "good");
  const auto write = [&](const std::string& text) { test::write_file(folder_ / "bad", text); };
  write("not a session");
  EXPECT_EQ(status("1", "restore", "bad"), 400);
  EXPECT_EQ(status("1", "save", "bad"), 400);  // it is not ours to replace
  std::filesystem::create_directory(folder_ / "folder");
  EXPECT_EQ(status("1", "restore", "folder"), 400);
  ASSERT_EQ(mkfifo(folder_.file("pipe").c_str(), 0600), 0);
  EXPECT_EQ(status("1", "restore", "pipe"), 400);  // and nobody waits for its other end
  write(good.substr(0, good.size() / 2));
  EXPECT_EQ(status("1", "restore", "bad"), 400);
  std::string damaged = good;
  damaged[good.size() / 3] = char(damaged[good.size() / 3] + 1);
  write(damaged);
  EXPECT_EQ(status("1", "restore", "bad"), 400);
  std::string other = good;
  other.replace(other.find("this ladder"), 11, "that ladder");
  write(other);
  EXPECT_EQ(status("1", "restore", "bad"), 400);
  other = good;
  other.replace(other.find("3 caches"), 8, "4 caches");
  write(other);
  EXPECT_EQ(status("1", "restore", "bad"), 400);
  // Slots work on, the one that was to be filled is empty, and a good file is still good.
  EXPECT_EQ(trial_->scheduler->slots()[1].length, 0);
  EXPECT_EQ(trial_->scheduler->slots()[0].length, 101);
  EXPECT_EQ(act("1", "restore", "good")["n_restored"], 101);
  EXPECT_EQ(ask(random_words(101), 2).outcome.end, Outcome::End::length);
}

}  // namespace
}  // namespace mrrope::serve
