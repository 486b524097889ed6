// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/graph/inject.h"

#include <ggml-alloc.h>
#include <ggml-backend.h>

#include "support/test.h"

namespace mrrope::engine {

namespace {

constexpr int kRow = 8;
constexpr int kHeads = 2;
constexpr int kCells = 16;

// The part of a graph that rotates keys and stores them.
struct Stores {
  LlamaPtr<ggml_context> context{ggml_init({1 << 20, nullptr, false})};
  ggml_tensor* cache = ggml_new_tensor_2d(context.get(), GGML_TYPE_F16, kHeads* kRow, kCells);
  ggml_tensor* rotated = nullptr;
  std::vector<LlamaPtr<ggml_context>> contexts;
  std::vector<LlamaPtr<ggml_backend_buffer>> buffers;

  // In a buffer of their own, which is how decodes read them.
  ggml_tensor* cells(const std::vector<std::int64_t>& values) {
    contexts.emplace_back(ggml_init({ggml_tensor_overhead(), nullptr, true}));
    ggml_context* own = contexts.back().get();
    ggml_tensor* list = ggml_new_tensor_1d(own, GGML_TYPE_I64, std::int64_t(values.size()));
    buffers.emplace_back(
        ggml_backend_alloc_ctx_tensors_from_buft(own, ggml_backend_cpu_buffer_type()));
    ggml_backend_tensor_set(list, values.data(), 0, ggml_nbytes(list));
    return list;
  }
  ggml_tensor* rows(std::int64_t tokens) {
    return ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, kHeads * kRow, tokens);
  }
  // Stores the rotation's own result.
  ggml_tensor* store(const std::vector<std::int64_t>& values) {
    const auto tokens = std::int64_t(values.size());
    rotated = ggml_rope_ext(context.get(),
                            ggml_reshape_3d(context.get(), rows(tokens), kRow, kHeads, tokens),
                            ggml_new_tensor_1d(context.get(), GGML_TYPE_I32, tokens), nullptr, kRow,
                            0, 0, 10000, 1, 0, 1, 0, 0);
    ggml_set_name(rotated, "Kcur-0");
    return ggml_set_rows(context.get(), cache,
                         ggml_reshape_2d(context.get(), rotated, kHeads * kRow, tokens),
                         cells(values));
  }
};

Rotation keys() {
  Rotation r;
  r.name = "Kcur-0";
  r.rotary_dim = r.row = kRow;
  r.heads = kHeads;
  r.base = 10000;
  r.takes_plan = r.is_key = true;
  return r;
}

void decode(Injector& injector, Stores& stores, ggml_tensor* store, int tokens) {
  const std::vector<std::int32_t> positions(std::size_t(tokens), 0);
  injector.begin(0, positions, false);
  Injector::callback(stores.rotated, true, &injector);
  if (store != nullptr) Injector::callback(store, true, &injector);
  injector.finish();
}

}  // namespace

// Where a batch is computed on a GPU and the cache is in host memory, ggml stores a copy.
TEST(Injector, KnowsTheCellsOfKeysThatWereCopied) {
  Stores stores;
  Injector injector({keys()});
  injector.add({{kNoEdit}, {}});
  injector.watch_keys(true);
  decode(injector, stores, stores.store({3}), 1);
  ASSERT_EQ(injector.key_caches().size(), 1U);
  EXPECT_EQ(injector.key_caches()[0].tensor, stores.cache);
  EXPECT_EQ(injector.cells(), std::vector<std::int32_t>{3});

  ggml_tensor* copied =
      ggml_set_rows(stores.context.get(), stores.cache, stores.rows(2), stores.cells({4, 7}));
  decode(injector, stores, copied, 2);
  EXPECT_EQ(injector.cells(), (std::vector<std::int32_t>{4, 7}));
  EXPECT_EQ(injector.key_caches().size(), 1U);

  // Keys that were stored unseen could not be turned later.
  EXPECT_THROW(decode(injector, stores, nullptr, 2), Error);
}

}  // namespace mrrope::engine
