// SPDX-License-Identifier: Apache-2.0
// Text on its way into HTML and SVG.
#pragma once

#include <string>
#include <string_view>

namespace mrrope::report {

// Safe between tags and in quoted attributes: & < > " ' become entities; what is not UTF-8 and
// control characters (but tab and line feed) become U+FFFD.
std::string escaped(std::string_view text);

// As part of a data: address.
std::string percent_encoded(std::string_view text);

// Characters, as a reader counts them (code points).
std::size_t character_count(std::string_view text);

// The first `max` characters; "..." at the end of a text that was longer.
std::string shortened(const std::string& text, std::size_t max);

}  // namespace mrrope::report
