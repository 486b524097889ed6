// SPDX-License-Identifier: Apache-2.0
#include "formats/digest.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/sha256.h"
#include "base/text.h"
#include "formats/plan_file.h"
#include "mrrope/error.h"

namespace mrrope {

namespace {

constexpr std::uint64_t kWhole = std::uint64_t(64) << 20;
constexpr std::uint64_t kHead = std::uint64_t(16) << 20;
constexpr std::uint64_t kBlock = std::uint64_t(64) << 10;
constexpr std::uint64_t kBlocks = 256;

void hash_range(std::ifstream& in, std::uint64_t start, std::uint64_t size, Sha256& hash) {
  std::string buffer;
  in.seekg(std::streamoff(start));
  while (size > 0 && in) {
    buffer.resize(std::min<std::uint64_t>(size, 1 << 20));
    in.read(buffer.data(), std::streamsize(buffer.size()));
    hash.update(std::string_view(buffer).substr(0, std::size_t(in.gcount())));
    size -= std::uint64_t(in.gcount());
  }
  if (size > 0)
    throw Error(ErrorKind::failed, "it ends early",
                "wait until it is fully written, then try again");
}

}  // namespace

std::string plan_digest(const Plan& plan) { return sha256(plan_json(plan).dump()).substr(0, 16); }

std::string ladder_digest(const Ladder& ladder) {
  if (!ladder.elastic()) return plan_digest(ladder.rungs().front().plan);
  return sha256(ladder_json(ladder).dump()).substr(0, 16);
}

std::string model_digest(const std::vector<std::filesystem::path>& files) {
  Sha256 hash;
  bool sampled = false;
  for (const std::filesystem::path& path : files) {
    std::error_code error;
    const std::uint64_t size = std::filesystem::file_size(path, error);
    std::ifstream in(path, std::ios::binary);
    if (error || !in) {
      throw Error(ErrorKind::failed, cat("cannot read the model file ", path.string()),
                  "check that it has not been moved or deleted");
    }
    hash.update(cat(size, "\n"));
    try {
      if (size < kWhole) {
        hash_range(in, 0, size, hash);
        continue;
      }
      sampled = true;
      hash_range(in, 0, kHead, hash);
      const std::uint64_t span = size - kHead - kBlock;
      for (std::uint64_t i = 0; i < kBlocks; ++i) {
        // span * i would overflow only past 2^56 bytes.
        hash_range(in, kHead + span * i / (kBlocks - 1), kBlock, hash);
      }
    } catch (const Error& e) {
      throw Error(ErrorKind::failed, cat("cannot read ", path.string(), ": ", e.what()), e.hint());
    }
  }
  return (sampled ? "sampled:" : "sha256:") + hash.hex();
}

}  // namespace mrrope
