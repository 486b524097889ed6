// SPDX-License-Identifier: Apache-2.0
#include "eval/run/method_under_test.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "formats/digest.h"
#include "formats/plan_file.h"
#include "mrrope/error.h"

namespace mrrope::eval {

using nlohmann::ordered_json;

ordered_json Target::identity() const {
  if (prompts_ != nullptr) {
    return {{"name", prompts_->name()},
            {"architecture", "served"},
            {"train_length", prompts_->train_length()}};
  }
  const Model& facts = timelines_->facts();
  return {{"name", facts.name},
          {"architecture", facts.architecture},
          {"train_length", facts.geometry.train_length}};
}

bool MethodUnderTest::untouched() const {
  if (!ladder || ladder->elastic()) return false;
  const Plan& plan = ladder->rungs().front().plan;
  return plan.attention_scale() == 1 &&
         std::all_of(plan.factor().begin(), plan.factor().end(), [](double f) { return f == 1; });
}

bool same_model(const MethodUnderTest& a, const MethodUnderTest& b, std::int64_t longest) {
  if (!a.ladder || !b.ladder) return false;
  for (std::int64_t length = 0; length < longest;) {
    const Rung& one = a.ladder->rungs()[a.ladder->rung_at(length + 1)];
    const Rung& other = b.ladder->rungs()[b.ladder->rung_at(length + 1)];
    const bool near = one.border > 0 || other.border > 0;
    if (!one.plan.same_numbers(other.plan) || one.border != other.border ||
        one.shift != other.shift || (near && a.ladder->near() != b.ladder->near())) {
      return false;
    }
    length = std::min(one.length, other.length);
  }
  return true;
}

std::optional<std::size_t> same_before(const std::vector<MethodUnderTest>& methods, std::size_t m,
                                       std::int64_t longest) {
  for (std::size_t i = 0; i < m; ++i) {
    if (same_model(methods[i], methods[m], longest)) return i;
  }
  return std::nullopt;
}

void note_same_models(RunFolder& folder, const std::vector<MethodUnderTest>& methods,
                      const std::vector<std::int64_t>& lengths) {
  std::set<std::string> notes;
  for (const std::int64_t longest : lengths) {
    std::map<std::size_t, std::string> names;
    for (std::size_t m = 0; m < methods.size(); ++m) {
      const auto first = same_before(methods, m, longest);
      if (first) names[*first] += cat(names[*first].empty() ? "" : ", ", methods[m].name);
    }
    std::string text;
    for (const auto& [first, list] : names) {
      text += cat(text.empty() ? "" : "; ", "the same model as ", methods[first].name, " up to ",
                  length_text(longest), ", so measured once: ", list);
    }
    if (!text.empty()) notes.insert(text);
  }
  for (const std::string& text : notes) folder.add_note(text);
}

MethodUnderTest served_method() { return {"served", std::nullopt}; }

std::vector<std::int64_t> sorted_lengths(std::vector<std::int64_t> lengths) {
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  return lengths;
}

void check_names(const std::vector<MethodUnderTest>& methods) {
  std::set<std::string> names;
  for (const MethodUnderTest& method : methods) {
    if (names.insert(method.name).second) continue;
    throw Error(ErrorKind::usage, cat("method ", method.name, " is given twice"),
                "name each method once");
  }
}

void check_methods(const Target& target, const std::vector<MethodUnderTest>& methods,
                   const std::vector<std::int64_t>& lengths) {
  const auto refuse = [](const std::string& message, const std::string& hint) {
    throw Error(ErrorKind::usage, message, hint);
  };
  if (methods.empty()) refuse("no method to evaluate", "give --method none,yarn,pro");
  if (lengths.empty()) refuse("no length to evaluate", "give --lengths 1k,2k,4k");
  const std::int64_t longest = lengths.back();
  if (longest > target.context_length()) {
    refuse(cat("length ", longest, " does not fit the context of ", target.context_length()),
           cat("give --ctx ", longest));
  }
  check_names(methods);
  for (const MethodUnderTest& method : methods) {
    if (method.ladder && longest > method.ladder->longest()) {
      refuse(cat("length ", longest, " is beyond the last rung of ", method.name, ", ",
                 method.ladder->longest()),
             cat("give --ctx ", longest, "; a plan file must be made again for that length"));
    }
  }
}

ordered_json methods_identity(const std::vector<MethodUnderTest>& methods) {
  ordered_json list = ordered_json::array();
  for (const MethodUnderTest& method : methods) {
    const Ladder* ladder = method.ladder ? &*method.ladder : nullptr;
    const Plan* plan = ladder != nullptr ? &ladder->rungs().back().plan : nullptr;
    list.push_back({{"method", method.name},
                    {"plan", ladder != nullptr ? ladder_digest(*ladder) : "served"},
                    {"scale", plan != nullptr ? ordered_json(plan->extension().scale) : nullptr},
                    {"untouched", method.untouched()},
                    {"numbers", ladder == nullptr   ? ordered_json()
                                : ladder->elastic() ? ladder_json(*ladder)
                                                    : plan_json(*plan)}});
  }
  return list;
}

ordered_json run_identity(const std::string& task, const Target& target,
                          const std::vector<MethodUnderTest>& methods, ordered_json settings) {
  return {{"task", task},
          {"model", target.identity()},
          {"engine", target.prompts() != nullptr ? target.prompts()->description()
                                                 : target.timelines()->description()},
          {"settings", std::move(settings)},
          {"methods", methods_identity(methods)}};
}

}  // namespace mrrope::eval
