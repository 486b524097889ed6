// SPDX-License-Identifier: Apache-2.0
// RULER's needles (values of keys hidden in noise, in prose, or among other such lines), vt (names
// that pass a value on), cwe (common words), fwe (frequent code words) and qa (a question whose
// answer is in one or two of many documents: from SQuAD and HotpotQA files, or from invented towns
// and bridges).
#include <iterator>
#include <numbers>
#include <numeric>
#include <set>

#include "base/text.h"
#include "eval/tasks/ruler/ruler.h"
#include "eval/text/documents.h"
#include "eval/text/word_list.h"

namespace mrrope::eval {

struct QaQuestion {
  std::string query;
  std::vector<std::string> expected;
  std::vector<std::size_t> given;  // documents that are always there
  std::vector<std::size_t> more;   // and those that come next
};

struct QaCorpus {
  std::size_t documents = 0;
  std::size_t questions = 0;
  std::function<std::string(std::size_t)> document{};
  std::function<QaQuestion(std::size_t)> question{};
};

namespace {

// Prose as far as it was needed, sentence by sentence.
class Prose {
 public:
  explicit Prose(std::uint64_t seed) : random_(random_for(seed, "prose")) {}

  // The sentences of the first `words` words; the last may be cut.
  std::vector<std::string_view> first(std::int64_t words) {
    while (ends_.empty() || ends_.back() < words) {
      sentences_.push_back(prose_sentence(random_));
      const std::string& s = sentences_.back();
      const auto blanks = std::count(s.begin(), s.end(), ' ');
      ends_.push_back((ends_.empty() ? 0 : ends_.back()) + blanks + 1);
    }
    const auto whole =
        std::size_t(std::upper_bound(ends_.begin(), ends_.end(), words) - ends_.begin());
    std::vector<std::string_view> out(sentences_.begin(),
                                      sentences_.begin() + std::ptrdiff_t(whole));
    const std::int64_t rest = words - (whole == 0 ? 0 : ends_[whole - 1]);
    if (rest > 0) {
      std::size_t end = 0;
      for (std::int64_t w = 0; w < rest; ++w) end = sentences_[whole].find(' ', end + 1);
      out.push_back(std::string_view(sentences_[whole]).substr(0, end));
    }
    return out;
  }

 private:
  Random random_;
  std::vector<std::string> sentences_;
  std::vector<std::int64_t> ends_;  // words up to the end of each
};

std::string draw(const std::string& type, Random& random) {
  if (type == "words") return random_key(random);
  if (type == "number") return random_digits(random, 7);
  return random_uuid(random);
}

// The depths of needles, as a share of the text: 40 depths from 0 to 100 percent, none twice.
std::vector<std::size_t> essay_places(std::size_t sentences, std::size_t needles, Random& random) {
  std::vector<std::size_t> places;
  for (const std::size_t d : choose(40, needles, random)) {
    const double depth = std::round(double(d) * 100 / 39) / 100;
    places.push_back(std::size_t(double(sentences) * depth));
  }
  return places;
}

// The lines, each of the inserted ones before the line of its place.
std::string with_inserted(const std::vector<std::string>& lines,
                          const std::vector<std::string>& inserted,
                          const std::vector<std::size_t>& places, char between) {
  std::string text;
  const auto add = [&](const std::string& line) {
    if (!text.empty()) text.push_back(between);
    text += line;
  };
  std::size_t next = 0;
  for (std::size_t i = 0; i <= lines.size(); ++i) {
    while (next < places.size() && places[next] == i) add(inserted[next++]);
    if (i < lines.size()) add(lines[i]);
  }
  return text;
}

std::string listed(std::vector<std::string> names) {
  if (names.size() > 1) names.back().insert(0, "and ");
  return joined(names, ", ");
}

constexpr std::size_t kHops = 4;

std::vector<std::string> distinct_letters(Random& random, std::size_t count, std::size_t letters) {
  std::vector<std::string> names;
  while (names.size() < count) {
    std::string name = random_letters(random, letters, 'A');
    if (!has(names, name)) names.push_back(name);
  }
  return names;
}

Draft draft_chain(const Prompts& prompts, Random& random, std::int64_t lines, std::size_t letters) {
  Draft chain;
  chain.expected = distinct_letters(random, kHops + 1, letters);
  const std::vector<std::string>& names = chain.expected;
  const std::string value = cat(10000 + random.below(89999));
  std::vector<std::string> hops = {
      fill(prompts.at("ruler/vt.start").text, {{"name", names[0]}, {"value", value}})};
  for (std::size_t i = 1; i <= kHops; ++i) {
    hops.push_back(
        fill(prompts.at("ruler/vt.hop").text, {{"name", names[i]}, {"from", names[i - 1]}}));
  }
  const std::vector<std::string> noise(std::size_t(lines), prompts.at("ruler/noise").text);
  const std::string context =
      with_inserted(noise, hops, choose(noise.size(), kHops + 1, random), '\n');
  const Prompt& prompt = prompts.at("ruler/vt");
  chain.body = fill(prompt.text, {{"context", context}, {"value", value}});
  chain.prefix = fill(prompt.prefix, {{"count", cat(kHops + 1)}, {"value", value}});
  return chain;
}

std::string numbered(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += cat(i > 0 ? " " : "", i + 1, ". ", words[i]);
  }
  return text;
}

struct WordList {
  std::vector<std::string> common;
  std::vector<std::string> all;
};

// Below this length plain words suffice, at four tokens or more for a word with its number; beyond
// it compounds, which take more tokens each.
constexpr std::int64_t kPlainBelow = 5120;

// `words` distinct ones, the first ten of them common. No uncommon one holds a common one: answers
// are looked for as parts of the text.
WordList draw_words(Random& random, bool plain, std::size_t words, int common_times,
                    int other_times) {
  constexpr std::size_t kCommon = 10;
  // Pairs of nouns while they last.
  const std::uint64_t pool =
      plain ? plain_words() : std::min(compound_words(), std::max<std::uint64_t>(20000, 2 * words));
  std::set<std::string> seen;
  WordList list;
  while (seen.size() < words) {
    const std::uint64_t index = random.below(pool);
    const std::string word = plain ? plain_word(index) : compound_word(index);
    const bool common = list.common.size() < kCommon;
    const bool clash = std::any_of(list.common.begin(), list.common.end(), [&](const auto& c) {
      return word.find(c) != std::string::npos || c.find(word) != std::string::npos;
    });
    if (clash || !seen.insert(word).second) continue;
    if (common) list.common.push_back(word);
    list.all.insert(list.all.end(), std::size_t(common ? common_times : other_times), word);
  }
  shuffle(list.all, random);
  return list;
}

std::string with_prose(std::string text, Random& random, int sentences) {
  for (int i = 0; i < sentences; ++i) text += " " + prose_sentence(random);
  return text;
}

// Towns, five paragraphs each: document 5 t + p. What a paragraph says and how it is asked for is a
// pure function of both numbers.
constexpr std::size_t kTowns = 12000;
constexpr std::size_t kParagraphs = 5;

struct Fact {
  std::string statement, query, answer;
};

Fact town_fact(std::uint64_t seed, std::size_t town, std::size_t paragraph) {
  Random random = random_for(seed, "town", town, paragraph);
  std::string thing = random_key(random);
  std::replace(thing.begin(), thing.end(), '-', ' ');
  const std::string name = town_name(town);
  const std::string river = town_name(kTowns + town);
  const std::string founder = person_name(2 * town);
  const std::string teacher = person_name(2 * town + 1);
  const Fill values = {{"town", name},
                       {"founder", founder},
                       {"river", river},
                       {"thing", thing},
                       {"teacher", teacher}};
  const std::string* texts = &word_list("town_facts")[3 * paragraph];
  return {fill(texts[0], values), fill(texts[1], values), fill(texts[2], values)};
}

QaCorpus towns(std::uint64_t seed) {
  QaCorpus corpus{.documents = kTowns * kParagraphs, .questions = kTowns * kParagraphs};
  corpus.document = [seed](std::size_t d) {
    Random random = random_for(seed, "paragraph", d);
    return with_prose(town_fact(seed, d / kParagraphs, d % kParagraphs).statement, random, 4);
  };
  corpus.question = [seed](std::size_t q) {
    // The stride shares no factor with the number of towns: each is asked about once per round.
    const std::size_t town = (q * 4999 + seed % kTowns) % kTowns;
    const std::size_t paragraph = (q + q / kTowns) % kParagraphs;
    const Fact fact = town_fact(seed, town, paragraph);
    QaQuestion question{fact.query, {fact.answer}, {town * kParagraphs + paragraph}, {}};
    for (std::size_t p = 0; p < kParagraphs; ++p) {
      if (p != paragraph) question.more.push_back(town * kParagraphs + p);
    }
    return question;
  };
  return corpus;
}

// Bridges and their builders in turn: documents 10 g .. 10 g + 9 are five of each.
constexpr std::size_t kBridgeGroups = 3000;

QaCorpus bridges(std::uint64_t seed) {
  QaCorpus corpus{.documents = 10 * kBridgeGroups, .questions = kBridgeGroups};
  corpus.document = [seed](std::size_t d) {
    Random random = random_for(seed, "bridge", d);
    const std::size_t pair = d / 2;
    const std::string bridge = town_name(pair);
    const std::string builder = person_name(pair);
    const std::string fact =
        d % 2 == 0 ? cat(bridge, " Bridge\n", bridge, " Bridge was built by ", builder, ".")
                   : cat(builder, "\n", builder, " was born in ",
                         town_name(5 * kBridgeGroups + pair), " and learned the trade early.");
    return with_prose(fact, random, 4);
  };
  corpus.question = [seed](std::size_t q) {
    const std::size_t group = (q * 997 + seed % kBridgeGroups) % kBridgeGroups;
    Random random = random_for(seed, "builder", group);
    const std::size_t pair = 5 * group + random.below(5);
    QaQuestion question;
    question.query = cat("In which town was the builder of ", town_name(pair), " Bridge born?");
    question.expected = {town_name(5 * kBridgeGroups + pair)};
    for (std::size_t d = 0; d < 10; ++d) question.given.push_back(10 * group + d);
    return question;
  };
  return corpus;
}

// Each text once, with its number.
struct Documents {
  std::size_t add(const std::string& text) {
    const auto [it, fresh] = numbers.emplace(text, texts.size());
    if (fresh) texts.push_back(text);
    return it->second;
  }
  std::vector<std::string> texts;
  std::map<std::string, std::size_t> numbers;
};

void read_squad(const nlohmann::json& file, Documents& documents, std::vector<QaQuestion>& list) {
  for (const auto& article : file.at("data")) {
    std::vector<std::size_t> own;
    for (const auto& p : article.at("paragraphs")) {
      own.push_back(documents.add(p.at("context").get<std::string>()));
    }
    std::size_t i = 0;
    for (const auto& p : article.at("paragraphs")) {
      const std::size_t here = own[i++];
      for (const auto& qa : p.at("qas")) {
        QaQuestion question;
        for (const auto& a : qa.at("answers")) question.expected.push_back(a.at("text"));
        if (qa.value("is_impossible", false) || question.expected.empty()) continue;
        question.query = qa.at("question").get<std::string>();
        question.given = {here};
        std::remove_copy(own.begin(), own.end(), std::back_inserter(question.more), here);
        list.push_back(std::move(question));
      }
    }
  }
}

void read_hotpot(const nlohmann::json& file, Documents& documents, std::vector<QaQuestion>& list) {
  for (const auto& item : file) {
    QaQuestion question;
    question.query = item.at("question").get<std::string>();
    question.expected = {item.at("answer").get<std::string>()};
    for (const auto& entry : item.at("context")) {
      std::string text = entry.at(0).get<std::string>() + "\n";
      for (const auto& sentence : entry.at(1)) text += sentence.get<std::string>();
      question.given.push_back(documents.add(text));
    }
    if (!question.expected[0].empty()) list.push_back(std::move(question));
  }
}

QaCorpus read_corpus(const std::filesystem::path& path, bool single) {
  const nlohmann::json file = read_json_file(path).content;
  const std::string name = path.filename().string();
  Documents documents;
  std::vector<QaQuestion> questions;
  try {
    (single ? read_squad : read_hotpot)(file, documents, questions);
  } catch (const nlohmann::json::exception& e) {
    damaged_data(cat(name, " does not have the structure of ", single ? "SQuAD" : "HotpotQA", ": ",
                     e.what()),
                 single ? "give SQuAD's dev-v2.0.json" : "give hotpot_dev_distractor_v1.json");
  }
  throw_if(questions.empty(), ErrorKind::corrupt, cat(name, " has no question with an answer"),
           "give the development file of the data set");
  QaCorpus corpus{.documents = documents.texts.size(), .questions = questions.size()};
  corpus.document = [texts = std::move(documents.texts)](std::size_t d) { return texts[d]; };
  corpus.question = [list = std::move(questions)](std::size_t q) { return list[q]; };
  return corpus;
}

// The documents of one sample, in random order.
std::vector<std::size_t> choose_documents(const QaCorpus& corpus, const QaQuestion& question,
                                          std::size_t count, Random& random) {
  std::vector<std::size_t> chosen;
  if (count >= corpus.documents) {
    for (std::size_t i = 0; i < count; ++i) chosen.push_back(i % corpus.documents);
  } else {
    chosen = question.given;
    const std::size_t room = count - std::min(count, chosen.size());
    if (question.more.size() >= room) {
      for (const std::size_t i : choose(question.more.size(), room, random)) {
        chosen.push_back(question.more[i]);
      }
    } else {
      extend(chosen, question.more);
      std::set<std::size_t> there(chosen.begin(), chosen.end());
      while (chosen.size() < count) {
        const std::size_t d = random.below(corpus.documents);
        if (there.insert(d).second) chosen.push_back(d);
      }
    }
  }
  shuffle(chosen, random);
  return chosen;
}

QaCorpus corpus_of(bool single, const RulerOptions& options) {
  const std::filesystem::path& path = single ? options.squad : options.hotpot;
  if (path.empty()) return single ? towns(options.seed) : bridges(options.seed);
  return read_corpus(path, single);
}

Drafter niah_drafter(const RulerTask& task, const RulerOptions& options) {
  const auto prose = std::make_shared<Prose>(options.seed);
  const std::string noise = options.prompts.at("ruler/noise").text;
  const std::string needle_form = options.prompts.at("ruler/needle").text;
  const bool one = task.queries * task.values == 1;
  const Prompt prompt = options.prompts.at(one ? "ruler/niah.one" : "ruler/niah.many");
  const std::size_t questions = options.questions;
  const std::size_t key_count = std::max(std::size_t(task.keys), questions);
  const std::size_t needles_of = key_count * std::size_t(task.values);
  Drafter drafter;
  drafter.min = task.haystack == "essay" ? 50 : std::int64_t(needles_of);
  drafter.questions = questions;
  drafter.draft = [=](std::int64_t units, std::size_t index, Random& random) {
    const auto line = [&](const std::string& key, const std::string& value) {
      return fill(needle_form, {{"type", task.value}, {"key", key}, {"value", value}});
    };
    std::vector<std::string> keys;
    std::vector<std::vector<std::string>> values;
    std::vector<std::string> needles;
    while (keys.size() < key_count) {
      const std::string key = draw(task.key, random);
      if (has(keys, key)) continue;
      keys.push_back(key);
      values.emplace_back();
      while (values.back().size() < std::size_t(task.values)) {
        values.back().push_back(draw(task.value, random));
        needles.push_back(line(key, values.back().back()));
      }
    }
    shuffle(needles, random);
    std::vector<std::size_t> asked(keys.size());
    std::iota(asked.begin(), asked.end(), std::size_t(0));
    shuffle(asked, random);
    std::rotate(asked.begin(), asked.begin() + std::ptrdiff_t(index % questions), asked.end());
    asked.resize(std::size_t(task.queries));

    std::vector<std::string> lines;  // of the haystack
    std::vector<std::size_t> places;
    const bool essay = task.haystack == "essay";
    if (essay) {
      for (const std::string_view sentence : prose->first(units)) lines.emplace_back(sentence);
      places = essay_places(lines.size(), needles.size(), random);
    } else {
      places = choose(std::size_t(units), needles.size(), random);
    }
    while (!essay && lines.size() < std::size_t(units)) {
      if (task.haystack == "noise") {
        lines.push_back(noise);
        continue;
      }
      std::string key = draw(task.key, random);
      while (has(keys, key)) key = draw(task.key, random);
      lines.push_back(line(key, draw(task.value, random)));
    }
    const std::string context = with_inserted(lines, needles, places, essay ? ' ' : '\n');

    std::vector<std::string> queries;
    Draft draft;
    for (const std::size_t i : asked) {
      queries.push_back(keys[i]);
      extend(draft.expected, values[i]);
    }
    const std::string query = listed(queries);
    draft.body = fill(prompt.text, {{"type", task.value}, {"context", context}, {"query", query}});
    draft.prefix = fill(prompt.prefix, {{"type", task.value}, {"query", query}});
    return draft;
  };
  return drafter;
}

Drafter vt_drafter(const RulerOptions& options) {
  Drafter drafter{.min = std::int64_t(kHops) + 1};
  drafter.draft = [prompts = options.prompts](std::int64_t units, std::size_t, Random& random) {
    // One worked example comes first, smaller than 500 tokens, with names of three letters.
    const Draft example = draft_chain(prompts, random, 10, 3);
    Draft chain = draft_chain(prompts, random, units, 5);
    chain.body =
        example.body + example.prefix + joined(example.expected, " ") + "\n\n" + chain.body;
    return chain;
  };
  return drafter;
}

Drafter cwe_drafter(const RulerOptions& options, std::int64_t length) {
  Drafter drafter{.min = 20};
  const bool plain = length < kPlainBelow;
  // Some words are lost to those that hold a common one.
  drafter.max = std::int64_t(plain ? plain_words() * 9 / 10 : compound_words() / 2);
  const bool small = length < 4096;
  drafter.draft = [prompt = options.prompts.at("ruler/cwe"), small, plain](
                      std::int64_t units, std::size_t, Random& random) {
    const int rare = small ? 1 : 3;
    const WordList example = draw_words(random, plain, small ? 20 : 40, small ? 3 : 10, rare);
    const WordList list = draw_words(random, plain, std::size_t(units), small ? 6 : 30, rare);
    return Draft{fill(prompt.text, {{"context", numbered(example.all)}}) + prompt.prefix + " " +
                     numbered(example.common) + "\n" +
                     fill(prompt.text, {{"context", numbered(list.all)}}),
                 prompt.prefix, list.common};
  };
  return drafter;
}

Drafter fwe_drafter(const RulerOptions& options, std::int64_t length) {
  constexpr int kAnswerTokens = 50;
  constexpr std::int64_t kMinWords = 120;  // below, the fourth word is no longer ahead of the fifth
  constexpr double kZeta2 = std::numbers::pi * std::numbers::pi / 6;
  const std::int64_t room = std::max<std::int64_t>(length - kAnswerTokens, 1);
  Drafter drafter;
  drafter.grain = std::max<std::int64_t>(room / 32, 1);  // as RULER counts
  drafter.min = kMinWords;
  const auto vocabulary = std::size_t(std::max<std::int64_t>(room / 50, 6));
  drafter.draft = [prompt = options.prompts.at("ruler/fwe"), vocabulary](
                      std::int64_t units, std::size_t, Random& random) {
    std::set<std::string> seen;
    std::vector<std::string> words;
    while (words.size() < vocabulary) {
      std::string word = random_letters(random, 6, 'a');
      if (seen.insert(word).second) words.push_back(std::move(word));
    }
    words[0] = "...";
    std::vector<std::size_t> ranks;
    for (std::size_t k = 1; k <= words.size(); ++k) {
      const auto times = std::size_t(double(units) / double(k) / double(k) / kZeta2);
      ranks.insert(ranks.end(), times, k - 1);
    }
    shuffle(ranks, random);
    const std::string context =
        joined(mapped(ranks, [&](std::size_t rank) { return words[rank]; }), " ");
    return Draft{
        fill(prompt.text, {{"context", context}}), prompt.prefix, {words[1], words[2], words[3]}};
  };
  return drafter;
}

Drafter qa_drafter(const RulerTask& task, const RulerOptions& options, QaCorpora& corpora) {
  const bool single = task.name == "qa_1";
  std::shared_ptr<const QaCorpus>& corpus = corpora[task.name];
  if (!corpus) corpus = std::make_shared<const QaCorpus>(corpus_of(single, options));
  refuse_if(options.samples > corpus->questions,
            cat(options.samples, " samples of ", task.name, ", but there are ", corpus->questions,
                " questions"),
            cat("give --samples ", corpus->questions));
  Drafter drafter{.min = single ? 1 : 10};
  drafter.draft = [corpus, prompt = options.prompts.at("ruler/qa"),
                   form = options.prompts.at("ruler/qa.document").text](
                      std::int64_t units, std::size_t index, Random& random) {
    const QaQuestion question = corpus->question(index % corpus->questions);
    std::string context;
    std::size_t i = 0;
    for (const std::size_t d : choose_documents(*corpus, question, std::size_t(units), random)) {
      if (i > 0) context += "\n\n";
      context += fill(form, {{"i", cat(++i)}, {"document", corpus->document(d)}});
    }
    return Draft{fill(prompt.text, {{"context", context}, {"query", question.query}}),
                 prompt.prefix, question.expected};
  };
  return drafter;
}

}  // namespace

Drafter ruler_drafter(const RulerTask& task, const RulerOptions& options, std::int64_t length,
                      QaCorpora& corpora) {
  if (task.name == "vt") return vt_drafter(options);
  if (task.name == "cwe") return cwe_drafter(options, length);
  if (task.name == "fwe") return fwe_drafter(options, length);
  return task.haystack.empty() ? qa_drafter(task, options, corpora) : niah_drafter(task, options);
}

}  // namespace mrrope::eval
