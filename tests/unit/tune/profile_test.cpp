// SPDX-License-Identifier: Apache-2.0
#include "tune/profile.h"

#include "formats/plan_file.h"
#include "support/test.h"

namespace mrrope::tune {
namespace {

class ProfileTest : public testing::Test {
 protected:
  ProfileTest() {
    setenv("XDG_CACHE_HOME", (temp_ / "cache").c_str(), 1);
    test::write_file(temp_ / "model.gguf", "weights");
    model_.path = temp_ / "model.gguf";
    model_.files = {model_.path};
    model_.weight_bytes = 7;
    model_.geometry = {.rotary_dim = 128, .base = 10000, .train_length = 1024};
  }
  ~ProfileTest() override { unsetenv("XDG_CACHE_HOME"); }

  Profile profile(std::int64_t ctx, const char* method) const {
    Profile p{model_digest(model_.files), 1024, ctx, parse_method(method)};
    p.measured = nlohmann::ordered_json::object();
    return p;
  }
  void keep(const Profile& p) const { test::write_file(profile_place(model_, p), profile_text(p)); }
  std::string kept(std::int64_t ctx, bool grows = true) {
    damaged_.clear();
    const auto p = kept_profile(model_, ctx, grows, damaged_);
    return p ? to_string(p->method) : "";
  }

  test::TempFolder temp_;
  Model model_;
  std::vector<std::string> damaged_;
};

TEST_F(ProfileTest, IsReadAsItWasWritten) {
  const Profile p = profile(8192, "far:pi(near=L/8,headroom=1.25,sharpen=0.5)");
  keep(p);
  const Profile again = read_profile(profile_place(model_, p));
  EXPECT_EQ(again.model, p.model);
  EXPECT_EQ(again.window, 1024);
  EXPECT_EQ(again.ctx, 8192);
  EXPECT_EQ(again.method, p.method);
}

TEST_F(ProfileTest, TheShortestContextThatIsLongEnoughCounts) {
  EXPECT_EQ(kept(2048), "") << "there is no folder yet";
  keep(profile(8192, "far:pi(near=L/8)"));
  keep(profile(4096, "far:pi(near=L/4)"));
  keep(profile(16384, "pro(headroom=1.25)"));
  EXPECT_EQ(kept(2048), "far:pi(near=L/4)");
  EXPECT_EQ(kept(4097), "far:pi(near=L/8)");
  EXPECT_EQ(kept(8193), "") << "the static one is for exports";
  EXPECT_EQ(kept(8193, false), "pro(headroom=1.25)");
  model_.geometry.train_length = 2048;
  EXPECT_EQ(kept(4096), "") << "measured with another window";
}

TEST_F(ProfileTest, AnotherFileOfTheSameSizeIsAnotherModel) {
  const Profile p = profile(8192, "far:pi(near=L/8)");
  keep(p);
  const std::string before = p.model;
  test::write_file(temp_ / "model.gguf", "WEIGHTS");
  EXPECT_EQ(kept(2048), "");
  EXPECT_TRUE(damaged_.empty());
  const Profile given = read_profile(profile_place(model_, p));
  EXPECT_ERROR(check_profile(given, model_, 2048, true), usage, before, model_digest(model_.files));
}

TEST_F(ProfileTest, GivenOnesMustFit) {
  Profile p = profile(8192, "far:pi(near=L/8)");
  check_profile(p, model_, 8192, true);
  const auto refused = [&](const char* why, std::int64_t ctx, bool grows) {
    EXPECT_ERROR(check_profile(p, model_, ctx, grows), usage, why);
  };
  refused("holds up to 8192 tokens", 8193, true);
  refused("no file can hold it", 8192, false);
  p.window = 512;
  refused("a window of 512", 8192, true);
}

TEST_F(ProfileTest, DamagedOnesAreNamedAndNotUsed) {
  const Profile good = profile(8192, "far:pi(near=L/8)");
  const auto json = nlohmann::json::parse(profile_text(good));
  const std::string path = (temp_ / "cache/mrrope/profiles/7-x.json").string();
  for (const char* change :
       {R"({"profile": 2})", R"({"model": "sha256:12"})", R"({"model": 3})", R"({"window": 0})",
        R"({"ctx": 1024})", R"({"ctx": 1e300})", R"({"method": "auto"})", R"({"method": "x"})",
        R"x({"method": "far:pi(near=-1)"})x", R"({"measured": []})", R"({"more": 1})"}) {
    auto changed = json;
    changed.update(nlohmann::json::parse(change));
    test::write_file(path, changed.dump());
    EXPECT_ERROR(read_profile(path), corrupt, "7-x.json");
    EXPECT_EQ(kept(2048), "") << change;
    EXPECT_EQ(damaged_.size(), 1u) << change;
  }
  for (const std::string& text : {std::string("{"), std::string(2 << 20, ' ')}) {
    test::write_file(path, text);
    EXPECT_ERROR(read_profile(path), corrupt, "");
  }
  std::filesystem::rename(path, temp_ / "cache/mrrope/profiles/8-x.json");
  EXPECT_EQ(kept(2048), "");
  EXPECT_TRUE(damaged_.empty()) << "of a model of another size: not read";
}

}  // namespace
}  // namespace mrrope::tune
