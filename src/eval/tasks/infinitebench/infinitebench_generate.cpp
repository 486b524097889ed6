// SPDX-License-Identifier: Apache-2.0
// Four tasks of InfiniteBench without a download: pass keys and digits in filler text, a value
// among thousands of keys, extremes of a list of numbers.
#include <algorithm>

#include "base/text.h"
#include "eval/run/method_under_test.h"
#include "eval/tasks/infinitebench/infinitebench.h"
#include "eval/text/words.h"
#include "mrrope/error.h"

namespace mrrope::eval {

using nlohmann::ordered_json;

namespace {

// Ten digits: five drawn, then five times one of them doubled, so that digits repeat.
std::string repeating_digits(Random& random) {
  std::string digits = random_digits(random, 5);
  for (int i = 0; i < 5; ++i) {
    const std::size_t at = random.below(digits.size());
    digits.insert(at, 1, digits[at]);
  }
  return digits;
}

// Evenly over the text, from its first line to its last.
std::size_t even_place(std::size_t index, std::size_t count, std::int64_t units) {
  if (count < 2) return std::size_t(units) / 2;
  return std::size_t(double(units) * double(index % count) / double(count - 1));
}

struct Made {
  std::string context, input;
  ordered_json answer;
};

Made hidden_line(const std::string& task, const std::string& noise, Random& random,
                 std::int64_t units, std::size_t place) {
  const bool key = task == "passkey";
  const std::string secret = key ? random_digits(random, 5) : repeating_digits(random);
  const std::string line =
      key ? cat("The pass key is ", secret, ". Keep it in mind: ", secret, " is the pass key.")
          : cat("The sequence of digits is ", secret, ". Keep it in mind: ", secret,
                " is the sequence of digits.");
  Made made;
  for (std::size_t i = 0; i <= std::size_t(units); ++i) {
    if (i == place) made.context += line + "\n";
    if (i < std::size_t(units)) made.context += noise + "\n";
  }
  made.input = key ? "What is the pass key?" : "What is the sequence of digits?";
  made.answer = secret;
  return made;
}

Made key_value(Random& random, std::int64_t units, std::size_t place) {
  Made made;
  made.context = "JSON data:\n{";
  std::string key;
  for (std::size_t i = 0; i < std::size_t(units); ++i) {
    const std::string k = random_uuid(random);
    const std::string v = random_uuid(random);
    made.context += cat(i > 0 ? ", \"" : "\"", k, "\": \"", v, "\"");
    if (i == std::min(place, std::size_t(units) - 1)) {
      key = k;
      made.answer = v;
    }
  }
  made.context += "}";
  made.input = cat("Key: \"", key, "\"\nThe value of this key is:");
  return made;
}

// Seven questions in turn. The range of the numbers varies, otherwise the extremes would be
// predictable.
Made extreme(Random& random, std::int64_t units, std::size_t index) {
  constexpr const char* kNames[] = {"largest",  "second largest",  "third largest",
                                    "smallest", "second smallest", "third smallest",
                                    "median"};
  const std::size_t kind = index % 7;
  const std::int64_t low = std::int64_t(random.below(30));
  const std::int64_t high = 70 + std::int64_t(random.below(30));
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < units; ++i) {
    numbers.push_back(low + std::int64_t(random.below(std::uint64_t(high - low + 1))));
  }
  Made made;
  made.context = "[";
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    made.context += cat(i > 0 ? ", " : "", numbers[i]);
  }
  made.context += "]";
  made.input = cat("The ", kNames[kind], " number of the list is:");
  // Extremes count each value once; the median counts all.
  std::vector<std::int64_t> sorted = numbers;
  std::sort(sorted.begin(), sorted.end());
  if (kind == 6) {
    const std::size_t half = sorted.size() / 2;
    const std::int64_t sum = sorted[half] + sorted[sorted.size() % 2 == 0 ? half - 1 : half];
    made.answer = sum % 2 == 0 ? ordered_json(sum / 2) : ordered_json(double(sum) / 2);
    return made;
  }
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  made.answer = kind < 3 ? sorted[sorted.size() - 1 - kind] : sorted[kind - 3];
  return made;
}

}  // namespace

SampleSuite make_infinitebench(const PromptFrame& frame, TokenCounter& counter,
                               const InfiniteOptions& options,
                               const std::vector<std::int64_t>& lengths) {
  if (options.samples < 1) {
    throw Error(ErrorKind::usage, "no sample per task", "give --samples 100");
  }
  SampleSuite suite;
  suite.task = "infinitebench";
  suite.rules = &infinitebench_rules();
  suite.settings = {{"source", "built-in generator, version 1"},
                    {"seed", options.seed},
                    {"samples", options.samples},
                    {"frame", frame.identity()},
                    {"prompts", prompts_identity(options.prompts, "infinitebench/")}};
  for (const std::int64_t length : sorted_lengths(lengths)) {
    for (const InfiniteTask& task : chosen_tasks(options, true)) {
      Drafter drafter;
      drafter.min = task.name == "math_find" ? 20 : 2;
      drafter.draft = [=, prompts = options.prompts, seed = options.seed, count = options.samples](
                          std::int64_t units, std::size_t index) {
        Random random = random_for(seed, task.name, std::uint64_t(length), index);
        const std::size_t place = even_place(index, count, units);
        const std::string& noise = prompts.at("ruler/noise").text;
        const Made made = task.name == "kv_retrieval" ? key_value(random, units, place)
                          : task.name == "math_find"
                              ? extreme(random, units, index)
                              : hidden_line(task.name, noise, random, units, place);
        Draft draft = infinite_prompt(task.name, prompts, made.context, made.input, {}, task.name);
        draft.expected = {made.answer.is_string() ? made.answer.get<std::string>()
                                                  : made.answer.dump()};
        draft.more["answer"] = made.answer;
        return draft;
      };
      suite.sets.push_back(fitted_set("infinitebench/" + task.name, length, task.answer_tokens,
                                      "infinitebench/" + task.name, options.samples,
                                      std::move(drafter), frame, counter));
    }
  }
  return suite;
}

}  // namespace mrrope::eval
