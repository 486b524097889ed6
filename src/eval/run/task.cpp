// SPDX-License-Identifier: Apache-2.0
#include "eval/run/task.h"

#include "base/json.h"
#include "base/text.h"
#include "mrrope/error.h"

namespace mrrope::eval {

using nlohmann::ordered_json;

namespace {

// Plain ASCII, of bounded length.
std::string quoted(const ordered_json& value) {
  const std::string text = value.dump(-1, ' ', true, ordered_json::error_handler_t::replace);
  return text.size() > 200 ? text.substr(0, 197) + "..." : text;
}

}  // namespace

const Task* find_task(std::string_view name) {
  const std::string_view first = name.substr(0, name.find('/'));
  for (const Task& task : tasks()) {
    if (task.name == first) return &task;
  }
  return nullptr;
}

const Task& task_of(const ordered_json& run) {
  const auto name = run.find("task");
  const Task* task =
      name != run.end() && name->is_string() ? find_task(name->get<std::string>()) : nullptr;
  if (task == nullptr) {
    throw Error(ErrorKind::corrupt,
                cat("run.json is not of a task of mrrope eval: ",
                    name != run.end() ? quoted(*name) : std::string("it names none")),
                "give the --out folder of an evaluation");
  }
  return *task;
}

std::vector<UnitPlace> unit_places(const MakePlaceOf& places, const ordered_json& run,
                                   const std::vector<ordered_json>& units) {
  std::vector<UnitPlace> all;
  read_recorded([&] {
    const PlaceOf place = places(run);
    for (const ordered_json& unit : units) {
      try {
        all.push_back(place(unit));
      } catch (const nlohmann::json::exception& e) {
        throw Error(ErrorKind::corrupt,
                    cat("line ", all.size() + 2, " of the journal is damaged: ", e.what()),
                    "delete this line, or the folder");
      }
    }
  });
  return all;
}

void check_grid(std::initializer_list<std::size_t> counts) {
  constexpr std::size_t kMax = 2'000'000;
  std::size_t product = 1;
  for (const std::size_t count : counts) {
    if (count > 0 && product > kMax / count) {
      throw Error(ErrorKind::corrupt, "run.json describes more results than an evaluation has",
                  "give another folder, or run the evaluation again");
    }
    product *= count;
  }
}

std::vector<std::int64_t> recorded_lengths(const ordered_json& list) {
  std::vector<std::int64_t> lengths;
  for (const ordered_json& length : list) lengths.push_back(whole<std::int64_t>(length));
  bool good = !lengths.empty() && lengths.front() > 0;
  for (std::size_t i = 1; i < lengths.size(); ++i) good &= lengths[i] > lengths[i - 1];
  if (!good) {
    throw Error(ErrorKind::corrupt, cat("run.json has unusable lengths: ", quoted(list)),
                "give another folder, or run the evaluation again");
  }
  return lengths;
}

void foreign_line(const ordered_json& line) {
  throw Error(ErrorKind::corrupt, cat("a journal line is not of this run: ", quoted(line)),
              "delete the line, or the folder");
}

std::int64_t token_count(const ordered_json& unit, const char* key) {
  constexpr std::int64_t kMax = std::int64_t{1} << 40;  // a journal has fewer than 2^23 lines
  const auto count = whole<std::int64_t>(unit.at(key));
  if (count < 0 || count > kMax) foreign_line(unit);
  return count;
}

void read_recorded(const std::function<void()>& action) {
  try {
    action();
  } catch (const nlohmann::json::exception& e) {
    throw Error(ErrorKind::corrupt, cat("run.json or the journal lacks something: ", e.what()),
                "give another folder, or run the evaluation again");
  }
}

}  // namespace mrrope::eval
