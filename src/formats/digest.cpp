// SPDX-License-Identifier: Apache-2.0
#include "formats/digest.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files/source.h"
#include "base/sha256.h"
#include "base/text.h"
#include "formats/plan_file.h"

namespace mrrope {

namespace {

constexpr std::uint64_t kWhole = std::uint64_t(64) << 20;
constexpr std::uint64_t kHead = std::uint64_t(16) << 20;
constexpr std::uint64_t kBlock = std::uint64_t(64) << 10;
constexpr std::uint64_t kBlocks = 256;

void hash_range(const Source& source, std::uint64_t start, std::uint64_t size, Sha256& hash) {
  std::string buffer;
  for (std::uint64_t done = 0; done < size; done += buffer.size()) {
    buffer.resize(std::min<std::uint64_t>(size - done, 1 << 20));
    source.read(start + done, std::as_writable_bytes(std::span(buffer)));
    hash.update(buffer);
  }
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
    const Source source = Source::open(path);
    const std::uint64_t size = source.size();
    hash.update(cat(size, "\n"));
    if (size < kWhole) {
      hash_range(source, 0, size, hash);
      continue;
    }
    sampled = true;
    hash_range(source, 0, kHead, hash);
    const std::uint64_t span = size - kHead - kBlock;
    for (std::uint64_t i = 0; i < kBlocks; ++i) {
      // span * i would overflow only past 2^56 bytes.
      hash_range(source, kHead + span * i / (kBlocks - 1), kBlock, hash);
    }
  }
  return (sampled ? "sampled:" : "sha256:") + hash.hex();
}

}  // namespace mrrope
