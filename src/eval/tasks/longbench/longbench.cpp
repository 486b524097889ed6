// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/longbench/longbench.h"

#include <map>
#include <memory>
#include <set>

#include "base/files/source.h"
#include "base/text.h"
#include "eval/samples/middle_cut.h"
#include "eval/text/jsonl.h"
#include "eval/text/text_source.h"
#include "eval/text/unicode.h"
#include "eval/text/words.h"
#include "mrrope/error.h"

namespace mrrope::eval {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

constexpr const char* kHint = "give data.json of LongBench-v2, or correct this item";

// The columns of the paper's table.
const std::map<std::string, std::string>& domains() {
  static const std::map<std::string, std::string> columns = {
      {"Single-Document QA", "SD"},
      {"Long-dialogue History Understanding", "LD"},
      {"Multi-Document QA", "MD"},
      {"Long In-context Learning", "LICL"},
      {"Long Structured Data Understanding", "LSD"},
      {"Code Repository Understanding", "CU"}};
  return columns;
}

struct Item {
  std::string id;
  std::string answer;
  std::vector<std::string> tags;
  std::string body;
  std::string prefix;
};

std::string trimmed(const std::string& text) { return to_utf8(stripped(to_characters(text))); }

Item read_item(const json& object, const std::string& name, const Prompt& prompt) {
  if (!object.is_object()) {
    throw Error(ErrorKind::corrupt, cat(name, " is not a JSON object"), kHint);
  }
  Item item;
  item.id = text_field(object, "_id", name);
  item.answer = text_field(object, "answer", name);
  if (item.answer.size() != 1 || item.answer[0] < 'A' || item.answer[0] > 'D') {
    throw Error(ErrorKind::corrupt, cat(name, ": the answer is ", shown(item.answer), ", not A-D"),
                kHint);
  }
  const std::string domain = text_field(object, "domain", name);
  const auto column = domains().find(domain);
  item.tags = {
      cat("longbench-v2/",
          column != domains().end() ? column->second : printable(domain.substr(0, 60))),
      cat("longbench-v2/", printable(text_field(object, "difficulty", name).substr(0, 60))),
      cat("longbench-v2/", printable(text_field(object, "length", name).substr(0, 60)))};
  const std::string context = trimmed(text_field(object, "context", name));
  const std::string question = trimmed(text_field(object, "question", name));
  const std::string a = trimmed(text_field(object, "choice_A", name));
  const std::string b = trimmed(text_field(object, "choice_B", name));
  const std::string c = trimmed(text_field(object, "choice_C", name));
  const std::string d = trimmed(text_field(object, "choice_D", name));
  const Fill values = {
      {"context", context}, {"question", question}, {"A", a}, {"B", b}, {"C", c}, {"D", d}};
  item.body = fill(prompt.text, values);
  item.prefix = fill(prompt.prefix, values);
  return item;
}

// Calls take(name, item) for each. Returns the digest.
std::string each_item(const fs::path& file, const JsonLine& take) {
  const std::string name = inner_name(file);
  if (name.ends_with(".jsonl") || name.ends_with(".ndjson")) return read_jsonl(file, take);
  JsonFile content = read_json_file(file);
  if (!content.content.is_array()) {
    throw Error(ErrorKind::corrupt, cat(printable(name), " is not a list of items"), kHint);
  }
  std::size_t i = 0;
  for (json& item : content.content) {
    take(cat(printable(name), ", item ", ++i), item);
    item = nullptr;  // its text is long, and needed once
  }
  return content.sha256;
}

// The first tokens of "A" and of " A": which of them a model writes depends on the text before it.
std::vector<std::vector<Token>> letter_tokens(const Tokenizer& model) {
  std::vector<std::vector<Token>> letters;
  for (const char letter : {'A', 'B', 'C', 'D'}) {
    std::vector<Token> spellings;
    const std::vector<Token> bare = model.tokenize(std::string(1, letter), false, false);
    const std::vector<Token> spaced = model.tokenize(cat(" ", letter), false, false);
    if (bare.size() == 1) spellings.push_back(bare[0]);
    if (spaced.size() == 1 && spaced != bare) spellings.push_back(spaced[0]);
    if (spellings.empty()) {
      throw Error(ErrorKind::unsupported,
                  cat("the letter ", letter, " is not a single token of this model"),
                  "give --mode generate");
    }
    letters.push_back(std::move(spellings));
  }
  return letters;
}

}  // namespace

SampleSuite read_longbench(const Tokenizer& model, const PromptFrame& frame, const fs::path& file,
                           const LongbenchOptions& options, std::vector<std::string>& notes) {
  constexpr int kAnswerTokens = 128;
  const bool letters = options.mode == "letters";
  if (!letters && options.mode != "generate") {
    throw Error(ErrorKind::usage, cat("--mode ", options.mode), "give generate or letters");
  }
  const int answer_tokens = letters ? 1 : kAnswerTokens;
  const std::int64_t room = options.length - answer_tokens;
  if (room < 1) {
    throw Error(ErrorKind::usage,
                cat(options.length, " tokens leave no room for a prompt: an answer takes up to ",
                    answer_tokens),
                "give a longer --ctx");
  }
  const Prompt prompt = options.prompts.at("longbench-v2/" + options.mode);
  auto items = std::make_shared<std::vector<Item>>();
  std::set<std::string> ids;
  std::size_t seen = 0;
  std::size_t dropped = 0;
  const std::string digest = each_item(file, [&](const std::string& name, const json& object) {
    Item item = read_item(object, name, prompt);
    if (!ids.insert(item.id).second) {
      throw Error(ErrorKind::corrupt, cat(name, ": _id ", printable(item.id), " is given twice"),
                  kHint);
    }
    ++seen;
    // No token holds more than some bytes: what is far too long need not be tokenized.
    constexpr std::size_t kMaxBytesPerToken = 64;
    if (!options.truncate &&
        (item.body.size() / kMaxBytesPerToken > std::size_t(room) ||
         std::int64_t(frame.tokens(frame.text(item.body, item.prefix)).size()) > room)) {
      ++dropped;
      return;
    }
    items->push_back(std::move(item));
  });
  if (dropped > 0) {
    notes.push_back(cat(dropped, " of ", seen, " items take more than ", room,
                        " tokens and are dropped; --longer truncate keeps them"));
  }
  if (options.samples > 0 && options.samples < items->size()) {
    Random random = random_for(options.seed, "longbench-v2");
    auto chosen = std::make_shared<std::vector<Item>>();
    for (const std::size_t i : choose(items->size(), options.samples, random)) {
      chosen->push_back(std::move((*items)[i]));
    }
    items = chosen;
  }
  if (items->empty()) {
    throw Error(ErrorKind::usage,
                cat("no item of ", seen, " fits into ", options.length, " tokens"),
                "give a longer --ctx, or --longer truncate");
  }
  ordered_json chosen_ids = ordered_json::array();
  for (const Item& item : *items) chosen_ids.push_back(item.id);
  SampleSuite suite;
  suite.task = "longbench-v2";
  suite.rules = &longbench_rules();
  suite.settings = {{"source", cat("file given with --data, ", options.mode)},
                    {"mode", options.mode},
                    {"longer", options.truncate ? "truncate" : "drop"},
                    {"items", seen},
                    {"dropped", dropped},
                    {"samples", options.samples},
                    {"seed", options.seed},
                    {"sha256", digest},
                    {"ids", chosen_ids},
                    {"frame", frame.identity()},
                    {"prompts", prompts_identity(options.prompts, "longbench-v2/" + options.mode)}};
  SampleSet set;
  set.task = "longbench-v2";
  set.length = options.length;
  set.scorer = letters ? "letter" : "longbench-v2";
  set.answer_tokens = answer_tokens;
  set.count = items->size();
  if (letters) set.letters = letter_tokens(model);
  set.make = [items, &model, &frame, room](std::size_t i) {
    const Item& item = (*items)[i];
    CutPrompt cut = cut_in_the_middle(model, frame, item.body, item.prefix, room);
    Sample sample;
    sample.id = item.id;
    sample.text = std::move(cut.text);
    sample.prompt = std::move(cut.tokens);
    sample.expected = {item.answer};
    sample.more["tags"] = item.tags;
    if (cut.cut) sample.more["truncated"] = cut.whole - std::int64_t(sample.prompt.size());
    return sample;
  };
  suite.sets.push_back(std::move(set));
  return suite;
}

}  // namespace mrrope::eval
