// SPDX-License-Identifier: Apache-2.0
// Needles on the bundled model: what prefix sharing saves, and that it changes no answer.
#include "eval/tasks/needle/needle.h"

#include "engine/llama/local.h"
#include "support/test.h"

namespace mrrope::eval {
namespace {

std::vector<Document> project_texts() { return read_documents({MRROPE_TEXTS}, {}).documents; }

std::unique_ptr<TimelineModel> tiny(std::int64_t context) {
  engine::LocalOptions options;
  options.context = context;
  options.threads = 1;  // two threads that wait for each other are slow on a busy machine
  options.gpu_layers = 0;
  options.type_k = options.type_v = "f32";
  options.timelines = 3;
  return open_local(read_model(MRROPE_TINY_MODEL), options);
}

TEST(NeedleOnTheTinyModel, EightLengthsShareTwoThirdsOfTheirTokens) {
  const auto model = tiny(512);
  NeedleOptions options;
  options.form = make_form(*model, "planted", {}, 0);
  options.depths = usual_depths();
  for (std::int64_t k = 1; k <= 8; ++k) options.lengths.push_back(1024 * k);
  for (const Haystack& haystack : make_haystacks(*model, project_texts(), 8192, 3)) {
    const NeedleTree tree = plan_tree(*model, options, haystack.tokens, 0);
    const double share = double(tree.tokens) / double(tree.naive_tokens);
    std::cout << haystack.id << ": " << tree.tokens << " of " << tree.naive_tokens << " tokens, "
              << 100 * share << " %\n";
    EXPECT_LE(share, 0.36);
  }
}

TEST(NeedleOnTheTinyModel, SharedPrefixesDoNotChangeAnswers) {
  const auto model = tiny(1200);
  Extension e{.method = "pro", .scale = 2};
  const std::vector<MethodUnderTest> methods = {
      {"pro", make_ladder(make_plan(model->facts().geometry, e), 1200)}};
  NeedleOptions options;
  options.lengths = {300, 600, 900, 1200};
  options.depths = {0, 50, 100};
  options.form = make_form(*model, "planted", {}, 0);
  const auto cells = [&](bool share) {
    options.share = share;
    RunFolder folder;
    Progress progress;
    run_needle(*model, methods, project_texts(), options, folder, progress);
    return folder.units().at(0).at("cells");
  };
  const auto shared = cells(true);
  const auto alone = cells(false);
  ASSERT_EQ(shared.size(), 12u);
  int same = 0;
  int ties = 0;
  int found = 0;
  for (std::size_t i = 0; i < shared.size(); ++i) {
    EXPECT_EQ(shared[i]["position"], alone[i]["position"]);
    EXPECT_EQ(shared[i]["answer"], alone[i]["answer"]);
    const double gap = std::min(shared[i]["gap"].get<double>(), alone[i]["gap"].get<double>());
    ties += gap < kTie ? 1 : 0;
    if (shared[i]["text"] == alone[i]["text"]) {
      ++same;
    } else {
      EXPECT_LT(gap, kTie) << shared[i] << "\n" << alone[i];
    }
    const auto text = shared[i]["text"].get<std::string>();
    found += text.find(shared[i]["answer"].get<std::string>()) != std::string::npos ? 1 : 0;
  }
  std::cout << same << " of " << shared.size() << " answers are the same, " << ties
            << " hang on a tie, " << found << " are right\n";
  EXPECT_GE(same, 11);
  EXPECT_GE(found, 6);  // answers, not noise
}

}  // namespace
}  // namespace mrrope::eval
