// SPDX-License-Identifier: Apache-2.0
#include "engine/session/session.h"

#include "engine/llama/local.h"
#include "support/test.h"

namespace mrrope::engine {
namespace {

namespace fs = std::filesystem;

const SessionOwner kOwner = {"sha256:1", "plan", "f16", "f16"};

class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    LocalOptions options;
    options.context = 256;
    options.timelines = 1;
    options.threads = 1;
    options.gpu_layers = 0;
    model_ = open_local(read_model(MRROPE_TINY_MODEL), options);
  }

  void save(const std::string& text) {
    const auto timeline = model_->timeline();
    timeline->append(model_->tokenize(text, true, false));
    save_session(path_, kOwner, *timeline, {{"user", text}});
  }
  std::string bytes() const { return test::read_file(path_); }

  test::TempFolder folder_;
  fs::path path_ = folder_ / "session";
  std::unique_ptr<TimelineModel> model_;
};

TEST_F(SessionTest, RestoresTokensAndMessages) {
  EXPECT_FALSE(session_exists(path_));
  save("Theorem 1.");
  EXPECT_TRUE(session_exists(path_));
  const Session back = load_session(path_, kOwner, *model_);
  EXPECT_EQ(back.timeline->tokens(), model_->tokenize("Theorem 1.", true, false));
  ASSERT_EQ(back.messages.size(), 1U);
  EXPECT_EQ(back.messages[0].role, "user");
  EXPECT_EQ(back.messages[0].content, "Theorem 1.");
}

TEST_F(SessionTest, IsOneFile) {
  save("Theorem 1.");
  save("Theorem 2.");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 1);
  EXPECT_EQ(load_session(path_, kOwner, *model_).messages[0].content, "Theorem 2.");
}

TEST_F(SessionTest, KeepsTheOldFileWhenSavingFails) {
  save("Theorem 1.");
  struct Broken : Timeline {
    std::int64_t length() const override { return 0; }
    std::size_t rung() const override { return 0; }
    std::vector<double> read(std::span<const Token>, std::span<const std::size_t>,
                             const LogitObserver&, bool) override {
      return {};
    }
    std::unique_ptr<Timeline> fork() override { return nullptr; }
    void truncate(std::int64_t) override {}
    Generation generate(const GenerateOptions&) override { return {}; }
    std::vector<Token> tokens() const override { return {}; }
    void save(const fs::path& path) const override {
      test::write_file(path, "half");
      throw Error(ErrorKind::failed, "disk full");
    }
  };
  const std::string before = bytes();
  EXPECT_THROW(save_session(path_, kOwner, Broken(), {}), Error);
  EXPECT_EQ(bytes(), before);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 1);
}

TEST_F(SessionTest, NeverReplacesOtherFiles) {
  test::write_file(path_, "a text of mine");
  EXPECT_ERROR(session_exists(path_), usage, "is not a session");
  EXPECT_ERROR(save("Theorem 1."), usage, "is not a session");
  EXPECT_EQ(bytes(), "a text of mine");
  EXPECT_ERROR(session_exists(folder_.path()), usage, "is not a session");
}

TEST_F(SessionTest, BelongsToOneModelAndPlan) {
  save("Theorem 1.");
  SessionOwner other = kOwner;
  other.plan = "another";
  EXPECT_ERROR(load_session(path_, other, *model_), usage, "was saved with plan", "another");
}

TEST_F(SessionTest, DetectsDamage) {
  save("Theorem 1.");
  const std::string good = bytes();
  const auto try_bytes = [&](const std::string& bad) {
    test::write_file(path_, bad);
    EXPECT_ERROR(load_session(path_, kOwner, *model_), corrupt, "session");
  };
  for (std::size_t i = 0; i < good.size(); i += good.size() / 40 + 1) {
    std::string bad = good;
    bad[i] = char(bad[i] ^ 0x10);
    try_bytes(bad);
  }
  try_bytes(good.substr(1));
  try_bytes(good.substr(0, good.size() / 2));
  try_bytes("");
}

// A checksum does not stop a forger, so the engine must survive any state.
TEST_F(SessionTest, EngineSurvivesATruncatedState) {
  const fs::path state = folder_ / "state";
  {
    const auto timeline = model_->timeline();
    timeline->append(model_->tokenize("Theorem 1. Let", true, false));
    timeline->save(state);
  }
  const std::string good = test::read_file(state);
  for (std::size_t size = 0; size < good.size(); size += size < 256 ? 1 : good.size() / 20) {
    test::write_file(state, good.substr(0, size));
    EXPECT_THROW(model_->restore(state, 0), Error) << size;
  }
  test::write_file(state, good);
  EXPECT_EQ(model_->restore(state, 0)->tokens(), model_->tokenize("Theorem 1. Let", true, false));
}

}  // namespace
}  // namespace mrrope::engine
