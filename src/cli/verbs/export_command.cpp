// SPDX-License-Identifier: Apache-2.0
// mrrope export: writes a plan into files for another engine and verifies them.
#include <unistd.h>

#include <future>
#include <iostream>
#include <thread>

#include "base/interrupt.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/app.h"
#include "cli/args/options.h"
#include "core/methods.h"
#include "proof/export_proof.h"

namespace mrrope::cli {

namespace {

struct ExportFlags {
  const CLI::App* verb = nullptr;
  SubjectFlags subject;
  ExtensionFlags extension;
  std::vector<std::string> targets = {"gguf"};
  std::string to;
  std::string out;
  std::string verify = "short";
  int threads = 0;
  int gpu_layers = -1;
  bool force = false;
  bool native = false;
  bool copy = false;
  bool json = false;
};

struct Job {
  Model model;
  Plan plan;
  std::int64_t length = 0;
  std::vector<Rung> rungs = {};  // --to hf-mrrope with a ladder
  std::optional<NearPart> near = {};
};

// vLLM with the plugin of the wheel gives every request a rung for as long as it lives.
bool takes_rungs(const ExportFlags& flags) { return flags.to == "hf-mrrope"; }

// A ladder turns the keys in the cache when it changes rung, which no file can express.
const Plan& static_plan(const Candidate& candidate, const ExportFlags& flags, bool folder) {
  const Ladder& ladder = candidate.ladder;
  const Rung& last = ladder.rungs().back();
  throw_if(method_row(ladder.extension().method).reach == Reach::file && flags.to != "commands",
           ErrorKind::unsupported,
           cat(candidate.name, " is in the file already: the vendor's two lists of factors"),
           "leave the file as it is: mrrope takes the list by the length of the text, llama.cpp by "
           "that of its context (-c)");
  const bool for_plugin =
      takes_rungs(flags) && ladder.has_single_factor() && last.plan.attention_scale() == 1;
  throw_if(ladder.near() && !for_plugin, ErrorKind::unsupported,
           cat(candidate.name, " rotates near and far keys differently, which no file can express"),
           "export a static plan, e.g. --method pro; mrrope serve runs this one, and vLLM far:pi "
           "without attn_coef, --to hf-mrrope");
  if (ladder.elastic() && !takes_rungs(flags)) {
    const Extension& e = last.plan.extension();
    MethodSpec fixed{.name = e.method, .parameters = e.parameters};
    if (ladder.headroom() > 1) fixed.parameters.headroom = ladder.headroom();
    const std::string in_place_of =
        flags.extension.plan_files.empty()
            ? ""
            : cat(" --ctx ", length_text(last.length), " instead of --plan");
    refuse(cat(candidate.name, " moves through ", ladder.rungs().size(),
               " plans as the text grows and turns cached keys from one to the next; a file holds "
               "one plan, and no other engine turns cached keys"),
           cat("for the static plan of its last rung give --method ", shell_word(to_string(fixed)),
               in_place_of,
               folder ? "; or give --to hf-mrrope, whose plugin gives each request of vLLM a rung"
                      : ""));
  }
  return last.plan;
}

// Of rungs that differ in their border alone, the last: a request keeps its scale, and each of its
// queries has the border of its own position.
std::vector<Rung> rungs_of_requests(const Ladder& ladder) {
  std::vector<Rung> out;
  for (const Rung& rung : ladder.rungs()) {
    const bool same = ladder.near() && out.size() > 1 && out.back().plan.same_numbers(rung.plan) &&
                      out.back().sharpness == rung.sharpness;
    if (same) out.pop_back();
    out.push_back(rung);
  }
  return out;
}

Job resolve_job(ExportFlags& flags) {
  Model model = model_of(flags.subject);
  const std::int64_t window = model.geometry.train_length;
  if (flags.extension.methods.empty() && flags.extension.plan_files.empty()) {
    refuse_if(flags.extension.ctx.empty() && !flags.extension.scale, "no method or plan given",
              "give --plan FILE, or --method pro --ctx 128k");
    flags.extension.methods = {std::string(kAuto)};
  }
  const std::string& ctx = flags.extension.ctx;
  const double scale =
      ctx.empty() ? flags.extension.scale.value_or(1) : double(parse_length(ctx)) / double(window);
  take_profile(flags.extension, model, std::llround(scale * double(window)), false);
  std::vector<MethodSpec> methods = method_specs(flags.extension);
  if (methods.size() == 1 && is_auto(methods.front().name)) {
    if (flags.extension.tuned) {
      methods.front() = *flags.extension.tuned;
    } else {
      methods.front().name = static_method(model.geometry, std::max(1.0, scale));
    }
    flags.extension.methods = {to_string(methods.front())};
    if (scale > 1 && !flags.extension.tuned) {
      const std::string plan = cat("; using ", flags.extension.methods.front(), ", a static plan");
      note(takes_rungs(flags)
               ? cat("auto is a growing context", plan,
                     " (--method far:pi gives this folder the growing one; mrrope serve runs auto)")
               : cat("auto is a growing context, which ",
                     flags.to == "commands" ? "other engines" : "a file", " cannot hold", plan,
                     " (mrrope serve runs auto)"));
    }
  }
  const std::vector<Candidate> candidates = resolve(flags.extension, model.geometry);
  refuse_if(candidates.size() != 1, cat("export takes one plan, not ", candidates.size()),
            "give one --method or one --plan");
  const Plan& plan = static_plan(candidates.front(), flags, model.format != "gguf");
  const Extension& e = plan.extension();
  const std::int64_t reach =
      std::max(e.length, std::int64_t(std::llround(e.scale * double(window))));
  // Headroom is extra scale, not extra length.
  const std::string& asked = flags.extension.ctx;
  const std::int64_t length =
      asked.empty() ? candidates.front().ladder.longest() : parse_length(asked);
  if (length > reach && method_row(e.method).reach != Reach::numbers) {
    note(cat("the plan extends the window to ", reach, " tokens; the files will declare ", length));
  }
  const Ladder& ladder = candidates.front().ladder;
  if (!ladder.elastic() || !takes_rungs(flags)) return {std::move(model), plan, length};
  return {std::move(model), plan, length, rungs_of_requests(ladder), ladder.near()};
}

// The flags that produce this plan.
std::string how(const ExportFlags& flags, std::int64_t length) {
  const ExtensionFlags& e = flags.extension;
  std::string text;
  const auto add = [&](const char* flag, const auto& value) { text += cat(" ", flag, value); };
  for (const std::string& file : e.plan_files) add("--plan ", shell_word(file));
  for (const MethodSpec& method : method_specs(e)) add("--method ", shell_word(to_string(method)));
  if (e.scale) add("--scale ", *e.scale);
  text += geometry_words(flags.subject);
  add("--ctx ", length_text(length));
  return text.substr(1);
}

ordered_json to_json(const exporting::GgufExport& e, const Job& job,
                     const std::optional<proof::GgufProof>& proof) {
  ordered_json out = {{"to", "gguf"},
                      {"way", to_string(e.encoding)},
                      {"architecture", e.architecture},
                      {"context_length", job.length},
                      {"files", {e.file.path.string()}}};
  out["divisors"] = e.divisors;
  out["attn_factor"] = e.attn_factor ? ordered_json(*e.attn_factor) : nullptr;
  out["proof"] = nullptr;
  if (proof) {
    out["proof"] = {{"tokens", proof->tokens},
                    {"positions", proof->positions},
                    {"largest", proof->largest},
                    {"noise", proof->noise},
                    {"without_plan", proof->without_plan},
                    {"conclusive", proof->conclusive}};
  }
  return out;
}

void print(const exporting::GgufExport& e, const Job& job,
           const std::optional<proof::GgufProof>& proof) {
  constexpr const char* kEncodings[] = {
      "unchanged", "per-pair factors", "per-pair factors (two equal lists)",
      "per-pair factors, as architecture llama", "llama.cpp's own scaling keys"};
  std::cout << e.file.path.string() << ": " << bytes_text(double(e.file.size())) << "\n";
  std::cout << "  encoding: " << kEncodings[static_cast<std::size_t>(e.encoding)]
            << ", architecture " << e.architecture << ", context_length " << job.length;
  if (!e.divisors.empty()) std::cout << ", " << e.divisors.size() << " divisors";
  if (e.attn_factor) std::cout << ", attn_factor " << *e.attn_factor;
  std::cout << "\n";
  if (proof) {
    std::cout << (proof->conclusive ? "  verified" : "  not conclusive")
              << ": stock libllama running this file matches the source model under the plan"
              << (proof->conclusive ? "" : ",\n  but rounding hides what the plan changes")
              << "\n  (" << proof->tokens << " tokens, all logits at " << proof->positions
              << " positions; largest difference " << significant(proof->largest, 3)
              << " standard deviations, rounding alone " << significant(proof->noise, 3)
              << ", effect of the plan " << significant(proof->without_plan, 3) << ")\n";
  } else {
    std::cout << "  not verified\n";
  }
}

[[noreturn]] void interrupted() {
  throw Error(ErrorKind::interrupted, "interrupted: nothing was written", "rerun the command");
}

// Shows bytes written, with rate and time left; stops on Ctrl-C.
BytesWritten shown_by(eval::Progress& progress, std::uint64_t total) {
  progress.start(std::int64_t(total >> 20), 0, "MiB");
  progress.label("writing");
  return [&progress, rest = std::make_shared<std::uint64_t>(0)](std::uint64_t bytes) {
    if (interrupt_requested()) interrupted();
    *rest += bytes;
    progress.advance(std::int64_t(*rest >> 20));
    *rest &= (std::uint64_t{1} << 20) - 1;
  };
}

// Runs the proof of an output that is staged for `out`. libllama and Python do not return for
// minutes, so Ctrl-C ends the process from here, after removing what was staged.
template <typename Proof>
void run_interruptibly(Staging& staging, const std::string& out, Proof&& proof) {
  if (interrupt_requested()) interrupted();
  std::promise<void> done;
  std::thread watcher([&staging, ended = done.get_future()] {
    while (ended.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready) {
      if (!interrupt_requested()) continue;
      staging.remove();
      std::cerr << "\nmrrope: interrupted: nothing was written\n  rerun the command\n";
      ::_exit(int(ErrorKind::interrupted));
    }
  });
  const auto end = [&] {
    done.set_value();
    watcher.join();
  };
  try {
    proof();
  } catch (const Error& error) {
    end();
    throw Error(error.kind(), cat(error.what(), "; ", out, " was not written"), error.hint());
  } catch (...) {
    end();
    throw;
  }
  end();
  if (interrupt_requested()) interrupted();
}

void export_gguf(const ExportFlags& flags, const Job& job) {
  refuse_if(job.model.format != "gguf",
            cat(job.model.path.string(), " is a Hugging Face checkpoint, not a GGUF file"),
            cat("convert it with llama.cpp's script: python convert_hf_to_gguf.py ",
                exporting::hf_folder(job.model).string(),
                " --outfile model.gguf --outtype q8_0; or give --to hf"));
  const Gguf gguf = read_gguf(job.model.path);
  const exporting::GgufOptions options{flags.out, job.length, flags.native};
  const exporting::GgufExport exported = plan_gguf_export(gguf, job.model, job.plan, options);
  const std::int64_t tokens = proof::proof_length(job.model, job.length, flags.verify == "full");
  engine::LocalOptions engine;
  const bool no_verify = flags.verify == "off";
  if (!no_verify) engine = proof::proof_options(job.model, tokens);
  engine.threads = flags.threads;
  engine.gpu_layers = flags.gpu_layers;
  catch_interrupts();
  eval::Progress writing(eval::stderr_writer(), eval::stderr_is_terminal());
  std::optional<proof::GgufProof> proof;
  const auto verify = [&](Staging& staging, const exporting::GgufExport& staged) {
    writing.finish();
    if (no_verify) return;
    eval::Progress progress(eval::stderr_writer(), eval::stderr_is_terminal());
    progress.start(proof::proof_work(staged, tokens));
    progress.label("verifying");
    run_interruptibly(staging, flags.out, [&] {
      proof = proof::prove_gguf(job.model, job.plan, staged, job.length, engine, tokens,
                                [&](std::int64_t done) { progress.advance(done); });
    });
    progress.finish();
  };
  write_export(exported, flags.force, shown_by(writing, exported.file.size()), verify);
  if (!flags.json) return print(exported, job, proof);
  std::cout << json_text(to_json(exported, job, proof), 2) << "\n";
}

void export_folder(const ExportFlags& flags, const Job& job) {
  const bool no_verify = flags.verify == "off";
  const std::string dialect = flags.to == "hf" ? "v5" : flags.to.substr(3);
  const bool for_plugin = takes_rungs(flags);
  using exporting::Dialect;
  const Dialect form = for_plugin ? Dialect::mrrope : dialect == "v4" ? Dialect::v4 : Dialect::v5;
  const exporting::HfOptions options{flags.out,  job.length,  form,      flags.native,
                                     flags.copy, flags.force, job.rungs, job.near};
  refuse_if(for_plugin && flags.native, "--native names a method, and --to hf-mrrope lists factors",
            "remove one of them");
  proof::HuggingFaceProof proof;
  proof.why = "--verify off";
  catch_interrupts();
  eval::Progress writing(eval::stderr_writer(), eval::stderr_is_terminal());
  const auto verify = [&](Staging& staging, const std::filesystem::path& folder) {
    writing.finish();
    if (for_plugin) proof.why = "it does not read rope_type mrrope";
    if (no_verify || for_plugin) return;
    note("verifying with transformers, which takes some seconds to start");
    run_interruptibly(staging, flags.out,
                      [&] { proof = proof::prove_huggingface(folder, job.plan); });
  };
  export_huggingface(job.model, job.plan, options,
                     shown_by(writing, bytes_to_copy(job.model, options)), verify);
  const std::string caveat = exporting::hf_caveat(job.model, options.dialect);
  if (!caveat.empty()) note(caveat);
  if (!proof.ran && !no_verify) note(cat("not verified with transformers: ", proof.why));
  if (flags.json) {
    ordered_json out = {{"to", "hf"},
                        {"folder", flags.out},
                        {"dialect", dialect},
                        {"max_position_embeddings", job.length},
                        {"attention_factor", exporting::total_attention_scale(job.plan)},
                        {"factors", exporting::total_factors(job.plan)}};
    if (!job.rungs.empty()) out["rungs"] = job.rungs.size();
    out["proof"] = nullptr;
    if (proof.ran) {
      out["proof"] = {{"transformers", proof.version},
                      {"largest", proof.largest},
                      {"temperature", proof.temperature}};
    }
    std::cout << json_text(out, 2) << "\n";
    return;
  }
  const std::string listed = for_plugin ? "mrrope" : "longrope";
  std::cout << flags.out << ": " << (flags.native ? job.plan.extension().method : listed)
            << ", dialect " << dialect
            << (job.rungs.empty() ? "" : cat(", ", job.rungs.size(), " rungs"))
            << ", max_position_embeddings " << job.length << ", attention_factor "
            << significant(exporting::total_attention_scale(job.plan), 6)
            << (flags.copy ? ", files copied\n" : ", files linked\n");
  if (proof.ran) {
    std::cout << "  verified: transformers " << proof.version
              << " computes the plan's angles from it (largest relative difference "
              << significant(proof.largest, 3) << ", temperature "
              << significant(proof.temperature, 3) << ")\n";
  } else {
    std::cout << "  not verified\n";
  }
}

void print_commands(const ExportFlags& flags, const Job& job) {
  std::optional<Gguf> gguf;
  if (job.model.format == "gguf") gguf = read_gguf(job.model.path);
  const auto advice = exporting::engine_advice(
      {job.model, gguf ? &*gguf : nullptr, job.plan, job.length, how(flags, job.length)});
  if (flags.json) {
    std::cout << json_text(to_json(advice), 2) << "\n";
    return;
  }
  for (const exporting::EngineAdvice& a : advice) {
    std::cout << "# " << a.engine << ": " << to_string(a.verdict)
              << (a.why.empty() ? "" : " (" + a.why + ")") << "\n";
    for (const std::string& command : a.commands) std::cout << command << "\n";
    std::cout << "\n";
  }
}

// What --to WHAT does not read is refused.
void refuse_flags_of_others(const CLI::App& verb, const std::string& target) {
  const std::string to = target.substr(0, target.find('-'));  // hf of hf-v4
  const std::pair<const char*, std::vector<std::string>> readers[] = {{"--out", {"gguf", "hf"}},
                                                                      {"--force", {"gguf", "hf"}},
                                                                      {"--native", {"gguf", "hf"}},
                                                                      {"--verify", {"gguf", "hf"}},
                                                                      {"--threads", {"gguf"}},
                                                                      {"--gpu-layers", {"gguf"}},
                                                                      {"--copy", {"hf"}}};
  for (const auto& [flag, targets] : readers) {
    refuse_if(verb.count(flag) > 0 && std::ranges::count(targets, to) == 0,
              cat(flag, " does nothing with --to ", to),
              cat("remove it, or give --to ", targets.front()));
  }
}

void run_export(ExportFlags flags) {
  for (const std::string& target : flags.targets) {  // hf-v4 may come with hf
    if (!(target == "hf" && flags.to.rfind("hf-", 0) == 0)) flags.to = target;
  }
  refuse_flags_of_others(*flags.verb, flags.to);
  const Job job = resolve_job(flags);
  if (flags.to == "commands") return print_commands(flags, job);
  const bool to_folder = flags.to.rfind("hf", 0) == 0;
  refuse_if(flags.out == "-", "an export cannot be printed",
            "give the name of a file or folder: -o extended.gguf");
  refuse_if(flags.out.empty(), "no output path given",
            to_folder ? "give -o FOLDER" : "give -o FILE.gguf");
  to_folder ? export_folder(flags, job) : export_gguf(flags, job);
}

}  // namespace

void add_export(CLI::App& app) {
  const auto [verb, flags] = add_verb<ExportFlags>(app, "export", run_export);
  flags.verb = &verb;
  add_subject(verb, flags.subject);
  add_extension(verb, flags.extension, "pro, or ntk where pro cannot extend the model",
                "--scale says how far");
  add(verb, "--profile", flags.extension.profile);
  add(verb, "--to", flags.targets)->default_str("gguf");
  add(verb, "-o,--out", flags.out);
  add(verb, "--force", flags.force);
  add(verb, "--native", flags.native);
  add(verb, "--copy", flags.copy);
  add(verb, "--verify", flags.verify);
  add(verb, "-t,--threads", flags.threads);
  add(verb, "--gpu-layers", flags.gpu_layers);
  add(verb, "--json", flags.json);
}

}  // namespace mrrope::cli
