// SPDX-License-Identifier: Apache-2.0
#include "engine/run/speed.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files/output_file.h"
#include "base/files/source.h"
#include "base/json.h"
#include "base/text.h"

namespace mrrope::engine {

namespace {

constexpr std::int64_t kShortPart = 32;  // tokens
constexpr std::int64_t kEnoughTokens = 256;
constexpr std::int64_t kLongPart = 2048;  // in which loading and allocating do not matter
constexpr std::size_t kMostKept = 1000;   // speeds in the file

// Empty where the system has no place for it.
std::filesystem::path speed_file() {
  const std::filesystem::path folder = cache_folder();
  return folder.empty() ? folder : folder / "speed.json";
}

// What a speed depends on. A copy of a file elsewhere is the same model.
std::string key_of(const Model& model, const LocalOptions& o) {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  return cat(model.path.filename().string(), " ", model.weight_bytes, " ", o.type_k, " ", o.type_v,
             " ngl ", o.gpu_layers, " t ", o.threads, " ub ", o.ubatch, " fa ", o.flash_attention,
             o.rpc.empty() ? "" : " rpc " + o.rpc, o.device.empty() ? "" : " device " + o.device,
             " on ", host);
}

// Nothing of a file that is not ours is used.
nlohmann::json read_kept() {
  try {
    nlohmann::json kept = read_json(speed_file());
    if (kept.is_object() && kept.size() <= kMostKept) return kept;
  } catch (const Error&) {
    // The first call on this machine, or a damaged file, which is written again.
  }
  return nlohmann::json::object();
}

// The share of a product of attention, for a token and one before it, in the time of a token: that
// of so many bytes of weights.
double attention_share(const Model& model, double bytes) {
  double products = 0;
  for (const Layer& layer : model.layers) {
    if (layer.kind == LayerKind::windowed || layer.kind == LayerKind::recurrent) continue;
    products += double(model.heads) * (model.key_length + model.value_length);
  }
  return bytes * products / double(std::max<std::uint64_t>(model.weight_bytes, 1));
}

}  // namespace

void SpeedMeter::add(std::int64_t position, std::int64_t count, double seconds) {
  const bool warm = std::exchange(warm_, true);
  if (count < (warm ? kShortPart : kLongPart)) return;
  const double n = double(count);
  const double x = double(position) + n / 2;
  const double y = seconds / n;
  tokens_ += n, x_ += n * x, y_ += n * y, xx_ += n * x * x, xy_ += n * x * y;
}

std::optional<ReadingSpeed> SpeedMeter::speed(const Model& model) const {
  if (tokens_ < double(kEnoughTokens)) return std::nullopt;
  const double x = x_ / tokens_;
  const double y = y_ / tokens_;
  const double spread = xx_ / tokens_ - x * x;
  const double covariance = xy_ / tokens_ - x * y;
  const double most = y * attention_share(model, 8);
  const double slope = spread > 0 ? std::clamp(covariance / spread, 0.0, most) : 0;
  return ReadingSpeed{std::max(y - slope * x, y / 10), slope};
}

std::optional<ReadingSpeed> kept_speed(const Model& model, const LocalOptions& options) {
  const nlohmann::json kept = read_kept();
  const auto at = kept.find(key_of(model, options));
  if (at == kept.end()) return std::nullopt;
  const ReadingSpeed speed{value_at(*at, "start"), value_at(*at, "slope")};
  if (!(speed.start > 0) || !(speed.slope >= 0)) return std::nullopt;
  return speed;
}

double growth(const Model& model, const LocalOptions& options) {
  const std::optional<ReadingSpeed> kept = kept_speed(model, options);
  return kept ? kept->slope / kept->start : attention_share(model, 4);
}

void keep_speed(const Model& model, const LocalOptions& options, const ReadingSpeed& speed) {
  try {
    nlohmann::json kept = read_kept();
    if (kept.size() >= kMostKept) kept.clear();
    kept[key_of(model, options)] = {{"start", speed.start}, {"slope", speed.slope}};
    const std::filesystem::path file = speed_file();
    std::filesystem::create_directories(file.parent_path());
    write_atomically(file, kept.dump(1) + "\n");
  } catch (const std::exception&) {
    // A machine without a place for it only lacks estimates.
  }
}

ReadingSpeed measure_speed(TimelineModel& timelines) {
  constexpr std::int64_t kChunks = 4;  // the first one warms up
  const std::int64_t chunk = std::min<std::int64_t>(512, timelines.context_length() / kChunks);
  refuse_if(chunk * (kChunks - 1) < kEnoughTokens,
            cat("a context of ", timelines.context_length(), " tokens is too short to time"),
            "give a larger --ctx");
  const std::vector<Token> tokens(std::size_t(chunk), timelines.bos().value_or(0));
  const auto timeline = timelines.timeline();
  SpeedMeter meter;
  for (std::int64_t i = 0; i < kChunks; ++i) {
    const auto start = std::chrono::steady_clock::now();
    timeline->append(tokens);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    meter.add(i * chunk, chunk, took.count());
  }
  return meter.speed(timelines.facts()).value();
}

double seconds_to_read(const ReadingSpeed& speed, const std::vector<std::int64_t>& lengths) {
  double total = 0;
  for (const std::int64_t length : lengths) {
    total += double(length) * (speed.start + speed.slope * double(length) / 2);
  }
  return total;
}

std::string time_text(const std::optional<ReadingSpeed>& speed,
                      const std::vector<std::int64_t>& lengths, const std::string& ending) {
  if (!speed) return "time not known yet: mrrope inspect MODEL --time measures it";
  const double seconds = seconds_to_read(*speed, lengths);
  double tokens = 0;
  for (const std::int64_t length : lengths) tokens += double(length);
  return cat("about ", duration_text(seconds), ending, ", at ",
             significant(seconds > 0 ? tokens / seconds : 1 / speed->start, 3),
             " tokens/s, as measured on this machine");
}

}  // namespace mrrope::engine
