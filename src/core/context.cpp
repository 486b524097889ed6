// SPDX-License-Identifier: Apache-2.0
#include "core/context.h"

#include <algorithm>
#include <cmath>

#include "base/spelling.h"
#include "base/text.h"
#include "core/methods.h"
#include "mrrope/error.h"

namespace mrrope {

namespace {

[[noreturn]] void refuse(const std::string& message, const std::string& hint) {
  throw Error(ErrorKind::usage, message, hint);
}

std::string method_to_give(std::string_view method, Growth growth, Spelling spelling) {
  return cat("give ", spelling == Spelling::flags ? "--" : "", "method ",
             join_method_name(method, growth));
}

std::int64_t longest_of(const ContextRequest& request, const std::string& name, std::int64_t window,
                        Spelling spelling) {
  if (request.ctx > 0) return request.ctx;
  if (!request.scale) {
    refuse(cat("no context length given for ", name),
           spelling == Spelling::flags ? "give --ctx, e.g. --ctx 128k" : "give ctx, e.g. 131072");
  }
  const double tokens = *request.scale * double(window);
  if (!(tokens >= 1 && tokens < 0x1p40)) {
    refuse(cat("scale ", *request.scale, " is not possible"), "give a scale above 1");
  }
  return std::llround(tokens);
}

Ladder growing(const Geometry& geometry, const ContextRequest& request, Extension extension,
               const MethodName& parts, const std::string& name, Spelling spelling) {
  LadderRequest ladder;
  ladder.longest = longest_of(request, name, geometry.train_length, spelling);
  if (parts.has_near_part()) {
    ladder = far_defaults(geometry.train_length, ladder.longest);
    ladder.near->length = request.near.value_or(ladder.near->length);
    ladder.near->step = request.near_step.value_or(ladder.near->step);
  }
  ladder.extension = std::move(extension);
  ladder.rung_step = request.rung_step.value_or(ladder.rung_step);
  ladder.headroom = request.headroom.value_or(ladder.headroom);
  return make_ladder(geometry, ladder);
}

// How many times its window a model is to read; 0 if the request does not say.
double times_the_window(const Geometry& geometry, const ContextRequest& request) {
  if (request.ctx > 0) return double(request.ctx) / double(geometry.train_length);
  return request.scale.value_or(0);
}

}  // namespace

bool is_auto(std::string_view method) { return lower_case(method) == kAuto; }

ContextRequest resolve_auto(const Geometry& geometry, ContextRequest request) {
  if (!is_auto(request.method)) return request;
  const double times = times_the_window(geometry, request);
  request.method = times > 0 && times <= 1 ? "none" : "far:pi";
  return request;
}

std::string static_method(const Geometry& geometry, double scale) {
  Extension pro;
  pro.method = "pro";
  pro.scale = scale;
  try {
    make_plan(geometry, pro);
  } catch (const Error&) {
    return "ntk";  // no pair makes between 1 and 32 turns, so there is no middle to extend
  }
  return pro.method;
}

ContextRequest in_one_rung(const Geometry& geometry, ContextRequest request) {
  request.method = "elastic:pro";
  if (!request.rung_step) request.rung_step = one_rung(times_the_window(geometry, request));
  return request;
}

std::string description(const ContextRequest& request) {
  std::string text = full_name(request);
  const auto add = [&](const char* flag, const auto& value) {
    if (value) text += cat(" ", flag, "=", *value);
  };
  const Parameters& p = request.parameters;
  add("--beta-fast", p.beta_fast);
  add("--beta-slow", p.beta_slow);
  add("--low", p.low);
  add("--high", p.high);
  add("--power", p.power);
  add("--attn-coef", p.attn_coef);
  add("--headroom", request.headroom);
  add("--rung-step", request.rung_step);
  add("--near", request.near);
  add("--near-step", request.near_step);
  return text;
}

std::string full_name(const ContextRequest& request) {
  if (is_auto(request.method)) return std::string(kAuto);
  const MethodName parts = split_method_name(request.method);
  return join_method_name(method_row(parts.method).info.name, parts.growth);
}

void check_reach(const ContextRequest& request, Spelling spelling) {
  if (request.ctx == 0 || !request.scale) return;
  if (!is_auto(request.method)) {
    const Reach reach = method_row(split_method_name(request.method).method).reach;
    if (reach == Reach::length || reach == Reach::unchanged) return;
  }
  const char* dashes = spelling == Spelling::flags ? "--" : "";
  refuse(cat(dashes, "ctx ", request.ctx, " and ", dashes, "scale ", *request.scale,
             " both set how far ", full_name(request), " extends the model"),
         "give one of them");
}

PlanOrLadder make_context(const Geometry& geometry, const ContextRequest& asked,
                          Spelling spelling) {
  const ContextRequest request = resolve_auto(geometry, asked);
  const bool flags = spelling == Spelling::flags;
  const MethodName parts = split_method_name(request.method);
  const Method& row = method_row(parts.method);
  const std::string name = full_name(request);
  const auto instead = [&](const char* usual, Growth growth) {
    if (is_auto(asked.method)) return std::string("leave it out: auto is none inside the window");
    return method_to_give(row.reach == Reach::unchanged ? usual : row.info.name, growth, spelling);
  };
  if (!parts.has_near_part() && (request.near || request.near_step)) {
    refuse(cat(flags ? "--near and --near-step" : "near and near_step",
               " are for contexts with a near part, not for ", name),
           instead("pi", Growth::far));
  }
  if (!parts.grows() && request.rung_step) {
    refuse(cat(flags ? "--rung-step" : "rung_step", " is for contexts that grow, not for ", name),
           instead("pro", Growth::elastic));
  }

  Extension e;
  e.method = row.info.name;
  e.parameters = request.parameters;
  const bool by_length = row.reach == Reach::length;  // scale is its factor, ctx its length
  if (by_length) e.scale = request.scale.value_or(1);
  if (parts.grows()) return growing(geometry, request, std::move(e), parts, name, spelling);
  if (row.reach == Reach::unchanged) return make_plan(geometry, e);
  const double headroom = request.headroom.value_or(1);
  check_headroom(headroom);
  const bool beyond = request.ctx > geometry.train_length;
  if (by_length) {
    e.length = beyond ? std::llround(headroom * double(request.ctx)) : request.ctx;
  } else if (request.scale) {
    e.scale = *request.scale > 1 ? headroom * *request.scale : *request.scale;
  } else if (request.ctx > 0) {
    e.scale = beyond ? headroom * double(request.ctx) / double(geometry.train_length) : 1;
  } else if (row.reach != Reach::numbers) {
    refuse(
        cat(flags ? "--ctx or --scale" : "ctx or scale", " is required for ", name),
        flags ? "give --ctx LENGTH (e.g. --ctx 128k) or --scale S" : "give ctx=131072, or scale=4");
  }
  return make_plan(geometry, e);
}

Ladder as_ladder(const PlanOrLadder& context, std::int64_t length) {
  const auto* plan = std::get_if<Plan>(&context);
  return plan ? make_ladder(*plan, length) : std::get<Ladder>(context);
}

const Plan& last_plan(const PlanOrLadder& context) {
  const auto* plan = std::get_if<Plan>(&context);
  return plan ? *plan : std::get<Ladder>(context).rungs().back().plan;
}

}  // namespace mrrope
