// SPDX-License-Identifier: Apache-2.0
// Rotates the queries and keys of a batch in place, then turns the keys to another plan.
#include <cstdio>
#include <vector>

#include "mrrope/error.h"
#include "mrrope/rotary.h"

int main() {
  constexpr int kQueries = 32, kKeys = 8, kHeadDim = 128, kTokens = 64;
  std::vector<float> q(kTokens * kQueries * kHeadDim, 0.5f), k(kTokens * kKeys * kHeadDim, 0.5f);
  const mrrope::Geometry llama3{.rotary_dim = kHeadDim, .base = 5e5, .train_length = 8192};
  mrrope::Extension wish;
  wish.method = "pro";
  try {
    wish.scale = 4;
    const mrrope::Plan now = mrrope::make_plan(llama3, wish);
    wish.scale = 8;
    const mrrope::Plan next = mrrope::make_plan(llama3, wish);
    mrrope::Batch batch{.head_dim = kHeadDim, .tokens = kTokens, .first_position = 30000};
    batch.queries = in_place(q.data(), kQueries, mrrope::token_major(kTokens, kQueries, kHeadDim));
    batch.keys = in_place(k.data(), kKeys, mrrope::token_major(kTokens, kKeys, kHeadDim));
    rotate(mrrope::RotaryTable(now, 0, 32768), batch);
    std::printf("key of the last token begins %.4f %.4f\n", k[63 * 1024], k[63 * 1024 + 1]);

    batch.queries.count = 0;  // the cache holds keys
    rotate(mrrope::RotaryTable::turning(now, next, 0, 32768), batch);
    std::printf("under the next plan          %.4f %.4f\n", k[63 * 1024], k[63 * 1024 + 1]);
  } catch (const mrrope::Error& e) {
    std::fprintf(stderr, "%s\n%s\n", e.what(), e.hint().c_str());
    return e.exit_code();
  }
}
