// SPDX-License-Identifier: Apache-2.0
// Names for contents: which plan and which model a result belongs to.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "mrrope/ladder.h"

namespace mrrope {

// The first 16 hexadecimal digits of the SHA-256 of the plan's JSON without blanks.
std::string plan_digest(const Plan& plan);
// A ladder with one rung has the digest of its plan: how far it reaches changes no number.
std::string ladder_digest(const Ladder& ladder);

// "sha256:" and the SHA-256 over all files in the order given, each preceded by its size (decimal,
// then a line feed). A file of 64 MiB or more is sampled, and the digest begins with "sampled:"
// instead: its first 16 MiB (metadata and tokenizer), then 256 blocks of 64 KiB, evenly spaced so
// that the last one ends at the end of the file. Names and places of the files do not matter.
// Throws Error (failed) when a file cannot be read.
std::string model_digest(const std::vector<std::filesystem::path>& files);

}  // namespace mrrope
