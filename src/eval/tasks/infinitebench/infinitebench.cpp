// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/infinitebench/infinitebench.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "base/files/source.h"
#include "base/text.h"
#include "eval/samples/middle_cut.h"
#include "eval/text/jsonl.h"
#include "eval/text/words.h"
#include "mrrope/error.h"

namespace mrrope::eval {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

constexpr const char* kHint = "download the file again, or correct this line";

struct Item {
  std::string id;
  std::string context;
  std::string input;
  std::vector<std::string> options;
  ordered_json answer;  // as the scorer wants it
};

std::string as_text(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// Every revision of the answer field becomes what the scorer of the task expects: a text, a number,
// a list of numbers, a list of texts, or an option with its letter. nullopt: it is empty.
std::optional<ordered_json> read_answer(const std::string& task, const json& object,
                                        const std::vector<std::string>& options,
                                        const std::string& name) {
  const auto field = object.find("answer");
  if (field == object.end()) {
    throw Error(ErrorKind::corrupt, cat(name, " has no field 'answer'"), kHint);
  }
  const auto scalar = [](const json& v) { return v.is_string() || v.is_number(); };
  json list = field->is_array() ? *field : json::array({*field});
  if (task == "math_calc") {
    if (!list.empty() && list[0].is_array()) list = json(list[0]);
    for (const json& v : list) {
      if (!v.is_number()) {
        throw Error(ErrorKind::corrupt,
                    cat(name, ": an answer is not a number but ", v.type_name()), kHint);
      }
    }
    return list.empty() ? std::nullopt : std::optional<ordered_json>(list);
  }
  for (const json& v : list) {
    if (!scalar(v)) {
      throw Error(ErrorKind::corrupt,
                  cat(name, ": an answer is neither text nor number but ", v.type_name()), kHint);
    }
    if (v.is_string() && v.get<std::string>().empty()) return std::nullopt;
  }
  if (list.empty()) return std::nullopt;
  if (task == "code_debug" || task == "longbook_choice_eng") {
    const std::string gold = as_text(list[0]);
    if (list.size() == 2 && list[1].is_string()) {
      const auto letter = list[1].get<std::string>();
      if (letter.size() == 1 && letter[0] >= 'A' && letter[0] <= 'D') return list;
    }
    const auto at = std::find(options.begin(), options.end(), gold);
    if (list.size() != 1 || at == options.end()) {
      throw Error(ErrorKind::corrupt, cat(name, ": the answer is not one of the options"), kHint);
    }
    return ordered_json::array({gold, std::string(1, char('A' + (at - options.begin())))});
  }
  if (task == "math_find") {
    if (list[0].is_number()) return list[0];
    const std::string text = as_text(list[0]);
    constexpr std::size_t kLongestNumber = 40;  // "[[[[..." is not parsed
    const json number = text.size() <= kLongestNumber ? json::parse(text, nullptr, false) : json();
    if (!number.is_number()) {
      throw Error(ErrorKind::corrupt, cat(name, ": the answer is not a number"), kHint);
    }
    return number;
  }
  const bool many = task == "longbook_qa_eng" || task == "longbook_qa_chn" ||
                    task == "longdialogue_qa_eng" || task == "longbook_sum_eng";
  if (!many) return ordered_json(as_text(list[0]));
  ordered_json texts = ordered_json::array();
  for (const json& v : list) texts.push_back(as_text(v));
  return texts;
}

Item read_item(const std::string& task, const json& object, const std::string& name,
               bool& answered) {
  Item item;
  const auto id = object.find("id");
  if (id == object.end() || !(id->is_string() || id->is_number_integer())) {
    throw Error(ErrorKind::corrupt, cat(name, " has no field 'id'"), kHint);
  }
  item.id = as_text(*id);
  item.context = text_field(object, object.contains("content") ? "content" : "context", name);
  if (object.contains("input")) item.input = text_field(object, "input", name);
  const auto options = object.find("options");
  if (options != object.end() && options->is_array()) {
    for (const json& option : *options) item.options.push_back(as_text(option));
  }
  const bool choice = task == "code_debug" || task == "longbook_choice_eng";
  if (choice && item.options.size() != 4) {
    throw Error(ErrorKind::corrupt, cat(name, " has ", item.options.size(), " options, not 4"),
                kHint);
  }
  const auto answer = read_answer(task, object, item.options, name);
  answered = answer.has_value();
  if (answered) item.answer = *answer;
  return item;
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

std::string lower_ascii(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? char(c + 32) : c;
  return text;
}

// func_12(-3): as the official code finds it.
std::string function_call(const std::string& input) {
  for (std::size_t at = input.find("func_"); at != std::string::npos;
       at = input.find("func_", at + 1)) {
    std::size_t end = at + 5;
    const auto digits = [&] {
      const std::size_t begin = end;
      while (end < input.size() && input[end] >= '0' && input[end] <= '9') ++end;
      return end > begin;
    };
    if (!digits() || end >= input.size() || input[end] != '(') continue;
    ++end;
    if (end < input.size() && input[end] == '-') ++end;
    if (!digits() || end >= input.size() || input[end] != ')') continue;
    return input.substr(at, end + 1 - at);
  }
  return {};
}

}  // namespace

const std::vector<InfiniteTask>& infinite_tasks() {
  static const std::vector<InfiniteTask> tasks = {{"passkey", 6, true, true},
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
  return tasks;
}

std::vector<InfiniteTask> chosen_tasks(const InfiniteOptions& options, bool generated) {
  std::vector<InfiniteTask> chosen;
  std::string names;
  std::set<std::string> wanted(options.tasks.begin(), options.tasks.end());
  for (const InfiniteTask& task : infinite_tasks()) {
    if (generated && !task.generated) continue;
    names += cat(names.empty() ? "" : ", ", task.name);
    const bool usual = generated ? task.generated : task.paper;
    if (options.tasks.empty() ? usual : wanted.erase(task.name) > 0) chosen.push_back(task);
  }
  if (!wanted.empty()) {
    throw Error(ErrorKind::usage,
                cat(generated ? "without --data there is no task '" : "InfiniteBench has no task '",
                    *wanted.begin(), "'"),
                cat("give --tasks with some of ", names));
  }
  return chosen;
}

Draft infinite_prompt(const std::string& task, const Prompts& prompts, const std::string& context,
                      const std::string& input, const std::vector<std::string>& options,
                      const std::string& name) {
  const Prompt& prompt = prompts.at("infinitebench/" + task);
  const auto missing = [&](const char* what) {
    throw Error(ErrorKind::corrupt, cat(name, ": 'input' holds no ", what), kHint);
  };
  std::string target;
  std::string call;
  if (task == "math_find") {
    target = lower_ascii(greedy_phrase(input, "The ", " of"));
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
  for (std::size_t i = 0; i < options.size() && i < 4; ++i) {
    values.emplace_back(letters[i], options[i]);
  }
  Draft draft;
  draft.body = fill(prompt.text, values);
  draft.prefix = fill(prompt.prefix, values);
  return draft;
}

SampleSuite read_infinitebench(const Tokenizer& model, const PromptFrame& frame,
                               const fs::path& folder, const InfiniteOptions& options,
                               std::vector<std::string>& notes) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    throw Error(ErrorKind::failed, cat(folder.string(), " is not a folder"),
                "give --data the folder that holds passkey.jsonl and the others");
  }
  SampleSuite suite;
  suite.task = "infinitebench";
  suite.rules = &infinitebench_rules();
  ordered_json files = ordered_json::array();
  for (const InfiniteTask& task : chosen_tasks(options, false)) {
    const fs::path file = folder / (task.name + ".jsonl");
    if (!fs::is_regular_file(file, error)) {
      throw Error(ErrorKind::failed, cat(folder.string(), " has no ", task.name, ".jsonl"),
                  "put it there, or choose other --tasks");
    }
    const std::int64_t room = options.length - task.answer_tokens;
    if (room < 64) {
      throw Error(ErrorKind::usage,
                  cat(task.name, " asks for ", task.answer_tokens, " tokens of answer, and ",
                      options.length, " leave no room for a prompt"),
                  "give a longer --ctx, or leave it out with --tasks");
    }
    auto items = std::make_shared<std::vector<Item>>();
    std::set<std::string> ids;
    std::size_t empty = 0;
    std::size_t outside = 0;
    const auto own = options.min_tokens_of.find(task.name);
    const std::int64_t min_tokens =
        own == options.min_tokens_of.end() ? options.min_tokens : own->second;
    const bool bounded = min_tokens > 0 || options.max_tokens < INT64_MAX;
    const std::string digest = read_jsonl(file, [&](const std::string& name, const json& object) {
      bool answered = false;
      Item item = read_item(task.name, object, name, answered);
      if (!ids.insert(item.id).second) {
        throw Error(ErrorKind::corrupt, cat(name, ": id ", printable(item.id), " is given twice"),
                    kHint);
      }
      const Draft draft =
          infinite_prompt(task.name, options.prompts, item.context, item.input, item.options, name);
      if (!answered) {
        ++empty;
        return;
      }
      if (bounded) {
        const auto tokens = std::int64_t(frame.tokens(frame.text(draft.body, draft.prefix)).size());
        if (tokens < min_tokens || tokens > options.max_tokens) {
          ++outside;
          return;
        }
      }
      items->push_back(std::move(item));
    });
    const std::size_t found = items->size();
    if (empty > 0) notes.push_back(cat(task.name, ": ", empty, " items without an answer skipped"));
    if (outside > 0) {
      notes.push_back(cat(task.name, ": ", outside, " items outside the token range skipped"));
    }
    if (found < options.samples) {
      notes.push_back(cat(task.name, ": ", found, " items, not ", options.samples));
    } else {
      Random random = random_for(options.seed, task.name);
      auto chosen = std::make_shared<std::vector<Item>>();
      for (const std::size_t i : choose(found, options.samples, random)) {
        chosen->push_back(std::move((*items)[i]));
      }
      items = chosen;
    }
    ordered_json chosen_ids = ordered_json::array();
    for (const Item& item : *items) chosen_ids.push_back(item.id);
    files.push_back({{"task", task.name}, {"sha256", digest}, {"ids", chosen_ids}});
    SampleSet set;
    set.task = "infinitebench/" + task.name;
    set.length = options.length;
    set.scorer = set.task;
    set.answer_tokens = task.answer_tokens;
    set.count = items->size();
    set.make = [items, &model, &frame, prompts = options.prompts, task, room](std::size_t i) {
      const Item& item = (*items)[i];
      const Draft draft =
          infinite_prompt(task.name, prompts, item.context, item.input, item.options, task.name);
      CutPrompt prompt = cut_in_the_middle(model, frame, draft.body, draft.prefix, room);
      Sample sample;
      sample.id = item.id;
      sample.text = std::move(prompt.text);
      sample.prompt = std::move(prompt.tokens);
      sample.expected = expected_texts(item.answer);
      sample.more["answer"] = item.answer;
      if (prompt.cut) {
        sample.more["truncated"] = prompt.whole - std::int64_t(sample.prompt.size());
      }
      return sample;
    };
    suite.sets.push_back(std::move(set));
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

}  // namespace mrrope::eval
