// SPDX-License-Identifier: Apache-2.0
// Files that are part of the program: CMake turns each into a string (mrrope_embed).
#pragma once

namespace mrrope::embedded {

extern const char* const chart_css;
extern const char* const page_css;
extern const char* const page_js;
extern const char* const terms_json;
extern const char* const paper_json;  // data/paper.json

}  // namespace mrrope::embedded
