// SPDX-License-Identifier: Apache-2.0
#include "cli/args/engine_options.h"

#include <iostream>

#include "base/text.h"
#include "cli/app.h"
#include "core/defaults.h"
#include "core/methods.h"
#include "mrrope/error.h"

namespace mrrope::cli {

void add_engine(CLI::App& verb, engine::LocalOptions& flags) {
  add_default(verb, "--gpu-layers", flags.gpu_layers, "N", "-ngl: layers on the GPU; -1: all");
  add_value(verb, "--rpc", flags.rpc, "HOST:PORT,...",
            "llama.cpp RPC servers that hold part of the layers");
  add_default(verb, "-t,--threads", flags.threads, "N", "CPU threads; 0: all cores");
  add_default(verb, "--ubatch-size", flags.ubatch, "N", "-ub: tokens per batch");
  add_default(verb, "--cache-type-k", flags.type_k, "TYPE",
              "-ctk: type of cached keys: f32, f16, bf16, q8_0, q4_0, ...");
  add_default(verb, "--cache-type-v", flags.type_v, "TYPE", "-ctv: type of cached values, as -ctk");
  add_default(verb, "--flash-attn", flags.flash_attention, "WHEN", "-fa: on, off or auto")
      ->check(CLI::IsMember({"on", "off", "auto"}));
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
  std::cout << engine::memory_text(model, options) << std::flush;
  engine::check_fits_memory(model, options);
}

engine::ReadingSpeed measure_speed(TimelineModel& timelines, const Model& model,
                                   std::int64_t longest) {
  return engine::measure_speed(timelines, model, longest, note);
}

}  // namespace mrrope::cli
