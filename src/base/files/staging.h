// SPDX-License-Identifier: Apache-2.0
// Output that gets its final name only after it has been verified. It is written in a private
// folder next to its final place (NAME.part-XXXXXX, a fresh name, mode 0700), under its final
// names, so that readers can open it there; publish() moves it.
//
// A process that is killed leaves this folder behind. The next Staging of the same output removes
// it, but only if a marker file inside shows that mrrope made it and no running process holds the
// marker's lock.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace mrrope {

class Staging {
 public:
  // out: the file or folder to write, in an existing folder that has `size` bytes free. Throws
  // Error (failed), also if another process is writing the same output.
  Staging(const std::filesystem::path& out, std::uint64_t size);
  // Removes what was not published.
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Where to write the file or folder that will be called `name`, next to `out`.
  std::filesystem::path path(const std::filesystem::path& name) const;

  // Gives each its final name, the first one last. Without `replace` existing names are refused.
  // With it each is replaced in one step, and a file never replaces a folder or the reverse. On
  // failure everything that was there before is restored. Throws Error: usage (a name is taken),
  // failed.
  void publish(const std::vector<std::filesystem::path>& names, bool replace);

  // Removes the folder now. For a process that is about to end without destructors.
  void remove() noexcept;

 private:
  enum class How { created, exchanged, overwritten };
  How place(const std::filesystem::path& name, bool replace);
  How replace_existing(const std::filesystem::path& name);
  void take_back(const std::filesystem::path& name, How how) noexcept;

  std::filesystem::path parent_;
  std::filesystem::path folder_;
  int marker_ = -1;
};

// Throws Error (usage) if something has this name already; `what`: "file" or "folder", for the
// hint.
void refuse_existing(const std::filesystem::path& path, const char* what);

}  // namespace mrrope
