// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/needle/needle_forms.h"

#include <array>
#include <string_view>
#include <utility>

#include "base/random.h"
#include "base/text.h"
#include "eval/score/rouge.h"
#include "mrrope/error.h"

namespace mrrope::eval {

namespace {

constexpr int kAnswerTokens = 16;
constexpr int kChatAnswerTokens = 50;

// Where the haystack goes while a chat template is at work.
constexpr std::string_view kMark = "[[mrrope-haystack]]";

constexpr std::array kWords = {
    "amber",   "anchor",  "apple",   "arrow",   "autumn",  "badger",   "bamboo",  "barley",
    "basil",   "beacon",  "birch",   "bishop",  "blossom", "bramble",  "breeze",  "bronze",
    "cactus",  "candle",  "canyon",  "carbon",  "cedar",   "cherry",   "cobalt",  "comet",
    "copper",  "coral",   "cotton",  "cradle",  "cricket", "crystal",  "dagger",  "daisy",
    "delta",   "desert",  "diamond", "dolphin", "dragon",  "ember",    "falcon",  "feather",
    "fern",    "fiddle",  "flint",   "forest",  "fossil",  "fountain", "garnet",  "ginger",
    "glacier", "granite", "harbor",  "harvest", "hazel",   "heron",    "hickory", "honey",
    "island",  "ivory",   "jasmine", "juniper", "kettle",  "lagoon",   "lantern", "lark",
    "laurel",  "lemon",   "lily",    "linen",   "lotus",   "magnet",   "maple",   "marble",
    "meadow",  "mirror",  "mosaic",  "nectar",  "needle",  "nickel",   "nutmeg",  "oasis",
    "olive",   "onyx",    "opal",    "orchid",  "otter",   "oyster",   "panther", "pebble",
    "pepper",  "petal",   "pigeon",  "pine",    "planet",  "plum",     "poppy",   "prairie",
    "quartz",  "quill",   "rabbit",  "raven",   "reef",    "ribbon",   "river",   "robin",
    "ruby",    "saffron", "sage",    "salmon",  "satin",   "shadow",   "silver",  "sparrow",
    "spruce",  "summit",  "thistle", "thunder", "tiger",   "timber",   "topaz",   "tulip",
    "turtle",  "valley",  "velvet",  "violet",  "walnut",  "willow",   "winter",  "wolf",
    "zephyr"};

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

bool has_template(const Tokenizer& model) {
  const ChatMessage message{"user", "hello"};
  try {
    model.apply_chat_template({&message, 1});
    return true;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::unsupported) throw;
    return false;
  }
}

NeedleForm planted() {
  NeedleForm form;
  form.needle = "\nThe magic number for {word} is {number}.\n";
  form.question = "\nQuestion: what is the magic number for {word}? The magic number for {word} is";
  form.answer = "{number}";
  form.stop = {"\n"};
  return form;
}

NeedleForm completion(const std::optional<NeedleTexts>& own) {
  NeedleForm form;
  form.needle = "\nThe number written inside the {word} box is {number}.\n";
  form.question =
      "\n\nQuestion: Which number is written inside the {word} box?\n"
      "Answer: The number written inside the {word} box is";
  form.answer = "{number}";
  form.stop = {"\n"};
  if (own) {
    form.needle = "\n" + own->needle + "\n";
    form.question = "\n\nQuestion: " + own->question + "\nAnswer:";
    form.answer = own->answer;
  }
  return form;
}

const NeedleTexts& kamradt_texts() {
  static const NeedleTexts texts = {
      "The loveliest way to spend an evening in Harrowmere is to row across the lake and drink hot "
      "cider under the old mill.",
      "What is the loveliest way to spend an evening in Harrowmere?",
      "row across the lake and drink hot cider under the old mill"};
  return texts;
}

NeedleForm chat(const Tokenizer& model, const std::optional<NeedleTexts>& own) {
  NeedleForm form = completion(own);
  form.stop.clear();
  form.special = true;
  const std::string question =
      own ? own->question
          : "Which number is written inside the {word} box? Answer with the number alone.";
  const ChatMessage message{
      "user", cat("Read this text. A question about one detail of it follows.\n\n", kMark,
                  "\n\nThe text ends here. ", question)};
  const std::string prompt = model.apply_chat_template({&message, 1});
  const std::size_t at = prompt.find(kMark);
  if (at == std::string::npos) {
    throw Error(ErrorKind::unsupported, "the chat template drops the user's text",
                "give --form completion");
  }
  form.before = prompt.substr(0, at);
  form.question = prompt.substr(at + kMark.size());
  return form;
}

}  // namespace

void check_texts(const NeedleTexts& own) {
  const auto blank = [](const std::string& text) {
    return text.find_first_not_of(" \t\r\n") == std::string::npos;
  };
  for (const auto& [flag, text] : {std::pair("--needle", &own.needle),
                                   {"--question", &own.question},
                                   {"--answer", &own.answer}}) {
    if (!blank(*text)) continue;
    throw Error(ErrorKind::usage, cat(flag, " is missing or empty"),
                "give --needle, --question and --answer together");
  }
  if (rouge_words(own.answer).empty()) {
    throw Error(ErrorKind::usage,
                cat("the answer '", own.answer, "' has no letter a-z and no digit to look for"),
                "give an --answer with words or numbers");
  }
}

bool has_words(const std::string& answer) {
  for (const std::string& word :
       rouge_words(replaced(replaced(answer, "{word}", ""), "{number}", ""))) {
    if (word.find_first_not_of("0123456789") != std::string::npos) return true;
  }
  return false;
}

NeedleForm make_form(const Tokenizer& model, const std::string& asked,
                     const std::optional<NeedleTexts>& own, int answer_tokens) {
  const auto refuse = [](const std::string& message, const std::string& hint) {
    throw Error(ErrorKind::usage, message, hint);
  };
  if (own) check_texts(*own);
  if (answer_tokens < 0) refuse(cat("an answer of ", answer_tokens, " tokens"), "give -n 16");
  const std::string name = !asked.empty() ? asked : has_template(model) ? "chat" : "completion";
  NeedleForm form;
  if (name == "planted") {
    if (own) refuse("the planted form has its own needle", "give --form completion or chat");
    form = planted();
  } else if (name == "completion") {
    form = completion(own);
  } else if (name == "chat") {
    form = chat(model, own);
  } else if (name == kKamradt) {
    const NeedleTexts& texts = own ? *own : kamradt_texts();
    form = has_template(model) ? chat(model, texts) : completion(texts);
  } else {
    refuse(cat("there is no needle form '", name, "'"),
           "give --form planted, completion, chat or kamradt");
  }
  form.name = name;
  form.answer_tokens = answer_tokens > 0                    ? answer_tokens
                       : name == "chat" || name == kKamradt ? kChatAnswerTokens
                                                            : kAnswerTokens;
  return form;
}

Needle draw_needle(const Tokenizer& model, const NeedleForm& form, std::uint64_t seed,
                   std::size_t sample, std::int64_t where) {
  Random random(Random(Random(seed).next() + sample).next() + std::uint64_t(where));
  const std::string word = kWords[random.below(kWords.size())];
  const std::string number = cat(100000 + random.below(900000));
  const auto fill = [&](const std::string& text) {
    return replaced(replaced(text, "{word}", word), "{number}", number);
  };
  return {fill(form.answer), model.tokenize(fill(form.needle), false, false),
          model.tokenize(fill(form.question), false, form.special)};
}

std::vector<Token> head_of(const Tokenizer& model, const NeedleForm& form) {
  return model.tokenize(form.before, true, form.special);
}

}  // namespace mrrope::eval
