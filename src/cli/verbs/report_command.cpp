// SPDX-License-Identifier: Apache-2.0
// mrrope report: one page from the folders of evaluations.
#include <fstream>
#include <iostream>

#include "base/json.h"
#include "base/text.h"
#include "cli/app.h"
#include "cli/args/options.h"
#include "report/report.h"

namespace mrrope::cli {

namespace fs = std::filesystem;

namespace {

struct ReportFlags {
  std::vector<std::string> folders;
  std::string out;
  std::string format = "text";
  std::string svg;  // a folder; the name before --format svg
};

void write_svgs(const std::vector<report::Figure>& figures, const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  throw_if(error || !folder_exists(folder), ErrorKind::failed,
           cat("cannot create the folder ", folder), "choose a folder you can write to");
  for (const report::Figure& f : figures) {
    write_output((fs::path(folder) / (f.file + ".svg")).string(), report::svg_file({f}));
  }
  note(cat("wrote ", figures.size(), " figures to ", folder));
}

// A page named like a file of a run that it shows would replace that.
void refuse_files_of_runs(const std::string& out, const std::vector<report::RunRecord>& records) {
  for (const report::RunRecord& r : records) {
    for (const char* name : {"run.json", "journal.jsonl", "results.json"}) {
      refuse_if(same_file(out, fs::path(r.folder) / name),
                cat(out, " is part of the run in ", r.folder),
                "give the page another name, e.g. -o report.html");
    }
  }
}

// Without -o the name was not chosen, so a page of another tool stays.
void refuse_other_pages(const std::string& out) {
  if (!file_exists(out)) return;  // whatever else it is: never written to
  std::ifstream page(out, std::ios::binary);
  std::string head(4096, '\0');
  page.read(head.data(), std::streamsize(head.size()));
  if (head.find(report::kPageMark) != std::string::npos) return;
  refuse(cat(out, " exists, and mrrope did not write it"),
         "give the page another name, e.g. -o mrrope-report.html");
}

// Shards become one run in a folder.
bool joins_shards(const ReportFlags& flags) {
  const std::string ending = fs::path(flags.out).extension().string();
  return !flags.out.empty() && flags.out != "-" && flags.format != "svg" && ending != ".html" &&
         ending != ".htm" && ending != ".md" &&
         std::any_of(flags.folders.begin(), flags.folders.end(), eval::is_shard);
}

void join_shards(const ReportFlags& flags) {
  const eval::WrittenRun joined =
      eval::write_joined({flags.folders.begin(), flags.folders.end()}, flags.out, command_line());
  note(cat("joined ", joined.units, " units of ", flags.folders.size(), " shards; wrote ",
           flags.out, "/results.json"));
  std::cout << (flags.format == "json" ? eval::results_text(to_json(joined.table))
                                       : to_text(joined.table));
  write_report(flags.out);
}

void run_report(const ReportFlags& flags) {
  if (joins_shards(flags)) return join_shards(flags);
  const std::vector<report::RunRecord> records = report::read_records(flags.folders);
  for (const report::RunRecord& r : records) {
    if (!r.problem.empty()) note(cat("skipped ", r.folder, ": ", r.problem));
  }
  std::string out = flags.out;
  if (flags.format == "svg") {
    refuse_if(out.empty() || out == "-", "no folder given for the charts", "give it with -o DIR");
    return write_svgs(figures_of(records), out);
  }
  if (out.empty()) {
    out = flags.folders.size() == 1 ? (fs::path(flags.folders[0]) / "report.html").string()
                                    : "report.html";
    refuse_other_pages(out);
  }
  refuse_if(out == "-" && flags.format == "json", "-o - and --json both print to standard output",
            "give one of them, or -o FILE");
  refuse_files_of_runs(out, records);
  if (!flags.svg.empty()) {
    note("--svg DIR is now --format svg -o DIR");
    write_svgs(figures_of(records), flags.svg);
  }
  if (fs::path(out).extension() == ".md") {
    const report::MarkdownPage page =
        report_markdown(records, fs::path(out).stem().string(), command_line());
    write_svgs(page.figures, (fs::path(".") / fs::path(out).parent_path()).string());
    write_output(out, page.text);
  } else {
    write_output(out, report_page(records));
  }
  if (out == "-") return;
  if (flags.format == "json") {
    std::cout << json_text(report_json(records), 2) << "\n";
  } else {
    std::cout << report_text(records);
  }
  note(cat("wrote ", out));
}

}  // namespace

void write_report(const std::string& folder) {
  const std::string path = folder + "/report.html";
  write_output(path, report::report_page(report::read_records({folder})));
  note("wrote " + path);
}

void add_report(CLI::App& app) {
  const auto [verb, flags] = add_verb<ReportFlags>(app, "report", run_report);
  add(verb, "folders", flags.folders)->required();
  add(verb, "-o,--out", flags.out);
  add(verb, "--svg", flags.svg)->group("");
  add_format(verb, flags.format);
}

// The name that joining shards had before; not listed.
void add_merge(CLI::App& app) {
  const auto [verb, flags] = add_verb<ReportFlags>(app, "merge", [](ReportFlags& given) {
    note("mrrope merge is now mrrope report: type mrrope report DIR... -o WHOLE");
    join_shards(given);
  });
  verb.group("");
  add(verb, "folders", flags.folders)->required();
  add(verb, "-o,--out", flags.out)->required();
  add_format(verb, flags.format);
}

}  // namespace mrrope::cli
