// SPDX-License-Identifier: Apache-2.0
#include <tuple>

#include "base/text.h"
#include "eval/run/runner.h"
#include "eval/samples/prompts.h"
#include "eval/score/answer_text.h"
#include "eval/tasks/needle/needle.h"
#include "eval/text/word_list.h"

namespace mrrope::eval {

namespace {

constexpr std::string_view kBlank = " \t\r\n";

constexpr int kAnswerTokens = 16;
constexpr int kChatAnswerTokens = 50;

bool has_template(const Tokenizer& model) { return PromptFrame(model, {}).chat(); }

// texts: the needle, the question and the answer.
NeedleForm plain_form(const std::vector<std::string>& texts) {
  return {
      .needle = "\n" + texts[0] + "\n", .question = texts[1], .answer = texts[2], .stop = {"\n"}};
}

NeedleForm completion(const std::optional<NeedleTexts>& own) {
  if (!own) return plain_form(word_list("needle_completion"));
  return plain_form({own->needle, "\n\nQuestion: " + own->question + "\nAnswer:", own->answer});
}

NeedleForm chat(const Tokenizer& model, const std::optional<NeedleTexts>& own) {
  NeedleForm form = completion(own);
  form.stop.clear();
  form.special = true;
  const std::string question = own ? own->question : word_list("needle_chat")[0];
  const ChatMessage message{
      "user", cat("Read this text. A question about one detail of it follows.\n\n", kChatMark,
                  "\n\nThe text ends here. ", question)};
  std::tie(form.before, form.question) = around_mark(model.apply_chat_template({&message, 1}));
  return form;
}

// How far back a needle may be moved. It depends on the place asked for and on nothing else, or
// cells of different lengths would lose the place they share.
std::int64_t reach(std::int64_t asked) { return std::max<std::int64_t>(64, asked / 10); }

std::int64_t count(const std::vector<Token>& tokens) { return std::int64_t(tokens.size()); }

// One for each depth, each with a question of its own; fewer where the form has no more.
std::vector<Needle> different_needles(const Tokenizer& model, const NeedleOptions& options,
                                      std::size_t sample) {
  constexpr std::int64_t kDraws = 100;  // in vain
  std::vector<Needle> needles;
  std::int64_t last = 0;
  for (std::int64_t draw = 0; needles.size() < options.depths.size() && draw < last + kDraws;
       ++draw) {
    Needle needle = draw_needle(model, options.form, options.seed, sample, draw);
    if (find_by(needles, &Needle::question, needle.question)) continue;
    needles.push_back(std::move(needle));
    last = draw;
  }
  return needles;
}

// What the first `n` needles leave of a text for the haystack, next to the longest of their
// questions and its answer.
std::int64_t room_beside(const std::vector<Needle>& needles, std::size_t n, std::int64_t length,
                         std::int64_t head, const NeedleForm& form) {
  std::int64_t longest = 0;
  // One token less than there is: the border of a near part moves when a multiple of its step is
  // reached, and the text would have to be read again for the next question.
  std::int64_t room = length - 1 - head - form.answer_tokens;
  for (std::size_t k = 0; k < n; ++k) {
    room -= count(needles[k].needle);
    longest = std::max(longest, count(needles[k].question));
  }
  return room - longest;
}

// All needles of one length.
NeedleTree plan_together(const Tokenizer& model, const NeedleOptions& options, std::size_t length,
                         std::span<const Token> haystack, std::size_t sample) {
  NeedleTree text;
  text.head = head_of(model, options.form);
  std::vector<Needle> needles = different_needles(model, options, sample);
  const std::size_t n = options.depths.size();
  const std::int64_t room =
      room_beside(needles, n, options.lengths[length], count(text.head), options.form);
  std::int64_t at = 0;
  for (std::size_t d = 0; d < n; ++d) {
    const auto asked = std::int64_t(double(room) * options.depths[d] / 100);
    const auto snapped =
        asked == room
            ? room
            : snap_back(model, haystack, asked, std::min(reach(asked), room / std::int64_t(2 * n)));
    const std::int64_t position = std::max(at, snapped.value_or(asked));
    extend(text.head, haystack.subspan(std::size_t(at), std::size_t(position - at)));
    extend(text.head, needles[d].needle);
    at = position;
    text.branches.push_back(
        {position, snapped.has_value(), std::move(needles[d]), {{length, d, room}}});
  }
  extend(text.head, haystack.subspan(std::size_t(at), std::size_t(room - at)));
  text.tokens = count(text.head);
  for (const NeedleBranch& branch : text.branches) {
    text.tokens += count(branch.needle.question);
    text.naive_tokens += count(text.head) + count(branch.needle.question);
  }
  return text;
}

}  // namespace

void check_texts(const NeedleTexts& own) {
  for (const auto& [flag, text] : {std::pair("--needle", &own.needle),
                                   {"--question", &own.question},
                                   {"--answer", &own.answer}}) {
    if (text->find_first_not_of(kBlank) != std::string::npos) continue;
    refuse(cat(flag, " is missing or empty"), "give --needle, --question and --answer together");
  }
  refuse_if(rouge_words(own.answer).empty(),
            cat("the answer '", own.answer, "' has no letter a-z and no digit to look for"),
            "give an --answer with words or numbers");
}

bool has_words(const std::string& answer) {
  const std::vector<std::string> words = rouge_words(fill(answer, {{"word", ""}, {"number", ""}}));
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word.find_first_not_of("0123456789") != std::string::npos;
  });
}

NeedleForm make_form(const Tokenizer& model, const std::string& asked,
                     const std::optional<NeedleTexts>& own, int answer_tokens) {
  if (own) check_texts(*own);
  const std::string name = !asked.empty() ? asked : has_template(model) ? "chat" : "completion";
  NeedleForm form;
  if (name == "planted") {
    if (own) refuse("the planted form has its own needle", "give --form completion or chat");
    form = plain_form(word_list("needle_planted"));
  } else if (name == "completion") {
    form = completion(own);
  } else if (name == "chat") {
    form = chat(model, own);
  } else if (name == kKamradt) {
    const std::vector<std::string>& usual = word_list("needle_kamradt");
    const NeedleTexts texts = own ? *own : NeedleTexts{usual[0], usual[1], usual[2]};
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
  const std::vector<std::string>& words = word_list("needle_words");
  const std::string& word = words[random.below(words.size())];
  const std::string number = cat(100000 + random.below(900000));
  const Fill drawn = {{"word", word}, {"number", number}};
  Needle needle = {fill(form.answer, drawn), model.tokenize(fill(form.needle, drawn), false, false),
                   model.tokenize(fill(form.question, drawn), false, form.special)};
  needle.right = answer_tokens(model, model.detokenize(needle.question), needle.answer);
  refuse_if(count(needle.right) > form.answer_tokens && !has_words(form.answer),
            cat("the answer '", needle.answer, "' takes ", needle.right.size(), " tokens, and -n ",
                form.answer_tokens, " leaves no room for it"),
            cat("give -n ", needle.right.size(), " or more"));
  return needle;
}

std::vector<Token> head_of(const Tokenizer& model, const NeedleForm& form) {
  return model.tokenize(form.before, true, form.special);
}

bool ends_sentence(const Tokenizer& model, std::span<const Token> tokens, std::size_t index) {
  const std::string text = model.detokenize(tokens.subspan(index, 1));
  if (text.find("\n\n") != std::string::npos) return true;
  std::size_t end = text.find_last_not_of(kBlank);
  if (end == std::string::npos) return false;
  const bool blank_after = end + 1 < text.size();
  end = text.find_last_not_of("\"')]}", end);
  if (end == std::string::npos || std::string_view(".!?").find(text[end]) == std::string::npos) {
    return false;
  }
  if (blank_after || index + 1 == tokens.size()) return true;
  // "3.14" and "Nat.succ" end nothing: a blank must follow. The next token is read together with
  // this one, since some tokenizers drop a blank at the start of a text.
  const std::string both = model.detokenize(tokens.subspan(index, 2));
  return both.size() > text.size() && kBlank.find(both[text.size()]) != std::string::npos;
}

std::optional<std::int64_t> snap_back(const Tokenizer& model, std::span<const Token> haystack,
                                      std::int64_t position, std::int64_t max_steps) {
  for (std::int64_t at = position; at >= 0 && at >= position - max_steps; --at) {
    if (at == 0 || ends_sentence(model, haystack, std::size_t(at - 1))) return at;
  }
  return std::nullopt;
}

NeedleTree plan_tree(const Tokenizer& model, const NeedleOptions& options,
                     std::span<const Token> haystack, std::size_t sample) {
  const NeedleForm& form = options.form;
  NeedleTree tree;
  tree.head = head_of(model, form);
  // By the place in the haystack, then by the place asked for, which the needle is drawn by.
  std::map<std::pair<std::int64_t, std::int64_t>, NeedleBranch> branches;
  for (std::size_t l = 0; l < options.lengths.size(); ++l) {
    const std::int64_t length = options.lengths[l];
    for (std::size_t d = 0; d < options.depths.size(); ++d) {
      const auto asked = std::int64_t(double(length) * options.depths[d] / 100);
      Needle needle = draw_needle(model, form, options.seed, sample, asked);
      const std::int64_t rest =
          count(tree.head) + count(needle.needle) + count(needle.question) + form.answer_tokens;
      const std::int64_t room = length - rest;
      refuse_if(room < 1,
                cat("length ", length, " leaves no haystack: needle, question and answer take ",
                    rest, " tokens"),
                cat("give lengths above ", rest));
      const bool at_end = options.depths[d] == 100;
      const std::int64_t wanted = at_end ? room : std::min(asked, room);
      const auto sentence = at_end ? room : snap_back(model, haystack, wanted, reach(asked));
      const std::int64_t position = sentence.value_or(wanted);
      NeedleBranch& branch = branches[{position, asked}];
      if (branch.cells.empty()) {
        branch.position = position;
        branch.snapped = sentence.has_value();
        branch.needle = std::move(needle);
      }
      // The same length twice (two depths snapped to one place) is one prompt, asked twice.
      branch.cells.push_back({l, d, room});
      tree.naive_tokens += length - form.answer_tokens;
    }
  }
  std::int64_t trunk = 0;
  for (auto& [key, branch] : branches) {
    trunk = std::max(trunk, branch.position);
    tree.tokens += count(branch.needle.needle) + branch.cells.back().haystack - branch.position +
                   std::int64_t(branch.cells.size()) * count(branch.needle.question);
    tree.branches.push_back(std::move(branch));
  }
  tree.tokens += count(tree.head) + trunk;
  return tree;
}

std::vector<NeedleTree> plan_sample(const Tokenizer& model, const NeedleOptions& options,
                                    std::span<const Token> haystack, std::size_t sample) {
  if (!options.together) return {plan_tree(model, options, haystack, sample)};
  std::vector<NeedleTree> texts;
  for (std::size_t l = 0; l < options.lengths.size(); ++l) {
    texts.push_back(plan_together(model, options, l, haystack, sample));
  }
  return texts;
}

void check_together(const Tokenizer& model, const NeedleOptions& options) {
  const std::int64_t length = options.lengths.front();
  const std::int64_t head = count(head_of(model, options.form));
  std::size_t different = options.depths.size();
  std::size_t fit = different;
  for (std::size_t s = 0; s < options.samples; ++s) {
    const std::vector<Needle> needles = different_needles(model, options, s);
    different = std::min(different, needles.size());
    fit = std::min(fit, different);
    while (fit > 0 && room_beside(needles, fit, length, head, options.form) < 1) --fit;
  }
  if (fit == options.depths.size()) return;
  const bool few = fit == different;
  refuse(cat(options.depths.size(), " questions about each text: ",
             few ? cat("the form ", options.form.name, " has only ")
                 : cat(length, " tokens have room for only "),
             fit),
         cat(fit > 1 ? cat("give --questions ", fit) : "leave out --questions",
             few ? ", or give a --question with {word}" : ", or give longer --lengths"));
}

std::vector<Haystack> make_haystacks(const Tokenizer& tokenizer,
                                     const std::vector<Document>& documents, std::int64_t tokens,
                                     std::size_t max_count, bool repeat) {
  const std::vector<Token> between = tokenizer.tokenize("\n\n", false, false);
  std::vector<Haystack> haystacks;
  Haystack next;
  std::int64_t longest = 0;
  for (const Document& document : documents) {
    if (haystacks.size() == max_count) break;
    if (!next.tokens.empty()) {
      next.id += " + ";
      extend(next.tokens, between);
    }
    const std::vector<Token> more = tokenizer.tokenize(document.text, false, false);
    next.id += document.id;
    extend(next.tokens, more);
    longest = std::max(longest, std::int64_t(next.tokens.size()));
    if (std::int64_t(next.tokens.size()) < tokens) continue;
    next.tokens.resize(std::size_t(tokens));
    haystacks.push_back(std::move(next));
    next = {};
  }
  if (haystacks.empty() && repeat && !next.tokens.empty()) {
    const std::vector<Token> once = next.tokens;
    int times = 1;
    for (; std::int64_t(next.tokens.size()) < tokens; ++times) {
      extend(next.tokens, between);
      extend(next.tokens, once);
    }
    next.tokens.resize(std::size_t(tokens));
    next.id += cat(" x ", times);
    haystacks.push_back(std::move(next));
  }
  refuse_if(haystacks.empty(),
            cat("the haystack has ", longest, " tokens, fewer than the longest length, ", tokens),
            "give --text more texts, or shorter --lengths");
  return haystacks;
}

std::vector<Document> made_essays(const Tokenizer& tokenizer, std::int64_t tokens,
                                  std::size_t max_count) {
  constexpr std::size_t kParagraphs = 40;
  constexpr std::size_t kSentences = 6;
  std::vector<Document> essays;
  for (std::size_t h = 0; h < max_count; ++h) {
    for (std::int64_t have = 0; have < tokens;) {
      Random random = random_for(1, "needle essay", essays.size());
      std::string text;
      for (std::size_t p = 0; p < kParagraphs; ++p) {
        for (std::size_t s = 0; s < kSentences; ++s) {
          text += cat(s > 0 ? " " : "", prose_sentence(random));
        }
        text += "\n\n";
      }
      have += std::int64_t(tokenizer.tokenize(text, false, false).size());
      essays.push_back({cat("essay ", essays.size() + 1), std::move(text)});
    }
  }
  return essays;
}

}  // namespace mrrope::eval
