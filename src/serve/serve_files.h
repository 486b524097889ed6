// SPDX-License-Identifier: Apache-2.0
// Files that are embedded in the program (mrrope_embed).
#pragma once

namespace mrrope::embedded {

extern const char* const serve_fields;
extern const char* const serve_html;
extern const char* const serve_css;
extern const char* const serve_js;
extern const char* const markdown_js;
extern const char* const context_js;
extern const char* const chats_js;

}  // namespace mrrope::embedded
