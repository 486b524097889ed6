// SPDX-License-Identifier: Apache-2.0
// The one exception type of the library. Every message names the offending value and the reason;
// the hint says what to type instead.
#pragma once

#include <stdexcept>
#include <string>

namespace mrrope {

// The values are the exit codes of the command.
enum class ErrorKind {
  failed = 1,         // input or output failed, or a computation did
  usage = 2,          // the request is not valid
  unsupported = 3,    // the model cannot be extended, or this engine cannot run it
  corrupt = 4,        // a file contradicts its own format
  out_of_memory = 5,  // it will not fit
  goal_not_met = 6,   // it ran, but a stated goal was not met
  interrupted = 130,  // Ctrl-C
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message, std::string hint = {})
      : std::runtime_error(message), kind_(kind), hint_(std::move(hint)) {}

  ErrorKind kind() const noexcept { return kind_; }
  const std::string& hint() const noexcept { return hint_; }
  int exit_code() const noexcept { return static_cast<int>(kind_); }

 private:
  ErrorKind kind_;
  std::string hint_;
};

}  // namespace mrrope
