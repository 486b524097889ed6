// SPDX-License-Identifier: Apache-2.0
// Files that are part of the program: CMake turns each into a string (mrrope_embed).
#pragma once

namespace mrrope::embedded {

extern const char* const prompts_json;  // data/prompts.json
extern const char* const words_json;    // data/words.json

}  // namespace mrrope::embedded
