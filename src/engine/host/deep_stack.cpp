// SPDX-License-Identifier: Apache-2.0
#include "engine/host/deep_stack.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>

#include "base/text.h"
#include "mrrope/error.h"

namespace mrrope::engine {

namespace {

// A character of a match takes some 330 bytes of stack in an optimised libllama.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kBytesPerCharacter = 8192;
#else
constexpr std::size_t kBytesPerCharacter = 1024;
#endif
constexpr std::size_t kOrdinary = 2048;  // characters that fit any thread's stack
constexpr std::size_t kMost = std::size_t{4} << 20;
constexpr std::size_t kSpare = std::size_t{1} << 20;  // for everything but the match
constexpr std::size_t kPage = std::size_t{1} << 16;   // a multiple of any page size

bool is_word_or_mark(unsigned char c) { return c > ' ' && c < 0x7F; }

bool is_mark(unsigned char c) {
  const unsigned char lower = c | 0x20;
  return is_word_or_mark(c) && !(c >= '0' && c <= '9') && !(lower >= 'a' && lower <= 'z');
}

// Whether a character that is certainly not white space begins with this byte. Some expressions
// take slashes along with the ends of lines.
bool begins_line(unsigned char c) {
  if (c < 0x80) return is_word_or_mark(c) && c != '/';
  return c >= 0xC3 && c <= 0xF4 && c != 0xE1 && c != 0xE2 && c != 0xE3;
}

struct Call {
  const std::function<void()>& work;
  std::exception_ptr thrown;
};

void* run(void* data) {
  auto& call = *static_cast<Call*>(data);
  try {
    call.work();
  } catch (...) {
    call.thrown = std::current_exception();
  }
  return nullptr;
}

}  // namespace

std::size_t longest_match(std::string_view text) {
  std::size_t longest = 0;
  std::size_t current = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x80 && c < 0xC0) continue;  // within a character
    const auto before = static_cast<unsigned char>(i > 0 ? text[i - 1] : '\0');
    const bool after_line = (before == '\n' || before == '\r') && begins_line(c);
    const bool after_mark = before == ' ' && is_word_or_mark(c) && i > 1 &&
                            is_mark(static_cast<unsigned char>(text[i - 2]));
    if (after_line || after_mark) {
      longest = std::max(longest, current);
      current = 1;  // a match may begin with the white space in front
    }
    ++current;
  }
  return std::max(longest, current) + 1;
}

void run_with_room_for_match(std::size_t characters, const std::function<void()>& work) {
  if (characters <= kOrdinary) return work();
  if (characters > kMost) {
    throw Error(
        ErrorKind::usage,
        cat("a line of ", characters, " characters is too long to tokenize (at most ", kMost, ")"),
        "break it into several lines");
  }
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  Call call{work, nullptr};
  pthread_attr_t attributes;
  pthread_t thread;
  int error = pthread_attr_init(&attributes);
  if (error == 0) {
    // Memory is taken only where the stack is touched, and a guard page is at its end.
    const std::size_t stack = characters * kBytesPerCharacter + kSpare;
    error = pthread_attr_setstacksize(&attributes, stack / kPage * kPage);
    if (error == 0) error = pthread_create(&thread, &attributes, run, &call);
    pthread_attr_destroy(&attributes);
  }
  if (error != 0) {
    throw Error(ErrorKind::out_of_memory,
                cat("no thread with a stack for ", characters, " characters: ", strerror(error)),
                "break the longest line of the text into several");
  }
  pthread_join(thread, nullptr);
  if (call.thrown) std::rethrow_exception(call.thrown);
}

}  // namespace mrrope::engine
