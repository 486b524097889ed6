// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/longbench/longbench.h"

#include <set>

#include "base/files/source.h"
#include "base/text.h"
#include "eval/score/answer_text.h"
#include "eval/text/documents.h"
#include "eval/text/word_list.h"

namespace mrrope::eval {

namespace fs = std::filesystem;
using nlohmann::json;
namespace {

constexpr const char* kReply = "longbench-v2";  // the letter is read from a reply
constexpr const char* kLetter = "letter";       // the letter was chosen by its logit

constexpr const char* kHint = "give data.json of LongBench-v2, or correct this item";

// The columns of the paper's table.
const std::map<std::string, std::string> kDomains = {{"Single-Document QA", "SD"},
                                                     {"Long-dialogue History Understanding", "LD"},
                                                     {"Multi-Document QA", "MD"},
                                                     {"Long In-context Learning", "LICL"},
                                                     {"Long Structured Data Understanding", "LSD"},
                                                     {"Code Repository Understanding", "CU"}};

Draft read_draft(const json& object, const std::string& name, const Prompt& prompt) {
  if (!object.is_object()) damaged_data(cat(name, " is not a JSON object"), kHint);
  const std::string answer = text_field(object, "answer", name);
  throw_if(answer.size() != 1 || answer[0] < 'A' || answer[0] > 'D', ErrorKind::corrupt,
           cat(name, ": the answer is ", shown(answer), ", not A-D"), kHint);
  const auto tag = [&](const char* field) {
    const std::string value = text_field(object, field, name);
    const auto column = kDomains.find(value);
    return cat("longbench-v2/",
               column != kDomains.end() ? column->second : printable(value.substr(0, 60)));
  };
  std::vector<std::pair<std::string_view, std::string>> texts;
  for (const char* field :
       {"context", "question", "choice_A", "choice_B", "choice_C", "choice_D"}) {
    const std::u32string text = to_characters(text_field(object, field, name));
    const std::string_view place = field;  // the letter alone of a choice
    texts.emplace_back(place.substr(place.find('_') + 1), to_utf8(stripped(text)));
  }
  const Fill values(texts.begin(), texts.end());
  Draft draft{fill(prompt.text, values), fill(prompt.prefix, values), {answer}};
  draft.more["tags"] = {tag("domain"), tag("difficulty"), tag("length")};
  draft.id = text_field(object, "_id", name);
  return draft;
}

// Calls take(name, item) for each. Returns the digest.
std::string each_item(const fs::path& file, const JsonLine& take) {
  if (holds_json_lines(file)) return read_jsonl(file, take);
  const std::string name = inner_name(file);
  JsonFile content = read_json_file(file);
  throw_if(!content.content.is_array(), ErrorKind::corrupt,
           cat(printable(name), " is not a list of items"), kHint);
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
    unsupported_if(spellings.empty(),
                   cat("the letter ", letter, " is not a single token of this model"),
                   "give --form auto");
    letters.push_back(std::move(spellings));
  }
  return letters;
}

std::vector<Score> grade(const std::string& scorer, const ordered_json& record) {
  const auto text = record.at("text").get<std::string>();
  const auto expected = record.at("expected").get<std::vector<std::string>>();
  if (scorer != kReply && scorer != kLetter) unknown_scorer(scorer);
  const std::string said = scorer == kLetter ? text : std::string(1, longbench_letter(text));
  return {{"accuracy", !expected.empty() && expected[0] == said ? 1.0 : 0.0}};
}

bool unanswered(const std::string& scorer, std::string_view text) {
  return scorer == kReply && longbench_letter(text) == 0;
}

}  // namespace

SampleSuite read_longbench(const PromptFrame& frame, const fs::path& file,
                           const LongbenchOptions& options, std::vector<std::string>& notes) {
  constexpr int kAnswerTokens = 128;
  const bool letters = options.mode == "letters";
  const int answer_tokens = letters ? 1 : kAnswerTokens;
  const std::int64_t room = options.length - answer_tokens;
  refuse_if(room < 1,
            cat(options.length, " tokens leave no room for a prompt: an answer takes up to ",
                answer_tokens),
            "give a longer --ctx");
  const Prompt prompt = options.prompts.at("longbench-v2/" + options.mode);
  std::vector<Draft> drafts;
  std::set<std::string> ids;
  std::size_t dropped = 0;
  const std::string digest = each_item(file, [&](const std::string& name, const json& object) {
    Draft draft = read_draft(object, name, prompt);
    throw_if(!ids.insert(draft.id).second, ErrorKind::corrupt,
             cat(name, ": _id ", printable(draft.id), " is given twice"), kHint);
    // No token holds more than some bytes: what is far too long need not be tokenized.
    constexpr std::size_t kMaxBytesPerToken = 64;
    if (!options.truncate &&
        (draft.body.size() / kMaxBytesPerToken > std::size_t(room) ||
         std::int64_t(frame.tokens(frame.text(draft.body, draft.prefix)).size()) > room)) {
      ++dropped;
      return;
    }
    drafts.push_back(std::move(draft));
  });
  if (dropped > 0) {
    notes.push_back(cat(dropped, " of ", ids.size(), " items take more than ", room,
                        " tokens and are dropped; --longer truncate keeps them"));
  }
  refuse_if(drafts.empty(),
            cat("no item of ", ids.size(), " fits into ", options.length, " tokens"),
            "give a longer --ctx, or --longer truncate");
  SampleSet set{.task = "longbench-v2",
                .length = options.length,
                .scorer = letters ? kLetter : kReply,
                .answer_tokens = answer_tokens};
  if (letters) set.letters = letter_tokens(frame.model());
  ordered_json chosen;
  SampleSuite suite{"longbench-v2", &longbench_rules()};
  suite.sets.push_back(cut_set(std::move(set), std::move(drafts), options.samples,
                               random_for(options.seed, "longbench-v2"), frame, chosen));
  suite.settings = {{"source", cat("file given with --data, ", options.mode)},
                    {"mode", options.mode},
                    {"longer", options.truncate ? "truncate" : "drop"},
                    {"items", ids.size()},
                    {"dropped", dropped},
                    {"samples", options.samples},
                    {"seed", options.seed},
                    {"sha256", digest},
                    {"ids", chosen},
                    {"frame", frame.identity()},
                    {"prompts", prompts_identity(options.prompts, "longbench-v2/" + options.mode)}};
  return suite;
}

char longbench_letter(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    if (c != '*') plain.push_back(c);
  }
  // First in brackets, anywhere in the text; only then without them.
  for (const std::string_view start : {"The correct answer is (", "The correct answer is "}) {
    const bool bracket = start.back() == '(';
    for (std::size_t at = plain.find(start); at != plain.npos; at = plain.find(start, at + 1)) {
      const std::size_t letter = at + start.size();
      if (letter >= plain.size() || plain[letter] < 'A' || plain[letter] > 'D') continue;
      if (!bracket || (letter + 1 < plain.size() && plain[letter + 1] == ')')) return plain[letter];
    }
  }
  return 0;
}

const SampleRules& longbench_rules() {
  static const SampleRules rules{.grade = grade, .unanswered = unanswered};
  return rules;
}

}  // namespace mrrope::eval
