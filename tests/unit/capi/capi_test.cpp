// SPDX-License-Identifier: Apache-2.0
#include "formats/plan_file.h"
#include "mrrope/mrrope.h"
#include "mrrope/version.h"
#include "nlohmann/json.hpp"
#include "support/test.h"

namespace mrrope {
namespace {

const mrrope_geometry kLlama2 = {128, 1e4, 4096, MRROPE_HALVES};
const std::string kTinyFolder = std::string(MRROPE_GOLDEN_DIR) + "/tiny_config";

bool last_error_has(const char* part) {
  return std::string(mrrope_last_error()).find(part) != std::string::npos;
}

TEST(CApi, MakesThePlanThatTheLibraryMakes) {
  mrrope_plan* plan = nullptr;
  ASSERT_EQ(mrrope_plan_create(&kLlama2, "pro", 16, &plan), 0) << mrrope_last_error();
  Extension e{.method = "pro", .scale = 16};
  const Plan same = make_plan({.rotary_dim = 128, .base = 1e4, .train_length = 4096}, e);
  ASSERT_EQ(mrrope_plan_pairs(plan), 64u);
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(mrrope_plan_theta(plan)[i], same.theta()[i]);
    EXPECT_EQ(mrrope_plan_factor(plan)[i], same.factor()[i]);
  }
  EXPECT_EQ(mrrope_plan_attention_scale(plan), same.attention_scale());
  EXPECT_EQ(mrrope_plan_low(plan), 20);
  EXPECT_EQ(mrrope_plan_high(plan), 46);
  mrrope_plan_free(plan);
  EXPECT_STREQ(mrrope_version(), MRROPE_VERSION);
  ASSERT_EQ(mrrope_plan_create(&kLlama2, "dynamic-ntk", 4, &plan), 0) << mrrope_last_error();
  e.method = "dynamic-ntk";
  e.scale = 1;
  e.length = 4 * 4096;
  EXPECT_EQ(mrrope_plan_factor(plan)[63], make_plan(same.geometry(), e).factor()[63]);
  EXPECT_GT(mrrope_plan_factor(plan)[63], 3.9);
  mrrope_plan_free(plan);
  ASSERT_EQ(mrrope_plan_create(&kLlama2, "pro(low=5)", 4, &plan), 0) << mrrope_last_error();
  EXPECT_EQ(mrrope_plan_low(plan), 5);
  mrrope_plan_free(plan);
  EXPECT_EQ(mrrope_plan_create(&kLlama2, "elastic:pro", 4, &plan), 2);
  EXPECT_TRUE(last_error_has("more than one plan"));
}

TEST(CApi, ReadsModelsAndPlanFiles) {
  mrrope_plan* plan = nullptr;
  ASSERT_EQ(mrrope_plan_create_for_model(kTinyFolder.c_str(), "uni", 8192, &plan), 0)
      << mrrope_last_error();
  EXPECT_EQ(mrrope_plan_factor(plan)[63], 8);
  mrrope_plan_free(plan);
  // Inside the window nothing is scaled.
  ASSERT_EQ(mrrope_plan_create_for_model(kTinyFolder.c_str(), "uni", 100, &plan), 0);
  EXPECT_EQ(mrrope_plan_factor(plan)[63], 1);
  mrrope_plan_free(plan);

  const test::TempFolder folder;
  const Geometry g{.rotary_dim = 64, .base = 1e5, .train_length = 8192};
  folder.write("plan.json", plan_json(make_plan(g, {.method = "pro", .scale = 4})).dump());
  ASSERT_EQ(mrrope_plan_load(folder.file("plan.json").c_str(), &plan), 0) << mrrope_last_error();
  EXPECT_EQ(mrrope_plan_pairs(plan), 32u);
  mrrope_plan_free(plan);
  folder.write("ladder.json",
               ladder_json(make_ladder(g, mrrope::parse_method("elastic:pro"), 32768)).dump());
  EXPECT_EQ(mrrope_plan_load(folder.file("ladder.json").c_str(), &plan), 2);
  EXPECT_TRUE(last_error_has("ladder"));
}

TEST(CApi, EveryFailureIsAStatusAndAMessage) {
  mrrope_plan* plan = reinterpret_cast<mrrope_plan*>(1);
  EXPECT_EQ(mrrope_plan_create(&kLlama2, "pro", 0.5, &plan), 2);
  EXPECT_EQ(mrrope_plan_create(&kLlama2, "dynamic-ntk", 0.5, &plan), 2);
  EXPECT_EQ(plan, nullptr);
  EXPECT_TRUE(last_error_has("0.5"));
  EXPECT_EQ(mrrope_plan_create(&kLlama2, "pro", std::nan(""), &plan), 2);
  EXPECT_EQ(mrrope_plan_create(&kLlama2, "magic", 2, &plan), 2);
  EXPECT_EQ(mrrope_plan_create(&kLlama2, nullptr, 2, &plan), 2);
  EXPECT_EQ(mrrope_plan_create(nullptr, "pro", 2, &plan), 2);
  EXPECT_EQ(mrrope_plan_create(&kLlama2, "pro", 2, nullptr), 2);
  mrrope_geometry odd = kLlama2;
  odd.pairing = 7;
  EXPECT_EQ(mrrope_plan_create(&odd, "pro", 2, &plan), 2);
  EXPECT_TRUE(last_error_has("7"));
  EXPECT_EQ(mrrope_plan_create_for_model("/absent", "pro", 4096, &plan), 1);
  EXPECT_EQ(mrrope_plan_create_for_model(nullptr, "pro", 4096, &plan), 2);
  EXPECT_EQ(mrrope_plan_create_for_model(kTinyFolder.c_str(), "pro", 0, &plan), 2);
  EXPECT_EQ(mrrope_plan_load("/absent", &plan), 1);
  ASSERT_EQ(mrrope_plan_create(&kLlama2, "pro", 2, &plan), 0);
  EXPECT_STREQ(mrrope_last_error(), "");
  mrrope_plan_free(plan);
  mrrope_plan_free(nullptr);
}

const mrrope_geometry kTiny = {4, 1e4, 4096, MRROPE_INTERLEAVED};

struct Handles {
  mrrope_plan* plan = nullptr;
  mrrope_table* table = nullptr;
  mrrope_workers* workers = nullptr;
  ~Handles() {
    mrrope_table_free(table);
    mrrope_workers_free(workers);
    mrrope_plan_free(plan);
  }
};

mrrope_batch batch_of(std::vector<float>& keys, int64_t tokens) {
  mrrope_batch batch{};
  batch.element = MRROPE_F32;
  batch.head_dim = 4;
  batch.sequences = 1;
  batch.tokens = tokens;
  batch.keys = {1, keys.data(), {0, 4, 0}, keys.data(), {0, 4, 0}};
  return batch;
}

TEST(CapiRotate, RotatesAloneInPartsAndWithWorkers) {
  Handles h;
  ASSERT_EQ(mrrope_plan_create(&kTiny, "none", 1, &h.plan), 0);
  ASSERT_EQ(mrrope_table_create(h.plan, 0, 2, MRROPE_F32, &h.table), 0);
  ASSERT_EQ(mrrope_table_grow(h.table, 3), 0);
  ASSERT_EQ(mrrope_workers_create(2, &h.workers), 0);
  for (int way = 0; way < 3; ++way) {
    std::vector<float> keys = {1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0};
    mrrope_batch batch = batch_of(keys, 3);
    if (way == 2) {
      ASSERT_EQ(mrrope_rotate_part(h.table, &batch, 0, 2), 0);
      ASSERT_EQ(mrrope_rotate_part(h.table, &batch, 1, 2), 0);
    } else {
      ASSERT_EQ(mrrope_rotate(h.table, &batch, way == 0 ? nullptr : h.workers), 0);
    }
    for (int t = 0; t < 3; ++t) {
      EXPECT_FLOAT_EQ(keys[4 * t], float(std::cos(t)));
      EXPECT_FLOAT_EQ(keys[4 * t + 1], float(std::sin(t)));
    }
    batch.inverse = 1;
    ASSERT_EQ(mrrope_rotate(h.table, &batch, nullptr), 0);
    for (int t = 0; t < 3; ++t) EXPECT_NEAR(keys[4 * t], 1, 1e-6);
  }
}

TEST(CapiRotate, TurnsFromOnePlanToAnother) {
  Handles a, b;
  ASSERT_EQ(mrrope_plan_create(&kTiny, "none", 1, &a.plan), 0);
  ASSERT_EQ(mrrope_plan_create(&kTiny, "pi", 2, &b.plan), 0);
  ASSERT_EQ(mrrope_table_create_turning(a.plan, b.plan, 0, 2, MRROPE_F32, &a.table), 0);
  std::vector<float> keys = {1, 0, 0, 0, float(std::cos(1)), float(std::sin(1)), 0, 0};
  const mrrope_batch batch = batch_of(keys, 2);
  ASSERT_EQ(mrrope_rotate(a.table, &batch, nullptr), 0);
  EXPECT_NEAR(keys[4], std::cos(0.5), 1e-6);
  EXPECT_NEAR(keys[5], std::sin(0.5), 1e-6);
}

TEST(CapiRotate, ErrorsAreStatusAndMessage) {
  Handles h;
  ASSERT_EQ(mrrope_plan_create(&kTiny, "none", 1, &h.plan), 0);
  EXPECT_EQ(mrrope_table_create(nullptr, 0, 2, MRROPE_F32, &h.table), 2);
  EXPECT_TRUE(last_error_has("plan is null"));
  EXPECT_EQ(mrrope_table_create(h.plan, 0, 2, MRROPE_F32, nullptr), 2);
  EXPECT_TRUE(last_error_has("out pointer"));
  EXPECT_EQ(mrrope_table_create(h.plan, 0, 2, 7, &h.table), 2);
  EXPECT_TRUE(last_error_has("element 7"));
  EXPECT_EQ(mrrope_table_create(h.plan, 2, 0, MRROPE_F16, &h.table), 2);
  EXPECT_EQ(h.table, nullptr);
  EXPECT_EQ(mrrope_table_grow(nullptr, 5), 2);
  EXPECT_EQ(mrrope_workers_create(0, &h.workers), 2);
  EXPECT_TRUE(last_error_has("0 threads"));
  ASSERT_EQ(mrrope_table_create(h.plan, 0, 2, MRROPE_F32, &h.table), 0);
  std::vector<float> keys(8, 1.0f);
  mrrope_batch batch = batch_of(keys, 2);
  EXPECT_EQ(mrrope_rotate(nullptr, &batch, nullptr), 2);
  EXPECT_EQ(mrrope_rotate(h.table, nullptr, nullptr), 2);
  EXPECT_TRUE(last_error_has("batch is null"));
  batch.first_position = 1;
  EXPECT_EQ(mrrope_rotate(h.table, &batch, nullptr), 2);
  EXPECT_TRUE(last_error_has("table of 0 to 1"));
  EXPECT_EQ(mrrope_rotate_part(h.table, &batch, 3, 2), 2);
  batch = batch_of(keys, 2);
  batch.keys.to = nullptr;
  EXPECT_EQ(mrrope_rotate(h.table, &batch, nullptr), 2);
  EXPECT_EQ(keys, std::vector<float>(8, 1.0f));
}

}  // namespace
}  // namespace mrrope
