// SPDX-License-Identifier: Apache-2.0
// The bundled model and texts, found from the place of the running command.
#include <cstdlib>
#include <system_error>

#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

#include "base/text.h"
#include "cli/app.h"
#include "mrrope/error.h"

namespace mrrope::cli {

namespace {

namespace fs = std::filesystem;

// The folder of the running command; empty where the system does not tell.
fs::path executable_folder() {
  std::error_code error;
#ifdef __APPLE__
  char buffer[4096];
  std::uint32_t size = sizeof buffer;
  if (_NSGetExecutablePath(buffer, &size) != 0) return {};
  const fs::path executable = fs::canonical(buffer, error);
#else
  const fs::path executable = fs::canonical("/proc/self/exe", error);
#endif
  return error ? fs::path() : executable.parent_path();
}

bool complete(const fs::path& home) {
  std::error_code error;
  return fs::exists(home / "models" / "mrrope-tiny.gguf", error) &&
         fs::exists(home / "data" / "texts", error);
}

}  // namespace

fs::path project_files() {
  if (const char* set = std::getenv("MRROPE_HOME"); set != nullptr && *set != '\0') {
    if (complete(set)) return set;
    throw Error(ErrorKind::failed,
                cat("MRROPE_HOME is ", set, ", which has no models/mrrope-tiny.gguf or data/texts"),
                "unset it, or set it to the folder of the mrrope sources");
  }
  const fs::path bin = executable_folder();
  if (bin.empty()) {
    throw Error(ErrorKind::failed, "the system does not tell where the running command is",
                "set MRROPE_HOME to the folder with models/ and data/");
  }
  fs::path home = (bin / MRROPE_SHARE).lexically_normal();
  if (complete(home)) return home;
  throw Error(ErrorKind::failed,
              cat("the bundled model and texts are not in ", home.string(),
                  ", where an installation has them"),
              "install mrrope again, or set MRROPE_HOME to a folder with models/ and data/");
}

}  // namespace mrrope::cli
