// SPDX-License-Identifier: Apache-2.0
// The functions of mrrope.h: plans, of numbers, files and requests; their tables; rotation on the
// CPU.
#include <cmath>
#include <cstring>

#include "base/json.h"
#include "capi/guard.h"
#include "core/methods.h"
#include "formats/json_keys.h"
#include "formats/plan_file.h"
#include "mrrope/model.h"
#include "mrrope/version.h"

using namespace mrrope;
using namespace mrrope::capi;

namespace {

Element element_of(std::int32_t element) {
  refuse_if(element < MRROPE_F32 || element > MRROPE_BF16,
            cat("element ", element, " is not 0, 1 or 2"),
            "use MRROPE_F32, MRROPE_F16 or MRROPE_BF16");
  constexpr Element kElements[] = {Element::f32, Element::f16, Element::bf16};
  return kElements[element];
}

Strides strides_of(const mrrope_strides& s) { return {s.sequence, s.token, s.head}; }

Heads heads_of(const mrrope_heads& h) {
  return {h.count, h.from, strides_of(h.from_strides), h.to, strides_of(h.to_strides)};
}

constexpr std::int64_t kMaxLength = std::int64_t{1} << 53;  // whole numbers of a double

// A length above 0.
std::optional<std::int64_t> length(const JsonKeys& in, const char* key) {
  const auto value = in.integer({key}, -kMaxLength, kMaxLength);
  refuse_if(value.value_or(1) < 1, cat(key, " of ", value.value_or(1), " tokens is not possible"),
            "give at least 1 token");
  return value;
}

Geometry subject_of(const JsonKeys& in) {
  const std::string path = in.text({"model"});
  const auto stated = in.object({"geometry"});
  refuse_if(path.empty() == !stated,
            stated ? "both a model and a geometry are given" : "no model given",
            "give the path of a model, or a geometry");
  const bool replace = in.flag({"replace_scaling"}).value_or(false);
  Geometry g;
  if (stated) {
    refuse_if(replace, "replace_scaling needs a model",
              "remove it: a geometry states its own scaling");
    stated->allow_only({"rotary_dim", "base", "train_length", "pairing", "trained_factor",
                        "trained_attention_scale", "long_factor", "long_length"});
    g = geometry_of(*stated);
  } else {
    refuse_if(path.find('\0') != std::string::npos,
              cat("the path ", shown(path), " has a null character in it"), "give a path");
    g = read_model(path, replace).geometry;
  }
  g.train_length = length(in, "train_length").value_or(g.train_length);
  validate(g);
  return g;
}

Ladder made_of(const nlohmann::json& request) {
  const JsonKeys in(request, "the request", ErrorKind::usage, "mrrope.h says what a request holds");
  std::vector<std::string> keys = parameter_names();
  keys.insert(keys.begin(),
              {"model", "geometry", "method", "ctx", "scale", "replace_scaling", "train_length"});
  in.allow_only(keys);
  const std::string text = in.text({"method"});
  refuse_if(text.empty(), "no method given", "give method, e.g. \"pro\" or \"pro(low=5)\"");
  MethodSpec method = parse_method(text);  // named before the model is read
  const Geometry geometry = subject_of(in);
  add_parameters(in, method.parameters);
  const auto ctx = length(in, "ctx").value_or(0);
  const auto scale = in.real({"scale"});
  check_reach(method, ctx, scale);
  return make_ladder(geometry, method, ctx, scale);
}

// Hands out what `make` returns, as a text of its own.
template <typename Make>
int give_text(char** out, Make make) noexcept {
  return guarded([&] {
    refuse_if(!out, "the out pointer is null");
    *out = nullptr;
    const std::string text = json_text(make());  // a path need not be UTF-8
    auto* copy = new char[text.size() + 1];
    std::memcpy(copy, text.c_str(), text.size() + 1);
    *out = copy;
  });
}

}  // namespace

mrrope::capi::Failure& mrrope::capi::last_failure() noexcept {
  thread_local Failure failure;
  return failure;
}

const char* mrrope_version(void) { return mrrope::version(); }

const char* mrrope_last_error(void) { return mrrope::capi::last_failure().text.c_str(); }
const char* mrrope_last_message(void) { return mrrope::capi::last_failure().message.c_str(); }
const char* mrrope_last_hint(void) { return mrrope::capi::last_failure().hint.c_str(); }

int mrrope_plan_create(const mrrope_geometry* geometry, const char* method, double scale,
                       mrrope_plan** out) {
  return guarded(out, [&] {
    const mrrope_geometry& in = checked(geometry, "geometry");
    refuse_if(in.pairing != MRROPE_HALVES && in.pairing != MRROPE_INTERLEAVED,
              cat("pairing ", in.pairing, " is neither 0 nor 1"),
              "use MRROPE_HALVES or MRROPE_INTERLEAVED");
    const Geometry g{in.rotary_dim, in.base, in.train_length,
                     in.pairing == MRROPE_HALVES ? Pairing::halves : Pairing::interleaved};
    const std::string name = checked(method, "method");
    if (method_row(bare_name(name)).reach != Reach::length) return static_plan(g, name, 0, scale);
    refuse_if(!(scale >= 1 && scale * double(g.train_length) < 1e15),
              cat("scale ", scale, " is not possible"), "give 1 or more");
    return static_plan(g, name, std::llround(scale * double(g.train_length)), std::nullopt);
  });
}

void mrrope_plan_free(mrrope_plan* plan) { delete plan; }

size_t mrrope_plan_pairs(const mrrope_plan* plan) { return plan->plan.factor().size(); }
const double* mrrope_plan_theta(const mrrope_plan* plan) { return plan->plan.theta().data(); }
const double* mrrope_plan_factor(const mrrope_plan* plan) { return plan->plan.factor().data(); }
double mrrope_plan_attention_scale(const mrrope_plan* plan) { return plan->plan.attention_scale(); }
int32_t mrrope_plan_low(const mrrope_plan* plan) { return plan->plan.boundaries().low; }
int32_t mrrope_plan_high(const mrrope_plan* plan) { return plan->plan.boundaries().high; }

Plan mrrope::capi::static_plan(const Geometry& geometry, const std::string& method,
                               std::int64_t ctx, std::optional<double> scale) {
  const MethodSpec spec = parse_method(method);
  refuse_if(spec.growth != Growth::none || is_auto(spec.name),
            cat(method, " is more than one plan"), "give a static method, e.g. pro");
  return make_ladder(geometry, spec, ctx, scale).rungs().front().plan;
}

Batch mrrope::capi::batch_of(const mrrope_batch* batch) {
  const mrrope_batch& b = checked(batch, "batch");
  return {element_of(b.element), b.head_dim,  b.sequences,      b.tokens,      heads_of(b.queries),
          heads_of(b.keys),      b.positions, b.first_position, b.inverse != 0};
}

int mrrope_table_create(const mrrope_plan* plan, int64_t first, int64_t end, int32_t element,
                        mrrope_table** out) {
  return guarded(out, [&] {
    return RotaryTable(checked(plan, "plan").plan, first, end, element_of(element));
  });
}

int mrrope_table_create_turning(const mrrope_plan* from, const mrrope_plan* to, int64_t first,
                                int64_t end, int32_t element, mrrope_table** out) {
  return guarded(out, [&] {
    return RotaryTable::turning(checked(from, "from").plan, checked(to, "to").plan, first, end,
                                element_of(element));
  });
}

int mrrope_table_grow(mrrope_table* table, int64_t end) {
  return guarded([&] {
    checked(table, "table");
    table->table.grow(end);
  });
}

void mrrope_table_free(mrrope_table* table) { delete table; }

int mrrope_plan_create_for_model(const char* path, const char* method, int64_t ctx,
                                 mrrope_plan** out) {
  return guarded(out, [&] {
    const Model model = read_model(checked(path, "path"));
    refuse_if(ctx < 1, cat("a context of ", ctx, " tokens is not possible"),
              "give at least 1 token");
    return mrrope::capi::static_plan(model.geometry, checked(method, "method"), ctx, std::nullopt);
  });
}

int mrrope_plan_load(const char* path, mrrope_plan** out) {
  return guarded(out, [&] {
    const Ladder ladder = read_plan_file(checked(path, "path"));
    if (ladder.growth() == Growth::none) return ladder.rungs().front().plan;
    refuse(cat(path, " holds a ladder, which is more than one plan"),
           "make a static plan: mrrope plan --method pro ... -o FILE");
  });
}

int mrrope_make(const char* request, char** out) {
  return give_text(out, [&] {
    return to_json(made_of(parse_json(checked(request, "request"), "the request")));
  });
}

int mrrope_load(const char* path, char** out) {
  return give_text(out, [&] { return to_json(read_plan_file(checked(path, "path"))); });
}

int mrrope_inspect(const char* path, int64_t ctx, char** out) {
  return give_text(out, [&] {
    const Model model = read_model(checked(path, "path"));
    refuse_if(ctx < 0, cat("a context of ", ctx, " tokens is not possible"), "give 1 or more");
    return model_json(model, ctx > 0 ? ctx : model.geometry.train_length);
  });
}

void mrrope_text_free(char* text) { delete[] text; }

int mrrope_ladder_places(const char* text, char** out) {
  return give_text(out, [&] {
    const Ladder ladder = ladder_from_json(parse_json(checked(text, "text"), "the ladder"));
    refuse_if(ladder.growth() == Growth::none, "this is one plan, not a ladder",
              "give a ladder, e.g. of elastic:pro");
    const std::vector<Rung> listed = listed_rungs(ladder);
    auto places = nlohmann::ordered_json::array();
    std::size_t number = 0;
    for (const Rung& rung : ladder.rungs()) {
      while (listed[number].length < rung.length) ++number;
      places.push_back({{"length", rung.length},
                        {"rung", number},
                        {"border", rung.border},
                        {"shift", rung.shift},
                        {"sharpness", rung.sharpness}});
    }
    return places;
  });
}

int mrrope_plan_parse(const char* text, int64_t rung, mrrope_plan** out) {
  return guarded(out, [&] {
    const auto listed =
        listed_rungs(ladder_from_json(parse_json(checked(text, "text"), "the plan")));
    refuse_if(rung < 0 || rung >= std::int64_t(listed.size()), cat("there is no rung ", rung),
              cat("give 0 to ", listed.size() - 1));
    return listed[std::size_t(rung)].plan;
  });
}

int mrrope_workers_create(int32_t threads, mrrope_workers** out) {
  return guarded(out, [&] { return Workers(threads); });
}

void mrrope_workers_free(mrrope_workers* workers) { delete workers; }

int mrrope_rotate(const mrrope_table* table, const mrrope_batch* batch, mrrope_workers* workers) {
  return guarded([&] {
    if (workers) {
      rotate(checked(table, "table").table, batch_of(batch), workers->workers);
    } else {
      rotate(checked(table, "table").table, batch_of(batch));
    }
  });
}

int mrrope_rotate_part(const mrrope_table* table, const mrrope_batch* batch, int32_t part,
                       int32_t parts) {
  return guarded([&] { rotate_part(checked(table, "table").table, batch_of(batch), part, parts); });
}
