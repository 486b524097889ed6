// SPDX-License-Identifier: Apache-2.0
#include "engine/session/session.h"

#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>

#include "base/files/output_file.h"
#include "base/files/source.h"
#include "base/json.h"
#include "base/text.h"

namespace mrrope::engine {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kMark = "mrrope session 1";
constexpr std::uint64_t kMostJson = std::uint64_t{256} << 20;
constexpr std::size_t kTail = sizeof(std::uint64_t) + kMark.size();

[[noreturn]] void fail(const std::string& what, const fs::path& path, int error) {
  throw Error(ErrorKind::failed, cat("cannot ", what, " ", path.string(), ": ", strerror(error)),
              "give another --session");
}

[[noreturn]] void corrupt(const fs::path& path, const std::string& why) {
  throw Error(ErrorKind::corrupt, cat("session ", path.string(), " ", why),
              cat("delete ", path.string(), " to start again"));
}

// Against damage, not against forgery. Every step is invertible, so any one wrong word shows.
std::uint64_t checksum(std::ifstream& file, std::uint64_t size) {
  std::uint64_t sum = size;
  std::vector<std::uint64_t> words(1 << 17);
  while (size > 0) {
    words.assign(words.size(), 0);
    const std::uint64_t count = std::min<std::uint64_t>(size, words.size() * sizeof words[0]);
    if (!file.read(reinterpret_cast<char*>(words.data()), std::streamsize(count))) return ~sum;
    for (std::uint64_t i = 0; i < (count + 7) / 8; ++i) {
      sum = std::rotl(sum ^ words[i], 29) * 0x9E3779B97F4A7C15U;
    }
    size -= count;
  }
  return sum;
}

// The end of a file; empty if it does not end as a session does.
struct Tail {
  std::uint64_t state = 0;  // bytes of what the engine saved
  std::uint64_t json = 0;
};
std::optional<Tail> tail_of(std::ifstream& file, std::uint64_t size) {
  char bytes[kTail];
  if (size < kTail || !file.seekg(std::streamoff(size - kTail)).read(bytes, kTail) ||
      std::memcmp(bytes + sizeof(std::uint64_t), kMark.data(), kMark.size()) != 0) {
    return std::nullopt;
  }
  Tail tail;
  std::memcpy(&tail.json, bytes, sizeof tail.json);
  if (tail.json > size - kTail || tail.json > kMostJson) return std::nullopt;
  tail.state = size - kTail - tail.json;
  return tail;
}

// Adds bytes to a file that exists, and brings the whole file to the disk.
void append_to(const fs::path& path, std::string_view bytes) {
  const int file = retry_open(path, O_WRONLY | O_APPEND | O_NOFOLLOW);
  if (file < 0) fail("write", path, errno);
  int error = write_all(file, bytes);
  if (error == 0 && fsync(file) != 0) error = errno;
  close(file);
  if (error != 0) fail("write", path, error);
}

using Named = std::pair<const char*, std::string>;

std::vector<Named> parts_of(const SessionOwner& owner) {
  return {{"model", owner.model},
          {"plan", owner.plan},
          {"keys", owner.keys},
          {"values", owner.values},
          {"layout", owner.layout}};
}

// A session of this owner.
struct Opened {
  std::ifstream file;
  Tail tail;
  json about;  // what it says about itself
};

Opened open_session(const fs::path& path, const SessionOwner& owner) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  refuse_if(fs::exists(status) && !fs::is_regular_file(status),
            cat(path.string(), " is not a file"), "give a saved session");
  Opened opened{std::ifstream(path, std::ios::binary), {}, {}};
  if (!opened.file) fail("read", path, errno);
  const std::optional<Tail> tail = tail_of(opened.file, fs::file_size(path));
  if (!tail) corrupt(path, "is damaged");
  opened.tail = *tail;
  std::string text(tail->json, '\0');
  opened.file.seekg(std::streamoff(tail->state));
  if (!opened.file.read(text.data(), std::streamsize(text.size()))) corrupt(path, "is damaged");
  opened.about = parse_json(text, "session " + path.string(), {.bytes = kMostJson});
  try {
    for (const auto& [key, value] : parts_of(owner)) {
      // Sessions of earlier versions name no layout.
      const bool named = opened.about.contains(key) || std::string_view(key) != "layout";
      const auto saved = named ? opened.about.at(key).get<std::string>() : SessionOwner().layout;
      if (saved == value || value.empty()) continue;
      throw Error(ErrorKind::usage,
                  cat("session ", path.string(), " was saved with ", key, " ", shown(saved),
                      ", not ", shown(value)),
                  "give the model and flags it was saved with (--method, --ctx, -ctk), or another "
                  "--session");
    }
  } catch (const json::exception&) {
    corrupt(path, "has no usable description");
  }
  return opened;
}

}  // namespace

bool session_exists(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return false;
  if (status.type() == fs::file_type::regular) {
    std::ifstream file(path, std::ios::binary);
    if (!file) fail("read", path, errno);
    if (tail_of(file, fs::file_size(path))) return true;
  }
  throw Error(ErrorKind::usage, cat(path.string(), " exists and is not a session of mrrope"),
              "give a new file name");
}

void check_session(const fs::path& path, const SessionOwner& owner) { open_session(path, owner); }

Session load_session(const fs::path& path, const SessionOwner& owner, TimelineModel& model) {
  auto [file, tail, about] = open_session(path, owner);
  Session session;
  std::size_t rung = 0;
  try {
    file.seekg(0);
    corrupt_if(about.at("checksum").get<std::uint64_t>() != checksum(file, tail.state), path,
               "is damaged");
    for (const json& m : about.at("messages")) {
      session.messages.push_back(
          {m.at("role").get<std::string>(), m.at("content").get<std::string>()});
    }
    rung = about.at("rung").get<std::size_t>();
    session.salt = about.value("salt", std::string());
  } catch (const json::exception&) {
    corrupt(path, "has no usable description");
  }
  session.timeline = model.restore(path, rung);
  return session;
}

void save_session(const fs::path& path, const SessionOwner& owner, const Timeline& timeline,
                  const std::vector<ChatMessage>& messages, const std::string& salt) {
  session_exists(path);
  Staging staging(path, 0);
  const fs::path draft = staging.path(path.filename());
  timeline.save(draft);
  json about;
  for (const auto& [key, value] : parts_of(owner)) about[key] = value;
  {
    std::ifstream file(draft, std::ios::binary);
    about["checksum"] = checksum(file, fs::file_size(draft));
  }
  about["rung"] = timeline.rung();
  about["tokens"] = timeline.length();
  if (!salt.empty()) about["salt"] = salt;
  about["messages"] = json::array();
  for (const ChatMessage& m : messages) {
    about["messages"].push_back({{"role", m.role}, {"content", m.content}});
  }
  std::string tail = json_text(about);
  const std::uint64_t size = tail.size();
  tail.append(reinterpret_cast<const char*>(&size), sizeof size).append(kMark);
  append_to(draft, tail);
  staging.publish({path.filename()}, true);
}

}  // namespace mrrope::engine
