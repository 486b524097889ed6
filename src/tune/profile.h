// SPDX-License-Identifier: Apache-2.0
// Profiles: what tune found and proved for one model, as JSON. generate, chat, serve, eval and
// export use it from then on where they would use `auto`.
#pragma once

#include <nlohmann/json.hpp>

#include "mrrope/method.h"
#include "mrrope/model.h"

namespace mrrope::tune {

using nlohmann::ordered_json;

struct Profile {
  std::string model;           // model_digest()
  std::int64_t window = 0;     // of the model, as it was measured
  std::int64_t ctx = 0;        // up to so many tokens
  MethodSpec method{};         // static, for exports, or one that grows
  ordered_json measured = {};  // for people: it is not read again
  std::filesystem::path file{};
};

// Where the profile of a model is kept; empty where the system has no place for it. Names begin
// with the size of the weights, so that other models need not be hashed.
std::filesystem::path profile_place(const Model& model, const Profile& profile);

std::string profile_text(const Profile& profile);
// Throws Error: failed, corrupt.
Profile read_profile(const std::filesystem::path& path);
Profile parse_profile(const nlohmann::json& json, const std::string& name);

// Throws Error (usage) that says why this profile is not for this model and length.
void check_profile(const Profile& profile, const Model& model, std::int64_t ctx, bool grows);

// Of the kept ones that are for this model and length the one with the shortest context.
// damaged: files that cannot be read, with the reason.
std::optional<Profile> kept_profile(const Model& model, std::int64_t ctx, bool grows,
                                    std::vector<std::string>& damaged);

}  // namespace mrrope::tune
