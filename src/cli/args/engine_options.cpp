// SPDX-License-Identifier: Apache-2.0
#include "cli/args/engine_options.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>

#include "base/files/output_file.h"
#include "base/text.h"
#include "cli/app.h"
#include "core/defaults.h"
#include "core/methods.h"
#include "engine/llama/memory.h"
#include "formats/facts.h"
#include "mrrope/error.h"

namespace mrrope::cli {

void add_engine(CLI::App& verb, engine::LocalOptions& flags) {
  verb.add_option("--gpu-layers", flags.gpu_layers, "-ngl: layers on the GPU; -1: all")
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--rpc", flags.rpc, "llama.cpp RPC servers that hold part of the layers")
      ->type_name("HOST:PORT,...");
  verb.add_option("-t,--threads", flags.threads, "CPU threads; 0: all cores")
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--ubatch-size", flags.ubatch, "-ub: tokens per batch")
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--cache-type-k", flags.type_k,
                  "-ctk: type of cached keys: f32, f16, bf16, q8_0, q4_0, ...")
      ->type_name("TYPE")
      ->capture_default_str();
  verb.add_option("--cache-type-v", flags.type_v, "-ctv: type of cached values, as -ctk")
      ->type_name("TYPE")
      ->capture_default_str();
  verb.add_option("--flash-attn", flags.flash_attention, "-fa: on, off or auto")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"on", "off", "auto"}))
      ->capture_default_str();
}

LadderChoice choose_ladder(ExtensionFlags flags, const Geometry& geometry, const char* verb) {
  if (flags.methods.empty() && flags.plan_files.empty()) flags.methods = {std::string(kAuto)};
  if (flags.ctx.empty() && !flags.scale && flags.plan_files.empty()) flags.scale = 1;
  const std::vector<Candidate> candidates = resolve(flags, geometry);
  if (candidates.size() != 1) {
    throw Error(ErrorKind::usage, cat(verb, " runs one method, not ", candidates.size()),
                "give one --method or one --plan");
  }
  const Candidate& c = candidates.front();
  const bool ours = is_auto(c.method.name);
  const std::int64_t ctx = length_asked_for(flags, c.ladder);
  return {ours ? c.meaning() : c.name, up_to(c.ladder, ctx), ours, ctx, c.method};
}

void check_before_loading(const Model& model, const std::vector<const Ladder*>& ladders,
                          const Places& places) {
  for (const std::string& path : places.reads) {
    if (!path.empty()) check_readable(path);
  }
  for (const Ladder* ladder : ladders) {
    check_made_for(ladder->rungs().front().plan.geometry(), model);
  }
  for (const std::string& path : places.folders) {
    if (!path.empty()) check_folder(path);
  }
  for (const std::string& path : places.writes) {
    if (path.empty() || path == "-") continue;
    const std::filesystem::path folder = folder_of(path);
    std::error_code ignored;
    if (!std::filesystem::is_directory(folder, ignored)) {
      throw Error(ErrorKind::usage,
                  cat("cannot write ", path, ": there is no folder ", folder.string()),
                  cat("create it: mkdir -p ", shell_word(folder.string())));
    }
    check_writable(path);
  }
}

std::unique_ptr<TimelineModel> open_checked(const Model& model, const engine::LocalOptions& options,
                                            const std::vector<const Ladder*>& ladders,
                                            const Places& places) {
  check_before_loading(model, ladders, places);
  return open_local(model, options);
}

void use(TimelineModel& model, LadderChoice& choice) {
  // Copies: the choice may change below.
  const Geometry geometry = choice.ladder.rungs().front().plan.geometry();
  const std::int64_t longest = choice.ladder.longest();
  const double scale = double(longest) / double(geometry.train_length);
  if (!choice.ours || scale <= 1) return model.use(choice.ladder);
  std::string why;
  const auto try_it = [&] {
    try {
      model.use(choice.ladder);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unsupported) throw;
      why = cat(error.what(), "; ");
      return false;
    }
    note(cat(why, "auto: ", choice.name, ", unchanged up to ", geometry.train_length,
             " tokens, then growing to ", significant(scale, 4), " windows"));
    return true;
  };
  if (try_it()) return;
  if (choice.ladder.near()) {
    // Keys that must not be turned often, or layers that need a larger near part.
    const MethodSpec instead = in_one_rung(geometry, choice.method, longest);
    choice.name = to_string(instead);
    choice.ladder = make_ladder(geometry, instead, longest);
    if (try_it()) return;
  }
  Extension fixed;
  fixed.method = static_method(geometry, scale);
  fixed.scale = scale * choice.method.parameters.headroom.value_or(1);
  choice.name = fixed.method;
  choice.ladder = make_ladder(make_plan(geometry, fixed), longest);
  model.use(choice.ladder);
  note(cat(why, "auto: static ", fixed.method, " with scale ", significant(fixed.scale, 4)));
}

void print_memory(const Model& model, const engine::LocalOptions& options) {
  const engine::MemoryPlan plan = plan_memory(model, options);
  std::cout << "memory " << bytes_text(double(plan.total())) << " (weights "
            << bytes_text(double(plan.weights)) << ", KV cache " << bytes_text(double(plan.kv))
            << ", compute about " << bytes_text(double(plan.compute)) << ") of "
            << bytes_text(double(plan.available)) << " available\n"
            << std::flush;
  try {
    check_memory(model, options);
  } catch (const Error& error) {
    throw Error(ErrorKind::failed, cat("does not fit: ", error.what()), error.hint());
  }
}

ReadingSpeed reading_speed(const Model& model, std::int64_t chunk, double second, double third) {
  double products = 0;  // of attention, for a token and one before it
  for (const Layer& layer : model.layers) {
    if (layer.kind == LayerKind::windowed || layer.kind == LayerKind::recurrent) continue;
    products += double(model.heads) * (model.key_length + model.value_length);
  }
  // One of them takes at most as long as those of 8 bytes of weights.
  const double n = double(chunk);
  const double most =
      second / n * 8 * products / double(std::max<std::uint64_t>(model.weight_bytes, 1));
  const double slope = std::clamp((third - second) / (n * n), 0.0, most);
  return {std::max(second / n - slope * 1.5 * n, second / n / 10), slope};
}

ReadingSpeed measure_speed(TimelineModel& timelines, const Model& model, std::int64_t longest) {
  // llama.cpp rounds contexts up.
  const std::int64_t chunk =
      std::min<std::int64_t>(512, std::min(longest, timelines.context_length()) / 3);
  if (chunk < 1) throw Error(ErrorKind::usage, "the context is too short to estimate the time");
  note(cat("timing the model on ", 3 * chunk, " tokens"));
  const std::vector<Token> tokens(std::size_t(chunk), timelines.bos().value_or(0));
  const auto timeline = timelines.timeline();
  double seconds[3] = {};  // the first one warms up
  for (double& s : seconds) {
    const auto start = std::chrono::steady_clock::now();
    timeline->append_scored(tokens);
    s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  return reading_speed(model, chunk, seconds[1], seconds[2]);
}

double seconds_to_read(const ReadingSpeed& speed, const std::vector<std::int64_t>& lengths) {
  double total = 0;
  for (const std::int64_t length : lengths) {
    total += double(length) * (speed.start + speed.slope * double(length) / 2);
  }
  return total;
}

std::string time_text(const ReadingSpeed& speed, const std::vector<std::int64_t>& lengths,
                      const char* ending) {
  const double seconds = seconds_to_read(speed, lengths);
  double tokens = 0;
  for (const std::int64_t length : lengths) tokens += double(length);
  return cat("about ", duration_text(seconds), ending, ", at ",
             significant(seconds > 0 ? tokens / seconds : 1 / speed.start, 3),
             " tokens/s (timed just now; other work on this machine makes it slower)");
}

}  // namespace mrrope::cli
