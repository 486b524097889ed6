// SPDX-License-Identifier: Apache-2.0
#include "tune/search.h"

#include "base/interrupt.h"
#include "support/scripted.h"
#include "support/test.h"

namespace mrrope::tune {
namespace {

std::string some_text(int start, int bytes) {
  std::string text;
  for (int i = start; int(text.size()) < bytes; ++i) {
    text += "Line " + std::to_string(i * 37 % 1009) + " of the text stands here.\n";
  }
  return text;
}

std::vector<eval::Document> some_documents(int count, int bytes) {
  std::vector<eval::Document> out;
  for (int i = 0; i < count; ++i) {
    out.push_back({"d" + std::to_string(i), some_text(100 * i, bytes)});
  }
  return out;
}

class SearchTest : public testing::Test {
 protected:
  SearchTest() {
    model_.emplace(ScriptedOptions{});
    options_.form = eval::make_form(*model_, "planted", std::nullopt, 0);
    options_.questions = 2;
    options_.budget = 20;
    options_.weight = 0.05;
  }
  SearchResult run(eval::RunFolder& folder, Growth growth = Growth::none) {
    const Space space = make_space(model_->facts().geometry, 1024, growth);
    const SearchSet set = make_search_set(*model_, space, some_documents(4, 1500), options_);
    eval::Progress progress;
    return run_search(*model_, space, set, published(space), options_, folder, progress);
  }
  SearchResult run(Growth growth = Growth::none) {
    eval::RunFolder folder;
    return run(folder, growth);
  }
  SearchResult run_in(const test::TempFolder& temp) {
    eval::RunFolder folder(temp / "run", {"mrrope tune again", "model", 1});
    return run(folder);
  }

  std::optional<ScriptedModel> model_;
  SearchOptions options_;
};

TEST_F(SearchTest, ChoosesTheBestFullyMeasuredPlanWithinTheBudget) {
  for (const Growth growth : {Growth::none, Growth::elastic, Growth::far}) {
    const SearchResult r = run(growth);
    EXPECT_LE(r.passes, options_.budget);
    EXPECT_GT(r.passes, options_.budget / 2);
    ASSERT_TRUE(r.trials[r.best].complete);
    std::size_t of_family = 0;
    for (const Trial& t : r.trials) {
      if (t.complete) {
        EXPECT_GE(t.objective.value, r.trials[r.best].objective.value);
      }
      of_family += t.proposal.origin == "refined";
    }
    EXPECT_GT(of_family, 3u);
    ASSERT_FALSE(r.front.empty());
    for (std::size_t i = 1; i < r.front.size(); ++i) {
      // Plans that differ in sharpen alone are equal to a scripted model.
      EXPECT_LE(r.trials[r.front[i]].answer_loss.value, r.trials[r.front[i - 1]].answer_loss.value);
    }
  }
}

TEST_F(SearchTest, SameSeedGivesTheSamePath) {
  const auto text = [&](const SearchResult& r) { return to_json(r, 0.05).dump(); };
  const std::string a = text(run());
  EXPECT_EQ(a, text(run()));
  options_.seed = 2;
  EXPECT_NE(a, text(run()));
}

TEST_F(SearchTest, ResumesWhereItStopped) {
  const test::TempFolder temp(test::fast_place());
  const SearchResult whole = run();
  const std::int64_t all = model_->computed();
  model_.emplace(ScriptedOptions{.fail_at = all / 2});
  EXPECT_THROW(run_in(temp), Error);
  model_.emplace(ScriptedOptions{});
  const SearchResult resumed = run_in(temp);
  EXPECT_EQ(resumed.trials[resumed.best].proposal.numbers,
            whole.trials[whole.best].proposal.numbers);
  EXPECT_EQ(resumed.trials.size(), whole.trials.size());
  EXPECT_EQ(resumed.passes, whole.passes);
  const std::int64_t computed = model_->computed();
  EXPECT_LT(computed, all * 6 / 10);
  // Now everything comes from the journal.
  run_in(temp);
  EXPECT_EQ(model_->computed(), computed);
}

TEST_F(SearchTest, RefusesJournalLinesOfWrongTypes) {
  const test::TempFolder temp(test::fast_place());
  run_in(temp);
  const std::string journal = test::read_file(temp.path() / "run/journal.jsonl");
  const std::size_t first = journal.find('\n') + 1;
  const std::size_t end = journal.find('\n', first);
  const auto unit = nlohmann::ordered_json::parse(journal.substr(first, end - first));
  for (const char* key : {"numbers", "text", "length", "bands"}) {
    auto changed = unit;
    changed[key] = nullptr;
    test::write_file(temp.path() / "run/journal.jsonl",
                     journal.substr(0, first) + changed.dump() + journal.substr(end));
    EXPECT_ERROR(run_in(temp), corrupt, "damaged");
  }
}

TEST_F(SearchTest, InterruptNamesTheCommandThatResumes) {
  const test::TempFolder temp(test::fast_place());
  request_interrupt();
  const Error e = test::error_of([&] { run_in(temp); });
  EXPECT_EQ(e.kind(), ErrorKind::interrupted);
  EXPECT_TRUE(contains(e.hint(), "mrrope tune again"));
  clear_interrupt();
}

TEST_F(SearchTest, TooSmallBudgetIsRefusedWithTheMinimum) {
  options_.budget = 1;
  EXPECT_ERROR(run(), usage, "budget of 1 ", "plans takes ");
}

TEST_F(SearchTest, NanEverywhereIsReportedAsAnError) {
  model_.emplace(ScriptedOptions{.nan_at = 100});
  EXPECT_ERROR(run(), failed, "not a number under any");
}

TEST_F(SearchTest, OnlyPlansWithNanAreDropped) {
  model_.emplace(ScriptedOptions{.nan_at = 100, .nan_method = "yarn"});
  const SearchResult r = run();
  EXPECT_NE(r.trials[r.best].proposal.method.name, "yarn");
  for (const Trial& t : r.trials) {
    EXPECT_FALSE(t.complete && t.proposal.method.name == "yarn");
  }
}

std::vector<Token> not_planted(const SearchText& text) {
  std::vector<Token> own;
  for (std::size_t i = 0; i < text.tokens.size(); ++i) {
    if (!text.planted[i]) own.push_back(text.tokens[i]);
  }
  return own;
}

TEST(SearchText, PlantsEveryAnswerOnceAndAsksForIt) {
  const ScriptedModel model({});
  const eval::NeedleForm form = eval::make_form(model, "planted", std::nullopt, 0);
  const std::vector<Token> document = model.tokenize(some_text(1, 3000), false, false);
  const SearchText text = plant(model, form, "d", document, 2048, 4, 1, 0);
  EXPECT_LE(std::int64_t(text.tokens.size()), 2048);
  ASSERT_EQ(text.asked.size(), 4u);
  ASSERT_EQ(text.planted.size(), text.tokens.size());
  const std::string whole = model.detokenize(text.tokens);
  std::set<std::string> answers;
  for (const PlantedAnswer& asked : text.asked) {
    const std::string question = model.detokenize(asked.question);
    EXPECT_EQ(asked.answer, 7u) << "a blank and six digits";
    const std::string answer = question.substr(question.size() - 7);
    EXPECT_EQ(answer.front(), ' ');
    EXPECT_TRUE(contains(whole, "is" + answer + ".")) << question;
    EXPECT_TRUE(answers.insert(answer).second);
    EXPECT_LE(std::int64_t(text.tokens.size() + asked.question.size()), 2048);
  }
  // Without what was planted it is the document.
  const std::vector<Token> own = not_planted(text);
  EXPECT_TRUE(std::equal(own.begin(), own.end(), document.begin()));
  EXPECT_THROW(plant(model, form, "d", document, 300, 4, 1, 0), Error);
}

// The second time a model has read it already.
TEST(SearchText, RepeatsAShortDocumentAndDoesNotCountTheRepetition) {
  const ScriptedModel model({});
  const eval::NeedleForm form = eval::make_form(model, "planted", std::nullopt, 0);
  const std::vector<Token> document = model.tokenize(some_text(1, 700), false, false);
  const SearchText text = plant(model, form, "d", document, 2048, 4, 1, 0);
  EXPECT_GT(text.tokens.size(), 1900u);
  const std::vector<Token> own = not_planted(text);
  EXPECT_EQ(own, document);
  EXPECT_THROW(plant(model, form, "d", {}, 2048, 4, 1, 0), Error);
}

TEST(SearchText, ProofsAskForOtherWords) {
  const ScriptedModel model({});
  SearchOptions options;
  options.form = eval::make_form(model, "planted", std::nullopt, 0);
  options.questions = 2;
  const auto documents = some_documents(1, 1500);
  const Space space = make_space(model.facts().geometry, 1024, Growth::none);
  const SearchText search = make_search_set(model, space, documents, options).texts.front();
  const SearchText proof = make_proof_texts(model, 1024, documents, options).front();
  EXPECT_EQ(proof.asked.size(), 2u);
  EXPECT_NE(proof.asked.front().question, search.asked.front().question);
}

TEST_F(SearchTest, ComparesLikelyPlansWithinTheLeastBudgetAndMeasuresAutoInFull) {
  const Space space = make_space(model_->facts().geometry, 1024, Growth::far);
  const SearchSet set = make_search_set(*model_, space, some_documents(2, 1500), options_);
  const std::vector<Proposal> first = likely(space);
  options_.budget = least_budget(set, first.size());
  eval::RunFolder folder;
  eval::Progress progress;
  const SearchResult r = run_search(*model_, space, set, first, options_, folder, progress);
  EXPECT_EQ(r.trials.size(), first.size()) << "nothing but the likely plans";
  EXPECT_EQ(r.trials.front().proposal.name, "auto");
  EXPECT_TRUE(r.trials.front().complete);
  EXPECT_TRUE(r.trials[r.best].complete);
  EXPECT_LE(r.passes, options_.budget);
}

TEST(Split, IsDisjointJoinsShortTextsAndRefusesTooFew) {
  const ScriptedModel model({});
  std::vector<eval::Document> documents = some_documents(6, 1200);
  for (int i = 0; i < 6; ++i) {
    documents.push_back({"s" + std::to_string(i), some_text(i, 600)});
  }
  const Split split = split_documents(model, documents, 1000, 8, 0, 1);
  EXPECT_EQ(split.search.size() + split.held_out.size(), 9u);
  EXPECT_EQ(split.search.size(), 4u);
  std::set<std::string> ids;
  for (const auto* part : {&split.search, &split.held_out}) {
    for (const eval::Document& d : *part) {
      EXPECT_GE(d.text.size(), 1000u);
      EXPECT_TRUE(ids.insert(d.id).second);
    }
  }
  EXPECT_EQ(split_documents(model, documents, 1000, 2, 3, 1).search.size(), 2u);
  EXPECT_EQ(split_documents(model, documents, 1000, 2, 3, 1).held_out.size(), 3u);
  EXPECT_ERROR(split_documents(model, some_documents(2, 1200), 1000, 8, 0, 1), usage,
               "not enough text");
}

TEST(Split, HalvesAreDisjointAndEveryTextBeginsWithAnotherDocument) {
  const std::vector<eval::Document> documents = some_documents(6, 300);
  const Split split = split_halves(documents, 2, 9, 1);
  ASSERT_EQ(split.search.size(), 2u);
  ASSERT_EQ(split.held_out.size(), 3u) << "as many as documents in a half";
  const auto holds = [&](const eval::Document& text, std::size_t i) {
    return text.text.find(documents[i].text) != std::string::npos;
  };
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const bool searched = holds(split.search[0], i);
    for (const eval::Document& text : split.search) EXPECT_EQ(holds(text, i), searched);
    for (const eval::Document& text : split.held_out) EXPECT_NE(holds(text, i), searched);
  }
  EXPECT_NE(split.search[0].id, split.search[1].id);
  EXPECT_NE(split.search[0].text.substr(0, 200), split.search[1].text.substr(0, 200));
  EXPECT_NE(split_halves(documents, 2, 2, 2).search[0].id, split.search[0].id);
}

}  // namespace
}  // namespace mrrope::tune
