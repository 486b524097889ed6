// SPDX-License-Identifier: Apache-2.0
// Claims that numbers decide: those that the paper prints, and those of runs.
#include <algorithm>
#include <set>

#include "base/json.h"
#include "base/text.h"
#include "mrrope/error.h"
#include "report/json_fields.h"
#include "report/paper/claim_rules.h"
#include "report/paper/claims.h"

namespace mrrope::report {

using nlohmann::ordered_json;

namespace {

ResultClaim claim_from(const ordered_json& json) {
  ResultClaim c;
  c.id = json.at("id").get<std::string>();
  c.place = json.at("place").get<std::string>();
  c.says = json.at("says").get<std::string>();
  c.tables = json.at("tables").get<std::vector<std::string>>();
  c.presets = json.at("presets").get<std::vector<std::string>>();
  c.rule = rule_named(json.at("rule").get<std::string>());
  c.a = json.value("a", c.a);
  c.b = json.value("b", c.b);
  c.number = json.value("number", c.number);
  c.tasks = json.value("tasks", c.tasks);
  c.from = json.value("from", c.from);
  c.to = json.value("to", c.to);
  if (json.contains("depths")) {
    c.depth_from = json.at("depths").at(0).get<double>();
    c.depth_to = json.at("depths").at(1).get<double>();
  }
  c.low = json.value("low", c.low);
  c.note = json.value("note", c.note);
  return c;
}

std::string command_of(const ResultClaim& claim) {
  if (claim.presets.empty()) {
    return "mrrope theory attention MODEL --methods yarn,pro --scale 16 --json > attention.json";
  }
  std::string out;
  for (const std::string& name : claim.presets) {
    const auto is = [&](const char* start) { return name.rfind(start, 0) == 0; };
    const char* data = is("ppl") || is("sweep")            ? " --text DATA"
                       : is("infinite") || is("longbench") ? " --data DATA"
                       : is("needle")                      ? " --haystack DATA"
                                                           : "";
    out += cat(out.empty() ? "" : "; ", "mrrope --preset paper/", name, " MODEL", data, " -o DIR");
  }
  return out;
}

bool any_number(const std::vector<ClaimPart>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [](const ClaimPart& p) { return p.outcome != ClaimPart::Outcome::missing; });
}

// Where several runs measure a claim, one without a part leaves it to another.
void add_parts(std::vector<ClaimPart>& all, std::vector<ClaimPart> more) {
  for (ClaimPart& part : more) {
    const auto same = [&](const ClaimPart& p) { return p.name == part.name; };
    const auto found = std::find_if(all.begin(), all.end(), same);
    const bool missing = part.outcome == ClaimPart::Outcome::missing;
    if (found == all.end() || (!missing && found->outcome != ClaimPart::Outcome::missing)) {
      all.push_back(std::move(part));
    } else if (!missing) {
      *found = std::move(part);
    }
  }
}

// Parts of one table, named by its model if the claim is about several.
std::vector<ClaimPart> named_parts(const ResultClaim& claim, const ordered_json& table,
                                   const Source& source, const ordered_json& printed) {
  std::vector<ClaimPart> parts = parts_of(claim, table, source, printed);
  if (claim.tables.size() == 1) return parts;
  for (ClaimPart& p : parts) p.name = cat(table.at("model").get<std::string>(), " ", p.name);
  return parts;
}

// What a run of another setting says about a claim.
struct Elsewhere {
  std::size_t claim = 0;
  std::string run_and_rule;
  std::vector<std::string> differences;
  std::string text;
};

// Adds what a run of another setting says, if anything. A model that the paper has elsewhere
// decides its own claims only.
void add_elsewhere(std::vector<Elsewhere>& all, std::size_t index, const ResultClaim& claim,
                   const RunRecord& run, const ordered_json& table, const ordered_json& printed) {
  const std::string model = paper_model(run);
  if (!table.contains("model") || (!model.empty() && table.at("model") != model)) return;
  const std::vector<ClaimPart> parts = parts_of(claim, table, {&run, true}, printed);
  if (!any_number(parts)) return;
  Elsewhere e{index, cat(rule_text(claim), run.name, run.folder),
              setting_differences(run, table, claim.a), parts_text(parts)};
  std::string differences;
  for (const std::string& d : e.differences) differences += (differences.empty() ? "" : ", ") + d;
  e.text = cat(run.name, " (", differences.empty() ? run.model : differences, "): ", e.text);
  // Claims about several models have one rule: the run is shown under the model it is most like.
  const auto same = [&](const Elsewhere& other) { return other.run_and_rule == e.run_and_rule; };
  const auto known = std::find_if(all.begin(), all.end(), same);
  if (known == all.end()) {
    all.push_back(std::move(e));
  } else if (e.differences.size() < known->differences.size()) {
    *known = std::move(e);
  }
}

void measure(Claim& out, std::size_t index, const ResultClaim& claim,
             const std::vector<RunRecord>& runs, const ordered_json& printed,
             std::vector<Elsewhere>& elsewhere) {
  std::vector<ClaimPart> alike;
  std::vector<std::string> names;
  for (const std::string& id : claim.tables) {
    const ordered_json& table = *paper_table(id, printed);
    for (const RunRecord& run : runs) {
      if (!run.problem.empty()) continue;
      std::vector<ClaimPart> parts = named_parts(claim, table, {&run, false}, printed);
      if (any_number(parts)) {
        names.push_back(run.name);
        add_parts(alike, std::move(parts));
        continue;
      }
      add_elsewhere(elsewhere, index, claim, run, table, printed);
    }
  }
  if (!any_number(alike)) return;
  for (const std::string& name : std::set<std::string>(names.begin(), names.end())) {
    out.measured += (out.measured.empty() ? "" : ", ") + name;
  }
  out.measured += ": " + parts_text(alike);
  out.state = state_of_parts(alike);
  out.parts = std::move(alike);
}

}  // namespace

std::vector<Claim> result_claims(const std::vector<RunRecord>& runs, const ordered_json& printed) {
  std::vector<Claim> out;
  std::vector<Elsewhere> elsewhere;
  for (const ordered_json& entry : printed.at("claims")) {
    const ResultClaim row = claim_from(entry);
    Claim c;
    c.id = row.id;
    c.place = row.place;
    c.says = row.says;
    c.rule = rule_text(row);
    c.command = command_of(row);
    for (const std::string& id : row.tables) {
      const ordered_json& table = *paper_table(id, printed);
      if (table.contains("rows")) add_parts(c.parts, named_parts(row, table, {}, printed));
    }
    c.state = state_of_parts(c.parts);
    c.found = c.parts.empty() ? "the paper prints no numbers for this, only a figure"
                              : "the paper's own numbers: " + parts_text(c.parts);
    if (!row.note.empty()) c.found += cat("; ", row.note);
    measure(c, out.size(), row, runs, printed, elsewhere);
    out.push_back(std::move(c));
  }
  for (const Elsewhere& e : elsewhere) {
    std::string& text = out[e.claim].elsewhere;
    text += (text.empty() ? "" : "; ") + e.text;
  }
  return out;
}

RunRecord read_attention(const std::filesystem::path& file) {
  const ordered_json json = read_json(file, {.bytes = std::uint64_t{64} << 20});
  RunRecord record;
  record.folder = file.string();
  record.name = file.filename().string();
  record.task = "attention";
  const auto has_list = [&](const char* key) { return json.contains(key) && json[key].is_array(); };
  if (!json.is_object() || !has_list("plans") || !has_list("distances") ||
      count_at(json, "window") == 0) {
    throw Error(ErrorKind::corrupt,
                cat(file.string(), " is not a result of mrrope theory attention"),
                "give the output of mrrope theory attention MODEL --json, or folders of runs");
  }
  record.model = text_at(json, "model");
  record.window = count_at(json, "window");
  RecordedAttention attention;
  for (const ordered_json& distance : list_at(json, "distances")) {
    if (!distance.is_number() || distance.get<double>() <= double(record.window)) continue;
    attention.past += std::size_t(count_at(json, "pairs"));
  }
  for (const ordered_json& plan : list_at(json, "plans")) {
    if (!plan.is_object()) refuse_results("a plan is not an object");
    attention.lines.push_back(
        {text_at(plan, "method"), number_at(plan, "falls_until"), value_at(plan, "ks")});
  }
  record.attention = std::move(attention);
  return record;
}

}  // namespace mrrope::report
