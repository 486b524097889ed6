// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "mrrope/mrrope.h"

namespace mrrope {
namespace {

const mrrope_geometry kTiny = {4, 1e4, 4096, MRROPE_INTERLEAVED};

bool last_error_has(const char* part) {
  return std::string(mrrope_last_error()).find(part) != std::string::npos;
}

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
    if (way == 0) {
      ASSERT_EQ(mrrope_rotate(h.table, &batch, nullptr), 0);
    }
    if (way == 1) {
      ASSERT_EQ(mrrope_rotate(h.table, &batch, h.workers), 0);
    }
    if (way == 2) {
      ASSERT_EQ(mrrope_rotate_part(h.table, &batch, 0, 2), 0);
    }
    if (way == 2) {
      ASSERT_EQ(mrrope_rotate_part(h.table, &batch, 1, 2), 0);
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
