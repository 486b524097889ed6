// SPDX-License-Identifier: Apache-2.0
// RULER's qa: a question whose answer is in one (qa_1) or two (qa_2) of many documents. From
// SQuAD and HotpotQA files, or from invented towns and bridges.
#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <set>

#include "base/text.h"
#include "eval/tasks/ruler/ruler.h"
#include "eval/text/documents.h"
#include "eval/text/word_list.h"
#include "mrrope/error.h"

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
  std::function<std::string(std::size_t)> document;
  std::function<QaQuestion(std::size_t)> question;
};

namespace {

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
  const std::string name = town_name(town);
  std::string thing = random_key(random);
  std::replace(thing.begin(), thing.end(), '-', ' ');
  switch (paragraph) {
    case 0: {
      const std::string founder = person_name(2 * town);
      return {cat("The town of ", name, " was founded by ", founder, "."),
              cat("Who founded the town of ", name, "?"), founder};
    }
    case 1: {
      const std::string river = town_name(kTowns + town);
      return {cat(name, " lies on the river ", river, ", which often floods its lower streets."),
              cat("On which river does the town of ", name, " lie?"), river};
    }
    case 2:
      return {cat("For generations the people of ", name, " lived on the ", thing, " trade."),
              cat("Which trade did the people of ", name, " live on?"), thing};
    case 3: {
      const std::string teacher = person_name(2 * town + 1);
      return {cat("The first school of ", name, " was opened by ", teacher, "."),
              cat("Who opened the first school of ", name, "?"), teacher};
    }
    default:
      return {cat("Every summer ", name, " celebrates the feast of the ", thing, "."),
              cat("Which feast does ", name, " celebrate every summer? The feast of the"), thing};
  }
}

QaCorpus towns(std::uint64_t seed) {
  QaCorpus corpus;
  corpus.documents = kTowns * kParagraphs;
  corpus.questions = kTowns * kParagraphs;
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
  QaCorpus corpus;
  corpus.documents = 10 * kBridgeGroups;
  corpus.questions = kBridgeGroups;
  corpus.document = [seed](std::size_t d) {
    Random random = random_for(seed, "bridge", d);
    const std::size_t pair = d / 2;
    const std::string bridge = town_name(pair);
    const std::string builder = person_name(pair);
    if (d % 2 == 0) {
      return with_prose(cat(bridge, " Bridge\n", bridge, " Bridge was built by ", builder, "."),
                        random, 4);
    }
    return with_prose(cat(builder, "\n", builder, " was born in ",
                          town_name(5 * kBridgeGroups + pair), " and learned the trade early."),
                      random, 4);
  };
  corpus.question = [seed](std::size_t q) {
    const std::size_t group = (q * 997 + seed % kBridgeGroups) % kBridgeGroups;
    Random random = random_for(seed, "builder", group);
    const std::size_t pair = 5 * group + random.below(5);
    QaQuestion question{cat("In which town was the builder of ", town_name(pair), " Bridge born?"),
                        {town_name(5 * kBridgeGroups + pair)},
                        {},
                        {}};
    for (std::size_t d = 0; d < 10; ++d) question.given.push_back(10 * group + d);
    return question;
  };
  return corpus;
}

// Each text once, with its number.
class Documents {
 public:
  std::size_t add(const std::string& text) {
    const auto [it, fresh] = number_.emplace(text, texts_.size());
    if (fresh) texts_.push_back(text);
    return it->second;
  }
  std::vector<std::string> texts_;

 private:
  std::map<std::string, std::size_t> number_;
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
    throw Error(ErrorKind::corrupt,
                cat(name, " does not have the structure of ", single ? "SQuAD" : "HotpotQA", ": ",
                    e.what()),
                single ? "give SQuAD's dev-v2.0.json" : "give hotpot_dev_distractor_v1.json");
  }
  if (questions.empty()) {
    throw Error(ErrorKind::corrupt, cat(name, " has no question with an answer"),
                "give the development file of the data set");
  }
  QaCorpus corpus;
  corpus.documents = documents.texts_.size();
  corpus.questions = questions.size();
  corpus.document = [texts = std::move(documents.texts_)](std::size_t d) { return texts[d]; };
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
      chosen.insert(chosen.end(), question.more.begin(), question.more.end());
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

}  // namespace

Drafter qa_drafter(const RulerTask& task, const RulerOptions& options, QaCorpora& corpora) {
  const bool single = task.name == "qa_1";
  std::shared_ptr<const QaCorpus>& corpus = corpora[task.name];
  if (!corpus) corpus = std::make_shared<const QaCorpus>(corpus_of(single, options));
  if (options.samples > corpus->questions) {
    throw Error(ErrorKind::usage,
                cat(options.samples, " samples of ", task.name, ", but there are ",
                    corpus->questions, " questions"),
                cat("give --samples ", corpus->questions));
  }
  Drafter drafter;
  drafter.min = single ? 1 : 10;
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

}  // namespace mrrope::eval
