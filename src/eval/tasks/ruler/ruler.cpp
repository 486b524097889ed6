// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/ruler/ruler.h"

#include <set>

#include "base/json.h"
#include "base/text.h"
#include "eval/score/answer_text.h"
#include "eval/text/documents.h"

namespace mrrope::eval {

namespace fs = std::filesystem;
namespace {

void check(const RulerOptions& options) {
  constexpr std::int64_t kMaxTokens = 1 << 20;
  const std::int64_t longest = *std::max_element(options.lengths.begin(), options.lengths.end());
  refuse_if(longest > kMaxTokens, cat("RULER does not go to ", longest, " tokens"),
            "give lengths up to 1m");
}

SampleSet set_of(const RulerTask& task, std::int64_t length, std::size_t count) {
  return {.task = "ruler/" + task.name,
          .length = length,
          .scorer = task.scorer,
          .answer_tokens = task.answer_tokens,
          .count = count};
}

ordered_json file_identity(const fs::path& path) {
  if (path.empty()) return "built-in";
  return {{"file", path.filename().string()}, {"sha256", file_digest(path)}};
}

// The file with the samples of one task and length; empty if there is none.
fs::path data_file(const fs::path& folder, const std::string& task, std::int64_t length,
                   bool only_length) {
  std::vector<fs::path> places = {folder / cat(length), folder / cat(length) / "data"};
  if (only_length) places.insert(places.end(), {folder, folder / "data"});
  for (const fs::path& place : places) {
    for (const fs::path& file : {place / task / "validation.jsonl", place / (task + ".jsonl")}) {
      if (file_exists(file)) return file;
    }
  }
  return {};
}

Draft read_draft(const nlohmann::json& object, const std::string& name) {
  constexpr const char* kHint = "give files made by RULER's scripts/data/prepare.py";
  Draft draft;
  draft.body = text_field(object, "input", name);
  if (object.contains("answer_prefix")) draft.prefix = text_field(object, "answer_prefix", name);
  const auto outputs = object.find("outputs");
  throw_if(outputs == object.end() || !outputs->is_array(), ErrorKind::corrupt,
           cat(name, " has no list 'outputs'"), kHint);
  for (const auto& output : *outputs) {
    throw_if(!output.is_string() && !output.is_number_integer(), ErrorKind::corrupt,
             cat(name, ": an answer is not text but ", output.type_name()), kHint);
    draft.expected.push_back(output.is_string() ? output.get<std::string>() : output.dump());
  }
  return draft;
}

// RULER reads control characters as line ends, at both ends of an answer too.
std::u32string ruler_text(std::string_view text) {
  std::u32string characters = to_characters(text);
  for (char32_t& c : characters) {
    if (c < 0x20) c = '\n';
  }
  return lower(std::u32string(stripped(characters)));
}

// A score of at least this counts as reaching a length: that of Llama-2-7B-chat at 4K.
constexpr double kRulerThreshold = 0.856;

constexpr const char* kAll = "string_match_all";
constexpr const char* kPart = "string_match_part";

// The share of expected strings that occur, ignoring case; or whether one of them does.
double string_match(const std::string& scorer, const std::vector<std::string>& expected,
                    std::string_view text) {
  const std::u32string said = ruler_text(text);
  const auto found = std::count_if(expected.begin(), expected.end(), [&](const std::string& e) {
    return said.find(lower(to_characters(e))) != said.npos;
  });
  if (scorer == kPart) return found > 0 ? 1 : 0;
  return expected.empty() ? 0 : double(found) / double(expected.size());
}

std::vector<Score> grade(const std::string& scorer, const ordered_json& record) {
  if (scorer != kAll && scorer != kPart) unknown_scorer(scorer);
  return {{scorer, string_match(scorer, record.at("expected").get<std::vector<std::string>>(),
                                record.at("text").get<std::string>())}};
}

// One of them, or all.
std::string right_answer(const std::string& scorer, const std::vector<std::string>& expected) {
  return scorer == kPart ? expected.front() : joined(expected, ", ");
}

bool decided(const std::string& scorer, const std::vector<std::string>& expected,
             std::string_view text) {
  return string_match(scorer, expected, text) == 1;
}

void summarize(ResultTable& results, const std::string& row) {
  ordered_json list = ordered_json::array();
  std::vector<TextRow> table = {{"method"}};
  for (const std::int64_t n : results.lengths) table[0].push_back(length_text(n));
  table[0].insert(table[0].end(), {"avg", "wavg inc", "wavg dec", "effective"});
  for (const MethodRow& method : results.methods) {
    std::int64_t effective = 0;  // the longest length at or above the threshold
    double sum = 0;
    double up = 0;  // longer lengths count more: weights 1, 2, ...
    double down = 0;
    const std::size_t k = results.lengths.size();
    TextRow line = {method.method};
    for (std::size_t i = 0; i < k; ++i) {
      const ResultRow* score =
          results.find(method.method, results.lengths[i], results.metric, {}, row);
      const double v =
          score != nullptr ? score->estimate.value : std::numeric_limits<double>::quiet_NaN();
      if (v >= kRulerThreshold) effective = results.lengths[i];
      sum += v;
      up += v * double(i + 1);
      down += v * double(k - i);
      line.push_back(score != nullptr ? percent_score(score->estimate) : "-");
    }
    const double weights = double(k) * double(k + 1) / 2;
    const double averages[] = {sum / double(k), up / weights, down / weights};
    for (const double v : averages) line.push_back(std::isfinite(v) ? fixed(100 * v, 1) : "-");
    line.push_back(effective > 0 ? length_text(effective) : "none");
    table.push_back(std::move(line));
    list.push_back({{"method", method.method},
                    {"effective_length", effective},
                    {"threshold", kRulerThreshold},
                    {"average", json_or_null(averages[0])},
                    {"weighted_increasing", json_or_null(averages[1])},
                    {"weighted_decreasing", json_or_null(averages[2])}});
  }
  results.more["ruler"] = list;
  results.summary = cat("\nMean over tasks by length (effective: the longest at ",
                        fixed(100 * kRulerThreshold, 1), " or above):\n", aligned(table));
}

}  // namespace

std::vector<RulerTask> chosen_tasks(const RulerOptions& options) {
  if (options.tasks.empty()) return ruler_tasks();
  const std::set<std::string> wanted(options.tasks.begin(), options.tasks.end());
  std::set<std::string> unknown = wanted;
  std::vector<RulerTask> chosen;
  for (const RulerTask& task : ruler_tasks()) {
    const std::string family = task.name.substr(0, task.name.find('_'));
    if (wanted.count(task.name) + wanted.count(family) > 0) chosen.push_back(task);
    unknown.erase(task.name);
    unknown.erase(family);
  }
  if (unknown.empty()) return chosen;
  refuse(cat("RULER has no task '", *unknown.begin(), "'"),
         cat("give --tasks with some of ", joined(mapped(ruler_tasks(), &RulerTask::name), ", "),
             "; niah and qa select all tasks of that kind"));
}

const std::vector<RulerTask>& ruler_tasks() {
  static const std::vector<RulerTask> tasks = {
      {"niah_single_1", "noise", "words", "number"},
      {"niah_single_2", "essay", "words", "number"},
      {"niah_single_3", "essay", "words", "uuid"},
      {"niah_multikey_1", "essay", "words", "number", 4},
      {"niah_multikey_2", "needle", "words", "number"},
      {"niah_multikey_3", "needle", "uuids", "uuid"},
      {"niah_multivalue", "essay", "words", "number", 1, 4},
      {"niah_multiquery", "essay", "words", "number", 4, 1, 4},
      {"vt", "", "", "", 0, 0, 0, 30},
      {"cwe", "", "", "", 0, 0, 0, 120},
      {"fwe", "", "", "", 0, 0, 0, 50},
      {"qa_1", "", "", "", 0, 0, 0, 32, "string_match_part"},
      {"qa_2", "", "", "", 0, 0, 0, 32, "string_match_part"}};
  return tasks;
}

SampleSuite make_ruler(const PromptFrame& frame, TokenCounter& counter,
                       const RulerOptions& options) {
  check(options);
  SampleSuite suite{"ruler", &ruler_rules()};
  suite.settings = {{"source", "built-in generator, version 1"},
                    {"seed", options.seed},
                    {"samples", options.samples},
                    {"squad", file_identity(options.squad)},
                    {"hotpotqa", file_identity(options.hotpot)},
                    {"frame", frame.identity()},
                    {"prompts", prompts_identity(options.prompts, "ruler/")}};
  QaCorpora corpora;
  if (options.questions > 1) suite.settings["questions"] = options.questions;
  for (const std::int64_t length : sorted_lengths(options.lengths)) {
    for (const RulerTask& task : chosen_tasks(options)) {
      refuse_if(options.questions > 1 && !task.multikey(),
                cat("--questions ", options.questions, " is for tasks where one of several ",
                    "keys is asked for, not for ", task.name),
                "give --tasks with some of niah_multikey_1, niah_multikey_2, niah_multikey_3");
      suite.sets.push_back(fitted_set(set_of(task, length, options.samples * options.questions),
                                      options.seed, ruler_drafter(task, options, length, corpora),
                                      frame, counter));
    }
  }
  return suite;
}

SampleSuite read_ruler(const PromptFrame& frame, const fs::path& folder,
                       const RulerOptions& options, std::vector<std::string>& notes) {
  check(options);
  refuse_if(options.questions > 1, "--questions is for the built-in samples, not for --data",
            "leave out one of them");
  fail_if(!folder_exists(folder), cat(folder.string(), " is not a folder"),
          "give --data the folder that RULER's scripts wrote to");
  SampleSuite suite{"ruler", &ruler_rules()};
  ordered_json files = ordered_json::array();
  std::vector<std::string> missing;
  for (const std::int64_t length : sorted_lengths(options.lengths)) {
    for (const RulerTask& task : chosen_tasks(options)) {
      const fs::path file = data_file(folder, task.name, length, options.lengths.size() == 1);
      if (file.empty()) {
        missing.push_back(cat(task.name, " at ", length));
        continue;
      }
      const auto samples = std::make_shared<std::vector<Draft>>();
      std::size_t unanswered = 0;
      const std::string digest = read_jsonl(file, [&](const std::string& name, const auto& line) {
        if (samples->size() >= options.samples) return;
        Draft draft = read_draft(line, name);
        const auto& expected = draft.expected;
        if (expected.empty() || std::count(expected.begin(), expected.end(), "") > 0) {
          ++unanswered;
        } else {
          samples->push_back(std::move(draft));
        }
      });
      if (unanswered > 0) {
        notes.push_back(cat(unanswered, " samples of ", task.name, " at ", length,
                            " have an empty answer and are skipped"));
      }
      if (samples->size() < options.samples) {
        notes.push_back(cat(task.name, " at ", length, " has ", samples->size(), " samples, not ",
                            options.samples));
      }
      files.push_back({{"task", task.name}, {"length", length}, {"sha256", digest}});
      SampleSet set = set_of(task, length, samples->size());
      set.make = [samples, &frame, length, name = set.task](std::size_t i) {
        const Draft& data = (*samples)[i];
        // `index` of the files need not be unique.
        Sample sample{cat(i), frame.text(data.body, data.prefix), {}, data.expected};
        sample.prompt = frame.tokens(sample.text, true);
        refuse_if(std::int64_t(sample.prompt.size()) >= length,
                  cat("sample ", i, " of ", name, " takes ", sample.prompt.size(),
                      " tokens and leaves no room for an answer within ", length),
                  "make the data with this model's tokenizer and this length");
        return sample;
      };
      suite.sets.push_back(std::move(set));
    }
  }
  fail_if(suite.sets.empty(),
          cat("no sample in ", folder.string(), ": looked for ", joined(missing, ", ")),
          "the files are LENGTH/TASK/validation.jsonl or LENGTH/TASK.jsonl");
  if (!missing.empty()) {
    notes.push_back(cat("not in ", folder.string(), ": ", joined(missing, ", ")));
  }
  suite.settings = {{"source", "files given with --data"},
                    {"samples", options.samples},
                    {"files", files},
                    {"frame", frame.identity()}};
  return suite;
}

const SampleRules& ruler_rules() {
  static const SampleRules rules{.grade = grade,
                                 .decided = decided,
                                 .answer = right_answer,
                                 .metric = "string_match",
                                 .summarize = summarize};
  return rules;
}

}  // namespace mrrope::eval
