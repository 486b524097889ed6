// SPDX-License-Identifier: Apache-2.0
// A refusal in OpenAI's shape.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace mrrope::serve {

class ApiError : public std::runtime_error {
 public:
  ApiError(int http_status, const std::string& message, std::string about = {},
           std::string word = {})
      : std::runtime_error(message),
        status(http_status),
        param(std::move(about)),
        code(std::move(word)) {}

  // A prompt that does not fit, in tokens.
  struct Excess {
    std::int64_t prompt;
    std::int64_t context;
  };

  int status;
  std::string param;  // the field it is about; empty: none
  std::string code;   // for programs, e.g. "context_length_exceeded"; empty: none
  std::optional<Excess> excess;
};

}  // namespace mrrope::serve
