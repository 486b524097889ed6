// SPDX-License-Identifier: Apache-2.0
// What servers may say, and what hostile ones do.

#include "base/text.h"
#include "engine/remote/remote.h"
#include "support/test.h"

namespace mrrope::engine {
namespace {

std::string described(const RemoteAnswer& answer) {
  return cat("\"", answer.text, "\" ", answer.finish, " ",
             answer.prompt_tokens ? cat(*answer.prompt_tokens) : "none");
}

TEST(Replies, AreReadOrRefused) {
  test::expect_functions(
      "remote", {{"models",
                  [](auto& a) {
                    std::string out;
                    for (const auto& m : parse_models(a[0])) {
                      out += cat("[", m.name, " ", m.owner, " ", m.trained, " ", m.context, "]");
                    }
                    return out;
                  }},
                 {"answer", [](auto& a) { return described(parse_answer(a[0], false)); }},
                 {"chat", [](auto& a) { return described(parse_answer(a[0], true)); }},
                 {"tokens", [](auto& a) { return json(parse_tokens(a[0])).dump(); }},
                 {"text", [](auto& a) { return parse_text(a[0]); }},
                 {"context", [](auto& a) { return cat(parse_props_context(a[0])); }},
                 {"error", [](auto& a) { return error_text(a[0]); }},
                 {"retry", [](auto& a) { return cat(retry_after_seconds(a[0], std::stoi(a[1]))); }},
                 {"url", [](auto& a) {
                    const Url url = parse_url(a[0]);
                    return cat(url.host, " ", url.port, " ", url.path,
                               url.loopback() ? " loopback" : "");
                  }}});
}

}  // namespace
}  // namespace mrrope::engine
