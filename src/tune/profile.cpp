// SPDX-License-Identifier: Apache-2.0
#include "tune/profile.h"

#include <regex>

#include "base/files/output_file.h"
#include "base/json.h"
#include "core/methods.h"
#include "formats/json_keys.h"
#include "formats/plan_file.h"

namespace mrrope::tune {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kLongest = std::int64_t{1} << 40;  // tokens
constexpr JsonLimits kLimits{.bytes = 1 << 20, .depth = 16, .values = 20'000};
constexpr std::size_t kMostKept = 10'000;  // files in the folder

// As model_digest() writes it.
bool is_digest(const std::string& text) {
  static const std::regex digest("(sha256|sampled):[0-9a-f]{64}");
  return std::regex_match(text, digest);
}

fs::path profile_folder() {
  const fs::path cache = cache_folder();
  return cache.empty() ? cache : cache / "profiles";
}

std::string size_prefix(const Model& model) { return cat(model.weight_bytes, "-"); }

bool is_for(const Profile& profile, const Model& model, std::int64_t ctx, bool grows) {
  return profile.window == model.geometry.train_length && ctx <= profile.ctx &&
         grows == (profile.method.growth != Growth::none);
}

}  // namespace

fs::path profile_place(const Model& model, const Profile& profile) {
  const fs::path folder = profile_folder();
  if (folder.empty()) return folder;
  const std::string digest = profile.model.substr(profile.model.find(':') + 1, 16);
  const bool grows = profile.method.growth != Growth::none;
  return folder /
         cat(size_prefix(model), digest, "-", profile.ctx, grows ? "" : "-static", ".json");
}

std::string profile_text(const Profile& profile) {
  const ordered_json json = {{"profile", kVersion},
                             {"model", profile.model},
                             {"window", profile.window},
                             {"ctx", profile.ctx},
                             {"method", to_string(profile.method)},
                             {"measured", profile.measured}};
  return json_text(json, 2) + "\n";
}

Profile read_profile(const fs::path& path) {
  Profile profile = parse_profile(read_json(path, kLimits), path.string());
  profile.file = path;
  return profile;
}

Profile parse_profile(const nlohmann::json& json, const std::string& name) {
  const JsonKeys in(json, name, ErrorKind::corrupt, "let mrrope tune write it again");
  in.allow_only({"profile", "model", "window", "ctx", "method", "measured"});
  in.needed_integer("profile", kVersion, kVersion);
  Profile profile{.model = in.needed_text("model")};
  if (!is_digest(profile.model)) in.refuse(cat("model is ", shown(profile.model), ", no digest"));
  profile.window = in.needed_integer("window", 1, kLongest);
  profile.ctx = in.needed_integer("ctx", profile.window + 1, kLongest);
  const std::string method = in.needed_text("method");
  try {
    profile.method = parse_method(method);
  } catch (const Error& error) {
    in.refuse(cat("method ", shown(method), ": ", error.what()));
  }
  if (is_auto(profile.method.name)) in.refuse("method is auto, which a profile takes the place of");
  in.needed_object("measured");
  return profile;
}

void check_profile(const Profile& profile, const Model& model, std::int64_t ctx, bool grows) {
  const std::string digest = model_digest(model.files);
  const std::string name = profile.file.string();
  const std::string again = "leave out --profile, or tune this model: mrrope tune MODEL --ctx ";
  refuse_if(
      profile.model != digest,
      cat(name, " is of another model, ", profile.model, "; ", model.path.string(), " is ", digest),
      cat(again, length_text(ctx)));
  refuse_if(profile.window != model.geometry.train_length,
            cat(name, " was measured with a window of ", profile.window, " tokens, not ",
                model.geometry.train_length),
            "give the --train-ctx and --replace-scaling that it was tuned with, or leave them out");
  refuse_if(ctx > profile.ctx,
            cat(name, " holds up to ", profile.ctx, " tokens, and ", ctx, " are asked for"),
            cat("give a shorter --ctx, or ", again, length_text(ctx)));
  if (is_for(profile, model, ctx, grows)) return;
  refuse(cat(name, " holds ", to_string(profile.method),
             grows ? ", which does not grow with the text" : ", which grows: no file can hold it"),
         cat(again, length_text(ctx), grows ? "" : " --method power"));
}

std::optional<Profile> kept_profile(const Model& model, std::int64_t ctx, bool grows,
                                    std::vector<std::string>& damaged) {
  std::optional<Profile> best;
  std::string digest;
  std::error_code error;
  std::size_t seen = 0;
  for (fs::directory_iterator at(profile_folder(), error), end; !error && at != end;
       at.increment(error)) {
    if (++seen > kMostKept) break;
    const fs::path& path = at->path();
    const std::string name = path.filename().string();
    if (path.extension() != ".json" || !name.starts_with(size_prefix(model))) continue;
    try {
      Profile next = read_profile(path);
      if (!is_for(next, model, ctx, grows)) continue;
      if (digest.empty()) digest = model_digest(model.files);
      if (next.model == digest && (!best || next.ctx < best->ctx)) best = std::move(next);
    } catch (const Error& e) {
      damaged.emplace_back(e.what());
    }
  }
  return best;
}

}  // namespace mrrope::tune
