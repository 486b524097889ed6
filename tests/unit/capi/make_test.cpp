// SPDX-License-Identifier: Apache-2.0
// Requests and answers as JSON.

#include "formats/plan_file.h"
#include "mrrope/mrrope.h"
#include "nlohmann/json.hpp"
#include "support/test.h"

namespace mrrope {
namespace {

const std::string kTinyFolder = std::string(MRROPE_GOLDEN_DIR) + "/tiny_config";
const Geometry kGeometry{.rotary_dim = 64, .base = 1e5, .train_length = 8192};

json request(const char* method, const json& more) {
  json out = {{"geometry", {{"rotary_dim", 64}, {"base", 1e5}, {"train_length", 8192}}},
              {"method", method}};
  out.update(more);
  return out;
}

// The answer, or "CODE message|hint".
std::string answer(const std::string& text) {
  char* out = nullptr;
  const int code = mrrope_make(text.c_str(), &out);
  if (code != 0) {
    EXPECT_EQ(out, nullptr);
    return std::to_string(code) + " " + mrrope_last_message() + "|" + mrrope_last_hint();
  }
  std::string copy = out;
  mrrope_text_free(out);
  return copy;
}

TEST(CApiMake, AnswersAreThoseOfTheLibrary) {
  Extension e{.method = "pro", .scale = 4};
  EXPECT_EQ(answer(request("pro", {{"ctx", 32768}}).dump()),
            plan_json(make_plan(kGeometry, e)).dump());
  EXPECT_EQ(answer(request("PRO", {{"scale", 4}}).dump()),
            plan_json(make_plan(kGeometry, e)).dump());
  EXPECT_EQ(answer(request("elastic:pro", {{"ctx", 32768}, {"rung_step", 1.5}}).dump()),
            ladder_json(make_ladder(kGeometry, parse_method("elastic:pro(rung_step=1.5)"), 32768))
                .dump());
  const MethodSpec far = parse_method("far:pro(near=1000,near_step=1000)");
  EXPECT_EQ(answer(request("far:pro", {{"ctx", 32768}, {"near", 1000}}).dump()),
            ladder_json(make_ladder(kGeometry, far, 32768)).dump());
  e.scale = 5;
  e.parameters.low = 3;
  EXPECT_EQ(answer(request("pro", {{"ctx", 32768}, {"headroom", 1.25}, {"low", 3}}).dump()),
            plan_json(make_plan(kGeometry, e)).dump());
  Geometry phi = kGeometry;
  phi.long_factor.assign(32, 4);
  phi.long_length = 65536;
  json two_lists = request("auto", {{"ctx", 65536}});
  two_lists["geometry"]["long_factor"] = phi.long_factor;
  two_lists["geometry"]["long_length"] = phi.long_length;
  EXPECT_EQ(answer(two_lists.dump()),
            ladder_json(make_ladder(phi, parse_method("elastic:vendor"), 65536)).dump());
  const json of_model =
      json::parse(answer(json{{"model", kTinyFolder}, {"method", "uni"}, {"ctx", 8192}}.dump()));
  EXPECT_EQ(of_model["factor"].back(), 8);
}

TEST(CApiMake, RefusesNullPointers) {
  EXPECT_EQ(mrrope_make(nullptr, nullptr), 2);
  EXPECT_EQ(mrrope_make("{}", nullptr), 2);
}

TEST(CApiMake, PlansOfTextsAndFiles) {
  const std::string ladder = answer(request("elastic:uni", {{"ctx", 32768}}).dump());
  const json rungs = json::parse(ladder)["rungs"];
  mrrope_plan* plan = nullptr;
  for (std::size_t i = 0; i < rungs.size(); ++i) {
    ASSERT_EQ(mrrope_plan_parse(ladder.c_str(), std::int64_t(i), &plan), 0) << mrrope_last_error();
    EXPECT_EQ(mrrope_plan_factor(plan)[31], rungs[i]["factor"][31].get<double>());
    mrrope_plan_free(plan);
  }
  EXPECT_EQ(mrrope_plan_parse(ladder.c_str(), std::int64_t(rungs.size()), &plan), 2);
  EXPECT_EQ(mrrope_plan_parse(ladder.c_str(), -1, &plan), 2);
  EXPECT_EQ(mrrope_plan_parse("{}", 0, &plan), 4);
  EXPECT_EQ(mrrope_plan_parse(nullptr, 0, &plan), 2);

  const test::TempFolder folder;
  folder.write("ladder.json", ladder);
  char* out = nullptr;
  ASSERT_EQ(mrrope_load(folder.file("ladder.json").c_str(), &out), 0) << mrrope_last_error();
  EXPECT_EQ(out, ladder);
  mrrope_text_free(out);
  EXPECT_EQ(mrrope_load("/absent", &out), 1);
  mrrope_text_free(nullptr);
}

// The rungs of the library's own ladder, numbered as the listed ones are.
TEST(CApiMake, PlacesOfALadder) {
  for (const char* method : {"elastic:pro", "far:pi", "far:pro"}) {
    const std::string text = answer(request(method, {{"ctx", 40000}}).dump());
    const json listed = json::parse(text)["rungs"];
    const Ladder ladder = ladder_from_json(json::parse(text));
    char* out = nullptr;
    ASSERT_EQ(mrrope_ladder_places(text.c_str(), &out), 0) << mrrope_last_error();
    const json places = json::parse(out);
    mrrope_text_free(out);
    ASSERT_EQ(places.size(), ladder.rungs().size()) << method;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const Rung& rung = ladder.rungs()[i];
      const json& named = listed[places[i]["rung"].get<std::size_t>()];
      EXPECT_EQ(places[i]["length"], rung.length);
      EXPECT_EQ(places[i]["border"], rung.border);
      EXPECT_EQ(places[i]["shift"], rung.shift);
      EXPECT_EQ(places[i]["sharpness"], rung.sharpness);
      EXPECT_EQ(named["factor"].back(), rung.plan.factor().back()) << method << " " << i;
      EXPECT_GE(named["length"], rung.length);
    }
    EXPECT_EQ(places.size() > listed.size(), ladder.near().has_value()) << method;
  }
  char* out = nullptr;
  EXPECT_EQ(mrrope_ladder_places(answer(request("pro", {{"scale", 2}}).dump()).c_str(), &out), 2);
  EXPECT_STREQ(mrrope_last_message(), "this is one plan, not a ladder");
  EXPECT_EQ(mrrope_ladder_places("{}", &out), 4);
  EXPECT_EQ(mrrope_ladder_places(nullptr, &out), 2);
  EXPECT_EQ(mrrope_ladder_places("{}", nullptr), 2);
}

// Nothing changes there, and what was asked for is still named.
TEST(CApiMake, LaddersThatEndInsideTheWindowCanBeRead) {
  for (const char* method : {"elastic:pro", "elastic:dynamic-ntk", "far:pi", "far:pro"}) {
    const std::string text = answer(request(method, {{"ctx", 4096}}).dump());
    EXPECT_EQ(json::parse(text)["method"], method);
    EXPECT_EQ(ladder_json(ladder_from_json(json::parse(text))).dump(), text);
  }
}

TEST(CApiMake, InspectsModels) {
  char* out = nullptr;
  ASSERT_EQ(mrrope_inspect(kTinyFolder.c_str(), 4096, &out), 0) << mrrope_last_error();
  const json facts = json::parse(out);
  mrrope_text_free(out);
  EXPECT_EQ(facts["geometry"]["rotary_dim"], 128);
  EXPECT_EQ(facts["layer_list"].size(), facts["layers"].get<std::size_t>());
  EXPECT_EQ(facts["ctx"], 4096);
  ASSERT_EQ(mrrope_inspect(kTinyFolder.c_str(), 0, &out), 0);
  EXPECT_EQ(json::parse(out)["ctx"], facts["geometry"]["train_length"]);
  mrrope_text_free(out);
  EXPECT_EQ(mrrope_inspect(kTinyFolder.c_str(), -1, &out), 2);
  EXPECT_EQ(mrrope_inspect("/absent", 0, &out), 1);
}

}  // namespace
}  // namespace mrrope
