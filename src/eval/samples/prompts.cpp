// SPDX-License-Identifier: Apache-2.0
#include "eval/samples/prompts.h"

#include <set>

#include "base/json.h"
#include "base/text.h"
#include "eval/text/jsonl.h"
#include "mrrope/error.h"

namespace mrrope::eval {

using nlohmann::ordered_json;

namespace {

bool is_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// The name in braces that begins at `at`, or empty.
std::string_view place_at(std::string_view text, std::size_t at) {
  if (text[at] != '{') return {};
  std::size_t end = at + 1;
  while (end < text.size() && is_name(text[end])) ++end;
  if (end == at + 1 || end == text.size() || text[end] != '}') return {};
  return text.substr(at + 1, end - at - 1);
}

std::set<std::string> places(const Prompt& prompt) {
  std::set<std::string> found;
  for (const std::string* text : {&prompt.text, &prompt.prefix}) {
    for (std::size_t i = 0; i < text->size(); ++i) {
      const std::string_view name = place_at(*text, i);
      if (!name.empty()) found.insert(std::string(name));
    }
  }
  return found;
}

// Words of a prompt that it asks its question without.
bool may_be_left_out(const std::string& place, const std::set<std::string>& used) {
  if (place == "input") return used.count("target") > 0;
  if (place == "target") return used.count("input") > 0;
  return place == "type" || place == "count" || place == "i";
}

constexpr const char* kChoices =
    "\n\n{question}\nA. {A}\nB. {B}\nC. {C}\nD. {D}\nAnswer with the letter of the right choice.";

Prompts make_builtin() {
  Prompts p;
  // RULER. {type} is number or uuid.
  p["ruler/noise"] = {
      "The kettle is warm. The road is long. The river is slow. On it goes. Home and out again.",
      ""};
  p["ruler/needle"] = {"The magic {type} for {key} is {value}.", ""};
  p["ruler/niah.one"] = {
      "The text below hides a magic {type}. Read it with care and keep the {type} in mind: a "
      "question about it follows.\n{context}\nQuestion: what is the magic {type} for {query}?",
      " The magic {type} for {query} is"};
  p["ruler/niah.many"] = {
      "The text below hides several magic {type}s. Read it with care and keep the {type}s in mind: "
      "a question about them follows.\n{context}\nQuestion: what are all the magic {type}s for "
      "{query}?",
      " The magic {type}s for {query} are"};
  p["ruler/vt.start"] = {"let {name} = {value}", ""};
  p["ruler/vt.hop"] = {"let {name} = {from}", ""};
  p["ruler/vt"] = {
      "The text below hides lines that give names a value, directly or through another name. "
      "Follow "
      "them from line to line.\n\n{context}\nQuestion: which names have the value {value}?",
      " Answer: in the text above {count} names have the value {value}, namely: "};
  p["ruler/cwe"] = {
      "Here is a numbered list of words. A few of them come far more often than the rest. Find "
      "those.\n{context}\nQuestion: which ten words come most often in this list?",
      " Answer: the ten words that come most often are:"};
  p["ruler/fwe"] = {
      "The following text is written in a secret code. Count how often each code word comes up. "
      "{context}\nQuestion: which three code words come up most often? Dots are no words. Name the "
      "three words and nothing else.",
      " Answer: the three code words that come up most often are:"};
  p["ruler/qa.document"] = {"Document {i}:\n{document}", ""};
  p["ruler/qa"] = {
      "Use the documents below to answer a question. Give the answer alone, without any other "
      "words.\n\n{context}\n\nUse the documents above to answer the question. Give the answer "
      "alone, without any other words.\n\nQuestion: {query}",
      " Answer:"};

  // InfiniteBench.
  p["infinitebench/passkey"] = {
      "Somewhere in a long and idle text stands a pass key. Find it and remember it.\n\n{context}"
      "\n\n{input}",
      "\nThe pass key is"};
  p["infinitebench/number_string"] = {
      "Somewhere in a long and idle text stands a sequence of digits. Find it and remember it."
      "\n\n{context}\n\n{input}",
      "\nThe sequence of digits is"};
  p["infinitebench/kv_retrieval"] = {
      "Below is a JSON object. Look up the value of the key that is asked for at its end."
      "\n\n{context}\n\n{input}",
      ""};
  p["infinitebench/math_find"] = {"Find {target} in this list of numbers.\n\n{context}\n\n{input}",
                                  "\nThe number is"};
  p["infinitebench/math_calc"] = {
      "Work out this long sum from left to right and write down the value after every step, as a "
      "list of numbers.\n\n{context}",
      "\nThe values are ["};
  p["infinitebench/code_run"] = {
      "Here are Python functions that call one another.\n\n{context}\n\nWork out by hand, without "
      "running anything, what {call} returns.",
      "\n{call} returns"};
  p["infinitebench/code_debug"] = {
      "One function of this Python project was given an obvious mistake on purpose.\n\n{context}"
      "\n\nWhich function holds the mistake?\nA. {A}\nB. {B}\nC. {C}\nD. {D}",
      "\nThe correct option is:"};
  p["infinitebench/longdialogue_qa_eng"] = {
      "In the script below one character's name has been replaced everywhere by $$MASK$$."
      "\n\n{context}\n\nThe script ends here. Which name does $$MASK$$ stand for?",
      "\nThe name is"};
  p["infinitebench/longbook_choice_eng"] = {
      cat("Read this book, then answer a question about it.\n\n{context}", kChoices),
      "\nThe letter is"};
  p["infinitebench/longbook_qa_eng"] = {
      "Read this book, then answer a question about it in as few words as you can.\n\n{context}"
      "\n\nQuestion: {question}",
      "\nAnswer:"};
  p["infinitebench/longbook_qa_chn"] = {
      "Read this book in Chinese, then answer a question about it in Chinese, in as few words as "
      "you can.\n\n{context}\n\nQuestion: {question}",
      "\nAnswer:"};
  p["infinitebench/longbook_sum_eng"] = {
      "Read this book, then retell what happens in it.\n\n{context}", "\nSummary:"};

  // LongBench-v2. The official extraction looks for one exact sentence, so it is asked for.
  p["longbench-v2/generate"] = {
      "Read the document and choose the right answer to the question after it.\n\n{context}\n\n"
      "{question}\n(A) {A}\n(B) {B}\n(C) {C}\n(D) {D}\n\nReply in exactly this form, with the "
      "letter of your choice in the brackets: The correct answer is (X)",
      ""};
  p["longbench-v2/letters"] = {
      cat("Read the document and choose the right answer to the question after it.\n\n{context}",
          kChoices),
      "\n\nAnswer:"};
  return p;
}

}  // namespace

const Prompts& builtin_prompts() {
  static const Prompts prompts = make_builtin();
  return prompts;
}

Prompts read_prompts(const std::filesystem::path& path, std::string* sha256) {
  const JsonFile read = read_json_file(path);
  const nlohmann::json& file = read.content;
  if (sha256 != nullptr) *sha256 = read.sha256;
  const std::string name = path.filename().string();
  const auto corrupt = [&](const std::string& message, const std::string& hint) {
    throw Error(ErrorKind::corrupt, cat(name, ": ", message), hint);
  };
  if (!file.is_object()) corrupt("not a JSON object", "see docs/benchmarks.md for its form");
  Prompts prompts = builtin_prompts();
  for (const auto& [key, value] : file.items()) {
    const auto known = prompts.find(key);
    if (known == prompts.end()) {
      std::string names;
      for (const auto& [k, v] : prompts) names += cat(names.empty() ? "" : ", ", k);
      corrupt(cat("there is no prompt ", shown(key)), cat("the names are ", names));
    }
    if (!value.is_object() || !value.contains("text")) {
      corrupt(cat("prompt ", key, " has no text"),
              R"(give {"text": "... {context} ...", "prefix": " ..."})");
    }
    Prompt prompt;
    for (const auto& [part, text] : value.items()) {
      if (!text.is_string() || (part != "text" && part != "prefix")) {
        corrupt(cat("prompt ", key, " has a part ", shown(part)),
                "a prompt has two parts, both text: text and prefix");
      }
      (part == "text" ? prompt.text : prompt.prefix) = text.get<std::string>();
    }
    const std::set<std::string> allowed = places(known->second);
    const std::set<std::string> used = places(prompt);
    std::string list;
    for (const std::string& place : allowed) list += cat(list.empty() ? "{" : ", {", place, "}");
    for (const std::string& place : used) {
      if (allowed.count(place) == 0) {
        corrupt(cat("prompt ", key, " has no placeholder {", place, "}"), cat("it may use ", list));
      }
    }
    for (const std::string& place : allowed) {
      if (used.count(place) > 0 || may_be_left_out(place, used)) continue;
      corrupt(cat("prompt ", key, " does not use {", place, "}"),
              cat("put {", place, "} where ", place == "context" ? "the text" : "it",
                  " belongs; the prompt may use ", list));
    }
    known->second = std::move(prompt);
  }
  return prompts;
}

ordered_json prompts_identity(const Prompts& prompts, std::string_view beginning) {
  ordered_json json = ordered_json::object();
  for (const auto& [name, prompt] : prompts) {
    if (name.compare(0, beginning.size(), beginning) != 0) continue;
    json[name] = {{"text", prompt.text}, {"prefix", prompt.prefix}};
  }
  return json;
}

std::string fill(std::string_view text, const Fill& values) {
  std::size_t size = text.size();
  for (const auto& [name, value] : values) size += value.size();
  std::string out;
  out.reserve(size);
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view name = place_at(text, i);
    bool found = false;
    for (const auto& [key, value] : values) {
      if (name.empty() || key != name) continue;
      out += value;
      i += name.size() + 2;
      found = true;
      break;
    }
    if (!found) out.push_back(text[i++]);
  }
  return out;
}

}  // namespace mrrope::eval
