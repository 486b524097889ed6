// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/infinitebench/infinitebench.h"

#include <set>

#include "base/files/source.h"
#include "base/text.h"
#include "eval/text/documents.h"
#include "eval/text/word_list.h"

namespace mrrope::eval {

namespace fs = std::filesystem;
using nlohmann::json;
namespace {

// All twelve; the six of the paper first.
const InfiniteTask kTasks[] = {{"passkey", 6, true, true},
                               {"number_string", 12, true, true},
                               {"kv_retrieval", 50, true, true},
                               {"code_debug", 5, true},
                               {"math_find", 3, true, true},
                               {"longdialogue_qa_eng", 40, true},
                               {"code_run", 5},
                               {"math_calc", 30000},
                               {"longbook_choice_eng", 40},
                               {"longbook_qa_eng", 40},
                               {"longbook_qa_chn", 40},
                               {"longbook_sum_eng", 1200}};

std::string as_text(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

bool has_options(const std::string& task) {
  return task == "code_debug" || task == "longbook_choice_eng";
}

// Every revision of the answer field becomes what the scorer of the task expects: a text, a number,
// a list of numbers, a list of texts, or an option with its letter. nullopt: it is empty.
std::optional<ordered_json> read_answer(const std::string& task, const json& object,
                                        const std::vector<std::string>& options,
                                        const std::string& name) {
  if (!object.contains("answer")) damaged_data(name + " has no field 'answer'");
  json list = object["answer"].is_array() ? object["answer"] : json::array({object["answer"]});
  if (task == "math_calc") {
    if (!list.empty() && list[0].is_array()) list = json(list[0]);
    for (const json& v : list) {
      if (v.is_number()) continue;
      damaged_data(cat(name, ": an answer is not a number but ", v.type_name()));
    }
    return list.empty() ? std::nullopt : std::optional<ordered_json>(list);
  }
  for (const json& v : list) {
    const bool good = v.is_string() || v.is_number();
    if (!good)
      damaged_data(cat(name, ": an answer is neither text nor number but ", v.type_name()));
    if (v == "") return std::nullopt;
  }
  if (list.empty()) return std::nullopt;
  if (has_options(task)) {
    const std::string gold = as_text(list[0]);
    if (list.size() == 2 && has(json({"A", "B", "C", "D"}), list[1])) return list;
    const auto at = std::find(options.begin(), options.end(), gold);
    if (list.size() != 1 || at == options.end()) {
      damaged_data(name + ": the answer is not one of the options");
    }
    return ordered_json::array({gold, std::string(1, char('A' + (at - options.begin())))});
  }
  if (task == "math_find") {
    if (list[0].is_number()) return list[0];
    const std::string text = as_text(list[0]);
    constexpr std::size_t kLongestNumber = 40;  // "[[[[..." is not parsed
    const json number = text.size() <= kLongestNumber ? json::parse(text, nullptr, false) : json();
    if (!number.is_number()) damaged_data(name + ": the answer is not a number");
    return number;
  }
  const bool many = task.starts_with("longbook_") || task == "longdialogue_qa_eng";
  if (!many) return ordered_json(as_text(list[0]));
  return ordered_json(mapped(list, as_text));
}

std::vector<std::string> expected_texts(const ordered_json& answer) {
  std::vector<std::string> list;
  if (!answer.is_array()) return {as_text(json(answer))};
  // Lists of thousands of numbers are not repeated; the record has the answer itself.
  for (std::size_t i = 0; i < answer.size() && i < 8; ++i) list.push_back(as_text(json(answer[i])));
  return list;
}

// The text between the first `start` and the last `end` after it, both included.
std::string greedy_phrase(const std::string& text, const std::string& start,
                          const std::string& end) {
  const std::size_t from = text.find(start);
  if (from == std::string::npos) return {};
  const std::size_t line = std::min(text.find('\n', from), text.size());
  const std::size_t to = text.substr(0, line).rfind(end);
  if (to == std::string::npos || to <= from + start.size()) return {};
  return text.substr(from, to + end.size() - from);
}

// func_12(-3): as the official code finds it.
std::string function_call(const std::string& input) {
  const auto after_digits = [&](std::size_t from) {
    return std::min(input.find_first_not_of("0123456789", from), input.size());
  };
  for (std::size_t at = input.find("func_"); at != std::string::npos;
       at = input.find("func_", at + 1)) {
    const std::size_t open = after_digits(at + 5);
    if (open == at + 5 || input[open] != '(') continue;
    const std::size_t number = open + (input[open + 1] == '-' ? 2 : 1);
    const std::size_t close = after_digits(number);
    if (close > number && input[close] == ')') return input.substr(at, close + 1 - at);
  }
  return {};
}

// The words of a task, filled in; the phrases that the official code takes out of `input` included.
Draft infinite_prompt(const std::string& task, const Prompts& prompts, const std::string& context,
                      const std::string& input, const std::vector<std::string>& options,
                      const std::string& name) {
  const Prompt& prompt = prompts.at("infinitebench/" + task);
  const auto missing = [&](const char* what) {
    damaged_data(cat(name, ": 'input' holds no ", what));
  };
  std::string target, call;
  if (task == "math_find") {
    target = lower_case(greedy_phrase(input, "The ", " of"));
    if (target.empty()) missing("phrase of the form The ... of");
    target.resize(target.size() - 3);
  }
  if (task == "code_run") {
    call = function_call(input);
    if (call.empty()) missing("call of the form func_1(2)");
  }
  Fill values = {{"context", context},
                 {"input", input},
                 {"question", input},
                 {"target", target},
                 {"call", call}};
  const std::string_view letters[] = {"A", "B", "C", "D"};
  for (std::size_t i = 0; i < options.size() && i < 4; ++i)
    values.emplace_back(letters[i], options[i]);
  return {fill(prompt.text, values), fill(prompt.prefix, values), {}};
}

// Where it has no answer, nothing is expected.
Draft read_draft(const std::string& task, const Prompts& prompts, const json& object,
                 const std::string& name) {
  const auto id = object.find("id");
  if (id == object.end() || !(id->is_string() || id->is_number_integer())) {
    damaged_data(name + " has no field 'id'");
  }
  const std::string context =
      text_field(object, object.contains("content") ? "content" : "context", name);
  const std::string input = object.contains("input") ? text_field(object, "input", name) : "";
  std::vector<std::string> options;
  if (const auto list = object.find("options"); list != object.end() && list->is_array()) {
    options = mapped(*list, as_text);
  }
  const bool complete = !has_options(task) || options.size() == 4;
  if (!complete) damaged_data(cat(name, " has ", options.size(), " options, not 4"));
  const auto answer = read_answer(task, object, options, name);
  Draft draft = infinite_prompt(task, prompts, context, input, options, name);
  draft.id = as_text(*id);
  if (!answer) return draft;
  draft.expected = expected_texts(*answer);
  draft.more["answer"] = *answer;
  return draft;
}

SampleSet set_of(const InfiniteTask& task, std::int64_t length) {
  return {.task = "infinitebench/" + task.name,
          .length = length,
          .scorer = "infinitebench/" + task.name,
          .answer_tokens = task.answer_tokens};
}

// Four tasks without a download: pass keys and digits in filler text, a value among thousands of
// keys, extremes of a list of numbers.

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
  const char* what = key ? "pass key" : "sequence of digits";
  const std::string line =
      cat("The ", what, " is ", secret, ". Keep it in mind: ", secret, " is the ", what, ".");
  Made made;
  for (std::size_t i = 0; i <= std::size_t(units); ++i) {
    if (i == place) made.context += line + "\n";
    if (i < std::size_t(units)) made.context += noise + "\n";
  }
  made.input = cat("What is the ", what, "?");
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
  made.context = cat("[", joined(mapped(numbers, cat<std::int64_t>), ", "), "]");
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

std::vector<InfiniteTask> chosen_tasks(const InfiniteOptions& options, bool generated) {
  std::vector<InfiniteTask> chosen;
  std::vector<std::string> names;
  std::set<std::string> wanted(options.tasks.begin(), options.tasks.end());
  for (const InfiniteTask& task : kTasks) {
    if (generated && !task.generated) continue;
    names.push_back(task.name);
    const bool usual = generated ? task.generated : task.paper;
    if (options.tasks.empty() ? usual : wanted.erase(task.name) > 0) chosen.push_back(task);
  }
  if (!wanted.empty()) {
    refuse(cat(generated ? "without --data there is no task '" : "InfiniteBench has no task '",
               *wanted.begin(), "'"),
           cat("give --tasks with some of ", joined(names, ", ")));
  }
  return chosen;
}

SampleSuite read_infinitebench(const PromptFrame& frame, const fs::path& folder,
                               const InfiniteOptions& options, std::vector<std::string>& notes) {
  fail_if(!folder_exists(folder), cat(folder.string(), " is not a folder"),
          "give --data the folder that holds passkey.jsonl and the others");
  SampleSuite suite{"infinitebench", &infinitebench_rules()};
  ordered_json files = ordered_json::array();
  for (const InfiniteTask& task : chosen_tasks(options, false)) {
    const fs::path file = folder / (task.name + ".jsonl");
    fail_if(!file_exists(file), cat(folder.string(), " has no ", task.name, ".jsonl"),
            "put it there, or choose other --tasks");
    refuse_if(options.length - task.answer_tokens < 64,
              cat(task.name, " asks for ", task.answer_tokens, " tokens of answer, and ",
                  options.length, " leave no room for a prompt"),
              "give a longer --ctx, or leave it out with --tasks");
    std::vector<Draft> drafts;
    std::set<std::string> ids;
    std::size_t empty = 0;
    std::size_t outside = 0;
    const auto own = options.min_tokens_of.find(task.name);
    const std::int64_t min_tokens =
        own == options.min_tokens_of.end() ? options.min_tokens : own->second;
    const auto in_range = [&](const Draft& draft) {
      if (min_tokens == 0 && options.max_tokens == INT64_MAX) return true;
      const auto tokens = std::int64_t(frame.tokens(frame.text(draft.body, draft.prefix)).size());
      return tokens >= min_tokens && tokens <= options.max_tokens;
    };
    const std::string digest = read_jsonl(file, [&](const std::string& name, const json& object) {
      Draft draft = read_draft(task.name, options.prompts, object, name);
      const bool fresh = ids.insert(draft.id).second;
      if (!fresh) damaged_data(cat(name, ": id ", printable(draft.id), " is given twice"));
      if (draft.expected.empty()) {
        ++empty;
      } else if (!in_range(draft)) {
        ++outside;
      } else {
        drafts.push_back(std::move(draft));
      }
    });
    if (empty > 0) notes.push_back(cat(task.name, ": ", empty, " items without an answer skipped"));
    if (outside > 0) {
      notes.push_back(cat(task.name, ": ", outside, " items outside the token range skipped"));
    }
    if (drafts.size() < options.samples) {
      notes.push_back(cat(task.name, ": ", drafts.size(), " items, not ", options.samples));
    }
    ordered_json chosen;
    suite.sets.push_back(cut_set(set_of(task, options.length), std::move(drafts), options.samples,
                                 random_for(options.seed, task.name), frame, chosen));
    files.push_back({{"task", task.name}, {"sha256", digest}, {"ids", chosen}});
  }
  suite.settings = {{"source", "files given with --data"},
                    {"seed", options.seed},
                    {"samples", options.samples},
                    {"files", files},
                    {"frame", frame.identity()},
                    {"prompts", prompts_identity(options.prompts, "infinitebench/")}};
  if (options.min_tokens > 0) suite.settings["min_tokens"] = options.min_tokens;
  if (!options.min_tokens_of.empty()) suite.settings["min_tokens_of"] = options.min_tokens_of;
  if (options.max_tokens < INT64_MAX) suite.settings["max_tokens"] = options.max_tokens;
  return suite;
}

SampleSuite make_infinitebench(const PromptFrame& frame, TokenCounter& counter,
                               const InfiniteOptions& options,
                               const std::vector<std::int64_t>& lengths) {
  SampleSuite suite{"infinitebench", &infinitebench_rules()};
  suite.settings = {{"source", "built-in generator, version 1"},
                    {"seed", options.seed},
                    {"samples", options.samples},
                    {"frame", frame.identity()},
                    {"prompts", prompts_identity(options.prompts, "infinitebench/")}};
  for (const std::int64_t length : sorted_lengths(lengths)) {
    for (const InfiniteTask& task : chosen_tasks(options, true)) {
      Drafter drafter;
      drafter.min = task.name == "math_find" ? 20 : 2;
      drafter.draft = [task, prompts = options.prompts, count = options.samples](
                          std::int64_t units, std::size_t index, Random& random) {
        const std::size_t place = even_place(index, count, units);
        const std::string& noise = prompts.at("ruler/noise").text;
        const Made made = task.name == "kv_retrieval" ? key_value(random, units, place)
                          : task.name == "math_find"
                              ? extreme(random, units, index)
                              : hidden_line(task.name, noise, random, units, place);
        Draft draft = infinite_prompt(task.name, prompts, made.context, made.input, {}, task.name);
        draft.expected = expected_texts(made.answer);
        draft.more["answer"] = made.answer;
        return draft;
      };
      SampleSet set = set_of(task, length);
      set.count = options.samples;
      suite.sets.push_back(
          fitted_set(std::move(set), options.seed, std::move(drafter), frame, counter));
    }
  }
  return suite;
}

}  // namespace mrrope::eval
