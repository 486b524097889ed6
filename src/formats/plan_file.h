// SPDX-License-Identifier: Apache-2.0
// Plan files: a plan or a ladder as JSON, the exchange format of plan, tune, eval, generate and
// export. A file carries the request as well as the numbers; reading it computes the plan again and
// refuses a file whose numbers are not those of its request.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "mrrope/ladder.h"
#include "mrrope/model.h"

namespace mrrope {

class JsonKeys;

nlohmann::ordered_json plan_json(const Plan& plan);
nlohmann::ordered_json ladder_json(const Ladder& ladder);
// That of its plan for a static method, that of the ladder for one that grows.
nlohmann::ordered_json to_json(const Ladder& ladder);

// The rungs that ladder_json() lists: with a near part several rungs share a plan, and the last of
// them stands for all.
std::vector<Rung> listed_rungs(const Ladder& ladder);

// The geometry of a plan file; `pairing` and what follows it may be missing.
Geometry geometry_of(const JsonKeys& in);
// Sets every parameter that is a key of `in`.
void add_parameters(const JsonKeys& in, Parameters& parameters);
std::vector<std::string> parameter_names();

// Throw Error (corrupt) naming the key.
Ladder ladder_from_json(const nlohmann::json& json);
Ladder read_plan_file(const std::filesystem::path& path);

// The facts of a model as JSON, for `inspect --json` and for other languages.

// Bits of one element of the key-value cache.
inline constexpr double kBitsF16 = 16;
inline constexpr double kBitsQ8 = 8.5;  // 32 bytes and a two-byte scale per 32 elements

const char* to_string(LayerKind kind) noexcept;

// How many layers there are of each kind.
std::map<std::string, int> layer_counts(const Model& model);

// `ctx` is the context length that scale and cache sizes are given for.
nlohmann::ordered_json model_json(const Model& model, std::int64_t ctx);

// Names for contents: which plan and which model a result belongs to.

// The first 16 hexadecimal digits of the SHA-256 of the ladder's JSON without blanks; of its plan's
// where it has one rung, since how far that reaches changes no number.
std::string ladder_digest(const Ladder& ladder);

// "sha256:" and the SHA-256 over all files in the order given, each preceded by its size (decimal,
// then a line feed). A file of 64 MiB or more is sampled, and the digest begins with "sampled:"
// instead: its first 16 MiB (metadata and tokenizer), then 256 blocks of 64 KiB, evenly spaced so
// that the last one ends at the end of the file. Names and places of the files do not matter.
// Throws Error (failed) when a file cannot be read.
std::string model_digest(const std::vector<std::filesystem::path>& files);

}  // namespace mrrope
