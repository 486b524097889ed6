// SPDX-License-Identifier: Apache-2.0
// A conversation in one file, to resume in another process: what the engine saved, then JSON that
// says what it belongs to, then the size of the JSON and a mark. The file is replaced in one step.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "model/timeline_model.h"

namespace mrrope::engine {

// A session can only be resumed if all of these are the same.
struct SessionOwner {
  std::string model;               // digest
  std::string plan;                // digest of the ladder
  std::string keys;                // type of the cache
  std::string values;              // type of the cache
  std::string layout = "1 cache";  // in how many caches the engine keeps its sequences
};

struct Session {
  std::unique_ptr<Timeline> timeline;
  std::vector<ChatMessage> messages;  // of a chat
  std::string salt = {};              // of a server's slot: who may share it; empty: those without
};

// Whether there is a session. Throws Error (usage) if the path names anything else.
bool session_exists(const std::filesystem::path& path);

// Throws Error (corrupt, failed, usage) if there is no session, or one of another owner. Needs no
// model; what is not known yet is empty.
void check_session(const std::filesystem::path& path, const SessionOwner& owner);

// Throws Error: corrupt, failed, usage (the owner differs, or TimelineModel::restore() refuses).
Session load_session(const std::filesystem::path& path, const SessionOwner& owner,
                     TimelineModel& model);

// Replaces an earlier session, and no other file. Throws Error: usage, failed.
void save_session(const std::filesystem::path& path, const SessionOwner& owner,
                  const Timeline& timeline, const std::vector<ChatMessage>& messages,
                  const std::string& salt = {});

}  // namespace mrrope::engine
