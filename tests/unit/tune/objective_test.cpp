// SPDX-License-Identifier: Apache-2.0
#include "support/scripted.h"
#include "support/test.h"
#include "tune/search.h"

namespace mrrope::tune {
namespace {

// Throws when it is put under a ladder.
class Throwing : public ScriptedModel {
 public:
  explicit Throwing(std::function<void()> action) : ScriptedModel({}), action_(std::move(action)) {}
  void use(const Ladder&) override { action_(); }

 private:
  std::function<void()> action_;
};

Measured measured_with(std::function<void()> action) {
  Throwing model(std::move(action));
  const Ladder ladder = make_ladder(make_plan(model.facts().geometry, Extension{}), 128);
  return measure(model, ladder, SearchText{}, 64, [](std::int64_t) {});
}

TEST(Measure, NanLogitsAreDataWhateverTheMessage) {
  const Measured m = measured_with([] { throw NanLogits("overflow in layer 3"); });
  EXPECT_EQ(m.failed, "overflow in layer 3");
}

TEST(Measure, AnyOtherFailureIsAnErrorWhateverTheMessage) {
  EXPECT_THROW(
      measured_with([] { throw Error(ErrorKind::failed, "cannot read /models/NaN.gguf"); }), Error);
}

}  // namespace
}  // namespace mrrope::tune
