// SPDX-License-Identifier: Apache-2.0
// Plans of files, requests and answers as JSON, and rotation on the CPU.
#include <cstring>

#include "base/json.h"
#include "capi/guard.h"
#include "core/methods.h"
#include "formats/json_keys.h"
#include "formats/plan_file.h"
#include "mrrope/model.h"

using mrrope::cat;
using mrrope::ErrorKind;
using mrrope::Geometry;
using mrrope::JsonKeys;
using mrrope::Ladder;
using mrrope::refuse;
using mrrope::refuse_if;
using mrrope::capi::batch_of;
using mrrope::capi::checked;
using mrrope::capi::guarded;

namespace {

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
                        "trained_attention_scale"});
    g = geometry_of(*stated);
  } else {
    refuse_if(path.find('\0') != std::string::npos,
              cat("the path ", mrrope::shown(path), " has a null character in it"), "give a path");
    g = mrrope::read_model(path, replace).geometry;
  }
  g.train_length = length(in, "train_length").value_or(g.train_length);
  validate(g);
  return g;
}

Ladder made_of(const nlohmann::json& request) {
  const JsonKeys in(request, "the request", ErrorKind::usage, "mrrope.h says what a request holds");
  std::vector<std::string> keys = mrrope::parameter_names();
  keys.insert(keys.begin(),
              {"model", "geometry", "method", "ctx", "scale", "replace_scaling", "train_length"});
  in.allow_only(keys);
  const std::string text = in.text({"method"});
  refuse_if(text.empty(), "no method given", "give method, e.g. \"pro\" or \"pro(low=5)\"");
  mrrope::MethodSpec method = mrrope::parse_method(text);  // named before the model is read
  const Geometry geometry = subject_of(in);
  add_parameters(in, method.parameters);
  const auto ctx = length(in, "ctx").value_or(0);
  const auto scale = in.real({"scale"});
  mrrope::check_reach(method, ctx, scale);
  return make_ladder(geometry, method, ctx, scale);
}

// Hands out what `make` returns, as a text of its own.
template <typename Make>
int give_text(char** out, Make make) noexcept {
  return guarded([&] {
    refuse_if(!out, "the out pointer is null");
    *out = nullptr;
    const std::string text = mrrope::json_text(make());  // a path need not be UTF-8
    auto* copy = new char[text.size() + 1];
    std::memcpy(copy, text.c_str(), text.size() + 1);
    *out = copy;
  });
}

}  // namespace

int mrrope_plan_create_for_model(const char* path, const char* method, int64_t ctx,
                                 mrrope_plan** out) {
  return guarded(out, [&] {
    const mrrope::Model model = mrrope::read_model(checked(path, "path"));
    refuse_if(ctx < 1, cat("a context of ", ctx, " tokens is not possible"),
              "give at least 1 token");
    return mrrope::capi::static_plan(model.geometry, checked(method, "method"), ctx, std::nullopt);
  });
}

int mrrope_plan_load(const char* path, mrrope_plan** out) {
  return guarded(out, [&] {
    const mrrope::Ladder ladder = mrrope::read_plan_file(checked(path, "path"));
    if (ladder.growth() == mrrope::Growth::none) return ladder.rungs().front().plan;
    refuse(cat(path, " holds a ladder, which is more than one plan"),
           "make a static plan: mrrope plan --method pro ... -o FILE");
  });
}

int mrrope_make(const char* request, char** out) {
  return give_text(out, [&] {
    return to_json(made_of(mrrope::parse_json(checked(request, "request"), "the request")));
  });
}

int mrrope_load(const char* path, char** out) {
  return give_text(out, [&] { return to_json(mrrope::read_plan_file(checked(path, "path"))); });
}

int mrrope_inspect(const char* path, int64_t ctx, char** out) {
  return give_text(out, [&] {
    const mrrope::Model model = mrrope::read_model(checked(path, "path"));
    refuse_if(ctx < 0, cat("a context of ", ctx, " tokens is not possible"), "give 1 or more");
    return model_json(model, ctx > 0 ? ctx : model.geometry.train_length);
  });
}

void mrrope_text_free(char* text) { delete[] text; }

int mrrope_ladder_places(const char* text, char** out) {
  return give_text(out, [&] {
    const Ladder ladder =
        mrrope::ladder_from_json(mrrope::parse_json(checked(text, "text"), "the ladder"));
    refuse_if(ladder.growth() == mrrope::Growth::none, "this is one plan, not a ladder",
              "give a ladder, e.g. of elastic:pro");
    const std::vector<mrrope::Rung> listed = mrrope::listed_rungs(ladder);
    auto places = nlohmann::ordered_json::array();
    std::size_t number = 0;
    for (const mrrope::Rung& rung : ladder.rungs()) {
      while (listed[number].length < rung.length) ++number;
      places.push_back({{"length", rung.length},
                        {"rung", number},
                        {"border", rung.border},
                        {"shift", rung.shift}});
    }
    return places;
  });
}

int mrrope_plan_parse(const char* text, int64_t rung, mrrope_plan** out) {
  return guarded(out, [&] {
    const auto listed = mrrope::listed_rungs(
        mrrope::ladder_from_json(mrrope::parse_json(checked(text, "text"), "the plan")));
    refuse_if(rung < 0 || rung >= std::int64_t(listed.size()), cat("there is no rung ", rung),
              cat("give 0 to ", listed.size() - 1));
    return listed[std::size_t(rung)].plan;
  });
}

int mrrope_workers_create(int32_t threads, mrrope_workers** out) {
  return guarded(out, [&] { return mrrope::Workers(threads); });
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
