// SPDX-License-Identifier: Apache-2.0
// mrrope export: a plan into the files of another engine, and the proof that they say it.
#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/interrupt.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/app.h"
#include "cli/args/options.h"
#include "cli/export_proof.h"
#include "eval/run/progress.h"
#include "export/engines.h"
#include "export/gguf_export.h"
#include "export/hf_export.h"
#include "mrrope/error.h"

namespace mrrope::cli {

namespace {

struct ExportFlags {
  SubjectFlags subject;
  ExtensionFlags extension;
  std::string to = "gguf";
  std::string out;
  std::string dialect = "v5";
  std::string verify = "short";
  int threads = 0;
  int gpu_layers = -1;
  bool no_verify = false;
  bool force = false;
  bool split = false;
  bool approximate = false;
  bool native = false;
  bool copy = false;
  bool last_rung = false;
  bool json = false;
};

struct Job {
  Model model;
  Plan plan;
  std::int64_t length = 0;
};

// A ladder turns the keys already in the cache when it changes rung: nothing a file can say.
const Plan& static_plan(const Candidate& candidate, const ExportFlags& flags,
                        std::int64_t& length) {
  if (const auto* plan = std::get_if<Plan>(&candidate.content)) return *plan;
  const auto& ladder = std::get<Ladder>(candidate.content);
  const Rung& last = ladder.rungs().back();
  length = last.length;
  if (ladder.elastic() && !flags.last_rung) {
    const Extension& e = last.plan.extension();
    throw Error(ErrorKind::usage,
                cat(candidate.name, " grows with the text through ", ladder.rungs().size(),
                    " plans and turns cached keys from one to the next; a file holds one plan, and "
                    "no other engine turns keys"),
                cat("add --last-rung to export the static plan of its last rung: ", e.method,
                    ", scale ", significant(e.scale, 6), ", up to ", last.length, " tokens"));
  }
  return last.plan;
}

Job resolve_job(ExportFlags& flags) {
  Subject subject = resolve(flags.subject);
  if (!subject.model) {
    throw Error(ErrorKind::usage, "export takes a model", "give a GGUF file or a folder");
  }
  Model model = *subject.model;
  model.geometry = subject.geometry;
  const std::int64_t window = model.geometry.train_length;
  const std::int64_t ctx = flags.extension.ctx.empty() ? 0 : parse_length(flags.extension.ctx);
  if (flags.extension.methods.empty() && flags.extension.plan_files.empty()) {
    if (ctx == 0 && !flags.extension.scale) {
      throw Error(ErrorKind::usage, "which plan?", "give --plan FILE, or --method pro --ctx 128k");
    }
    flags.extension.methods = {"pro"};
    note("no --method given: pro");
  }
  const std::vector<Candidate> candidates = resolve(flags.extension, model.geometry);
  if (candidates.size() != 1) {
    throw Error(ErrorKind::usage, cat("export takes one plan, not ", candidates.size()),
                "give one --method or one --plan");
  }
  std::int64_t length = 0;
  const Plan& plan = static_plan(candidates.front(), flags, length);
  const Extension& e = plan.extension();
  const std::int64_t reach = std::max(
      {length, e.length, static_cast<std::int64_t>(std::llround(e.scale * double(window)))});
  length = ctx > 0 ? ctx : reach;
  if (length > reach && e.method != "custom") {
    note(cat("the plan stretches the window to ", reach, " tokens; the files will say ", length));
  }
  return {std::move(model), plan, length};
}

// The flags that make this plan again.
std::string how(const ExportFlags& flags, std::int64_t length) {
  const ExtensionFlags& e = flags.extension;
  std::string text;
  const auto add = [&](const char* flag, const auto& value) { text += cat(" ", flag, value); };
  const auto add_set = [&](const char* flag, const auto& value) {
    if (value) add(flag, *value);
  };
  for (const std::string& file : e.plan_files) add("--plan ", shell_word(file));
  for (const std::string& method : e.methods) add("--method ", shell_word(method));
  add_set("--scale ", e.scale);
  add_set("--beta-fast ", e.parameters.beta_fast);
  add_set("--beta-slow ", e.parameters.beta_slow);
  add_set("--low ", e.parameters.low);
  add_set("--high ", e.parameters.high);
  add_set("--power=", e.parameters.power);
  add_set("--attn-coef=", e.parameters.attn_coef);
  if (!e.factors.empty()) add("--factors ", shell_word(e.factors));
  if (!e.lambdas.empty()) add("--lambdas ", shell_word(e.lambdas));
  if (e.headroom != LadderRequest{}.headroom) add("--headroom ", e.headroom);
  if (e.rung_step != LadderRequest{}.rung_step) add("--rung-step ", e.rung_step);
  if (flags.subject.replace_scaling) text += " --replace-scaling";
  if (!flags.subject.train_ctx.empty()) add("--train-ctx ", flags.subject.train_ctx);
  if (flags.last_rung) text += " --last-rung";
  add("--ctx ", length_text(length));
  return text.substr(1);
}

LocalOptions with_devices(LocalOptions options, const ExportFlags& flags) {
  options.threads = flags.threads;
  options.gpu_layers = flags.gpu_layers;
  return options;
}

nlohmann::ordered_json to_json(const GgufExport& e, const Job& job,
                               const std::optional<GgufProof>& proof) {
  nlohmann::ordered_json out;
  out["to"] = "gguf";
  out["way"] = to_string(e.way);
  out["architecture"] = e.architecture;
  out["context_length"] = job.length;
  out["files"] = nlohmann::ordered_json::array();
  for (const GgufFileOut& file : e.files) out["files"].push_back(file.path.string());
  out["divisors"] = e.divisors;
  out["attn_factor"] = e.attn_factor ? nlohmann::ordered_json(*e.attn_factor) : nullptr;
  if (e.fit) {
    out["fit"] = {{"scale", e.fit->scale},
                  {"original_length", e.fit->original_length},
                  {"largest_error", e.fit->largest_error},
                  {"worst_pair", e.fit->worst_pair},
                  {"mean_error", e.fit->mean_error},
                  {"temperature_error", e.temperature_error}};
  }
  if (proof) {
    out["proof"] = {{"tokens", proof->tokens},
                    {"positions", proof->positions},
                    {"largest", proof->largest},
                    {"noise", proof->noise},
                    {"without_plan", proof->without_plan}};
  } else {
    out["proof"] = nullptr;
  }
  return out;
}

void print(const GgufExport& e, const Job& job, const std::optional<GgufProof>& proof) {
  for (const GgufFileOut& file : e.files) {
    std::cout << file.path.string() << ": " << bytes_text(double(file.size())) << "\n";
  }
  std::cout << "  way: " << to_string(e.way) << ", architecture " << e.architecture
            << ", context_length " << job.length;
  if (!e.divisors.empty()) std::cout << ", " << e.divisors.size() << " divisors";
  if (e.attn_factor) std::cout << ", attn_factor " << *e.attn_factor;
  std::cout << "\n";
  if (e.fit) {
    std::cout << "  approximate: YaRN of scale " << significant(e.fit->scale, 6)
              << " from an original length of " << e.fit->original_length << "; angles differ by "
              << significant(100 * e.fit->largest_error, 3) << " % at most (pair "
              << e.fit->worst_pair << "), " << significant(100 * e.fit->mean_error, 3)
              << " % on average; temperature by " << significant(100 * e.temperature_error, 3)
              << " %\n";
  }
  if (proof) {
    std::cout << "  proof: stock libllama on this file against "
              << (e.fit ? "that YaRN" : "the plan") << " written into the source's graph, "
              << proof->tokens << " tokens, all logits at " << proof->positions
              << " positions: largest difference " << significant(proof->largest, 3)
              << " standard deviations (rounding alone: " << significant(proof->noise, 3)
              << "; the plan itself: " << significant(proof->without_plan, 3) << ")\n";
  } else {
    std::cout << "  not verified\n";
  }
}

void remove_output(const GgufExport& e) {
  for (const GgufFileOut& file : e.files) {
    std::error_code ignored;
    std::filesystem::remove(file.path, ignored);
  }
}

void write_with_progress(const GgufExport& e, bool force) {
  std::uint64_t total = 0;
  for (const GgufFileOut& file : e.files) total += file.size();
  Progress progress(stderr_writer(), stderr_is_terminal());
  progress.start(static_cast<std::int64_t>(total >> 20), 0, "MiB");
  progress.label("writing");
  catch_interrupts();
  std::uint64_t rest = 0;
  write_gguf(e.files, force, [&](std::uint64_t bytes) {
    if (interrupt_requested()) {
      throw Error(ErrorKind::interrupted, "interrupted: nothing was written",
                  "give the same command again");
    }
    rest += bytes;
    progress.advance(static_cast<std::int64_t>(rest >> 20));
    rest &= (std::uint64_t{1} << 20) - 1;
  });
  progress.finish();
}

void export_gguf(const ExportFlags& flags, const Job& job) {
  if (job.model.format != "gguf") {
    throw Error(ErrorKind::usage,
                cat(job.model.path.string(), " is a Hugging Face checkpoint, not a GGUF file"),
                cat("convert it with llama.cpp's script: python convert_hf_to_gguf.py ",
                    hf_folder(job.model).string(),
                    " --outfile model.gguf --outtype q8_0; or give --to hf"));
  }
  const Gguf gguf = read_gguf(job.model.path);
  GgufOptions options;
  options.out = flags.out;
  options.length = job.length;
  options.split = flags.split;
  options.approximate = flags.approximate;
  options.native = flags.native;
  const GgufExport exported = plan_gguf_export(gguf, job.model, job.plan, options);
  const std::int64_t tokens = proof_length(job.model, job.length, flags.verify == "full");
  LocalOptions engine;
  if (!flags.no_verify) engine = with_devices(proof_options(job.model, tokens), flags);
  write_with_progress(exported, flags.force);
  std::optional<GgufProof> proof;
  if (!flags.no_verify) {
    try {
      proof = prove_gguf(job.model, job.plan, exported, job.length, engine, tokens);
    } catch (const Error& error) {
      remove_output(exported);
      throw Error(error.kind(), cat(error.what(), "; the file was removed"), error.hint());
    }
  }
  if (flags.json) {
    std::cout << to_json(exported, job, proof).dump(2) << "\n";
  } else {
    print(exported, job, proof);
  }
}

void export_folder(const ExportFlags& flags, const Job& job) {
  HfOptions options;
  options.out = flags.out;
  options.length = job.length;
  options.dialect = flags.dialect == "v4" ? Dialect::v4 : Dialect::v5;
  options.native = flags.native;
  options.copy = flags.copy;
  options.replace = flags.force;
  export_huggingface(job.model, job.plan, options);
  const std::string caveat = hf_caveat(
      nlohmann::ordered_json::parse(read_json(hf_folder(job.model) / "config.json").dump()),
      job.model);
  if (!caveat.empty()) note(caveat);
  HuggingFaceProof proof;
  proof.why = "--no-verify";
  if (!flags.no_verify) {
    try {
      proof = prove_huggingface(options.out, job.plan);
    } catch (const Error& error) {
      std::error_code ignored;
      std::filesystem::remove_all(options.out, ignored);  // links go, what they lead to stays
      throw Error(error.kind(), cat(error.what(), "; the folder was removed"), error.hint());
    }
  }
  if (!proof.ran && !flags.no_verify) note(cat("not checked with transformers: ", proof.why));
  if (flags.json) {
    nlohmann::ordered_json out = {{"to", "hf"},
                                  {"folder", flags.out},
                                  {"dialect", flags.dialect},
                                  {"max_position_embeddings", job.length},
                                  {"attention_factor", total_attention_scale(job.plan)},
                                  {"factors", total_factors(job.plan)}};
    out["proof"] = nullptr;
    if (proof.ran) {
      out["proof"] = {{"transformers", proof.version},
                      {"largest", proof.largest},
                      {"temperature", proof.temperature}};
    }
    std::cout << out.dump(2) << "\n";
    return;
  }
  std::cout << flags.out << ": " << (flags.native ? job.plan.extension().method : "longrope")
            << ", dialect " << flags.dialect << ", max_position_embeddings " << job.length
            << ", attention_factor " << significant(total_attention_scale(job.plan), 6)
            << (flags.copy ? ", files copied\n" : ", files linked\n");
  if (proof.ran) {
    std::cout << "  proof: transformers " << proof.version
              << " computes these angles from it, largest difference "
              << significant(proof.largest, 3) << ", temperature "
              << significant(proof.temperature, 3) << "\n";
  } else {
    std::cout << "  not verified\n";
  }
}

void print_commands(const ExportFlags& flags, const Job& job) {
  std::optional<Gguf> gguf;
  if (job.model.format == "gguf") gguf = read_gguf(job.model.path);
  const auto advice = engine_advice(
      {job.model, gguf ? &*gguf : nullptr, job.plan, job.length, how(flags, job.length)});
  if (flags.json) {
    nlohmann::ordered_json out = nlohmann::ordered_json::array();
    for (const EngineAdvice& a : advice) {
      out.push_back({{"engine", a.engine},
                     {"verdict", to_string(a.verdict)},
                     {"why", a.why},
                     {"commands", a.commands}});
    }
    std::cout << out.dump(2) << "\n";
    return;
  }
  for (const EngineAdvice& a : advice) {
    std::cout << "# " << a.engine << ": " << to_string(a.verdict)
              << (a.why.empty() ? "" : " (" + a.why + ")") << "\n";
    for (const std::string& command : a.commands) std::cout << command << "\n";
    std::cout << "\n";
  }
}

void run_export(ExportFlags flags) {
  const Job job = resolve_job(flags);
  if (flags.to == "commands") return print_commands(flags, job);
  if (flags.out.empty()) {
    throw Error(ErrorKind::usage, "where to?",
                flags.to == "hf" ? "give -o FOLDER" : "give -o FILE.gguf");
  }
  if (flags.to == "hf") {
    export_folder(flags, job);
  } else {
    export_gguf(flags, job);
  }
}

}  // namespace

void add_export(CLI::App& app) {
  auto flags = std::make_shared<ExportFlags>();
  CLI::App* verb = app.add_subcommand(
      "export", "Write a plan into files that another engine runs, and prove that they say it");
  add_subject(*verb, flags->subject);
  add_extension(*verb, flags->extension);
  verb->add_option("--to", flags->to, "gguf (default), hf (a Hugging Face folder) or commands")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"gguf", "hf", "commands"}));
  verb->add_option("-o,--out", flags->out, "File or folder to write")->type_name("PATH");
  verb->add_flag("--force", flags->force, "Replace what has that name");
  verb->add_flag("--split", flags->split, "gguf: keep the parts of a split file");
  verb->add_flag("--approximate", flags->approximate,
                 "gguf: the nearest YaRN where llama.cpp has no exact way; prints its error");
  verb->add_flag("--native", flags->native,
                 "Name the method (linear, yarn, llama3) instead of listing factors");
  verb->add_option("--dialect", flags->dialect, "hf: v5 (default) or v4, as transformers spells it")
      ->type_name("NAME")
      ->check(CLI::IsMember({"v5", "v4"}));
  verb->add_flag("--copy", flags->copy, "hf: copy weights and tokenizer instead of linking them");
  verb->add_flag("--last-rung", flags->last_rung, "Of an elastic plan, the last rung as it stands");
  auto* verify =
      verb->add_option(
              "--verify", flags->verify,
              "gguf: short (a prompt of up to 4096 tokens, default) or full (1.25 windows)")
          ->type_name("HOW")
          ->check(CLI::IsMember({"short", "full"}));
  verb->add_flag("--no-verify", flags->no_verify, "Write without the proof")->excludes(verify);
  verb->add_option("-t,--threads", flags->threads, "Proof: threads on the CPU; 0: all cores")
      ->type_name("N");
  verb->add_option("--gpu-layers", flags->gpu_layers,
                   "-ngl: proof: layers on the accelerator; -1: all")
      ->type_name("N");
  verb->add_flag("--json", flags->json, "Print JSON");
  verb->footer(
      "Examples:\n"
      "  mrrope export model.gguf --method pro --ctx 128k -o model-128k.gguf\n"
      "  mrrope export model.gguf --plan plan.json --to gguf -o model-128k.gguf --verify full\n"
      "  mrrope export qwen3.gguf --method pro --ctx 128k --approximate -o qwen3-128k.gguf\n"
      "  mrrope export path/to/huggingface-folder --method pro --ctx 128k --to hf -o out-folder\n"
      "  mrrope export model.gguf --method yarn --ctx 128k --to commands");
  verb->callback([flags] { run_export(*flags); });
}

}  // namespace mrrope::cli
