// SPDX-License-Identifier: Apache-2.0
// EXPECT_ERROR(statement, kind, words...): it throws an Error of this kind, whose message holds
// every one of the words, and which has a hint.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <string>

#include "mrrope/error.h"

namespace mrrope::test {

// What an action throws; where that is no Error, the test fails.
inline Error error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {ErrorKind::failed, "", ""};
}

inline testing::AssertionResult throws_error(const std::function<void()>& action, ErrorKind kind,
                                             std::initializer_list<std::string> words) {
  try {
    action();
  } catch (const Error& error) {
    const std::string message = error.what();
    if (error.kind() != kind) {
      return testing::AssertionFailure()
             << "kind " << error.exit_code() << " instead of " << int(kind) << ": " << message;
    }
    for (const std::string& word : words) {
      if (message.find(word) == std::string::npos) {
        return testing::AssertionFailure() << "no \"" << word << "\" in: " << message;
      }
    }
    if (error.hint().empty()) return testing::AssertionFailure() << "no hint: " << message;
    return testing::AssertionSuccess();
  } catch (const std::exception& error) {
    return testing::AssertionFailure() << "not an Error: " << error.what();
  }
  return testing::AssertionFailure() << "nothing was thrown";
}

// The same for an action with commas in it, which a macro would split.
inline void expect_error(ErrorKind kind, const std::string& word,
                         const std::function<void()>& action) {
  EXPECT_TRUE(throws_error(action, kind, {word}));
}

}  // namespace mrrope::test

#define EXPECT_ERROR(statement, kind, ...)                                        \
  EXPECT_TRUE(::mrrope::test::throws_error([&] { static_cast<void>(statement); }, \
                                           ::mrrope::ErrorKind::kind,             \
                                           std::initializer_list<std::string>{__VA_ARGS__}))
