// SPDX-License-Identifier: Apache-2.0
#include "engine/remote/remote.h"

#include "base/text.h"
#include "support/fake_server.h"
#include "support/test.h"

namespace mrrope::engine {
namespace {

RemoteOptions options_for(const test::FakeServer& server) {
  RemoteOptions options;
  options.url = server.url();
  options.seconds = 120;
  return options;
}

TEST(Remote, RequestAfterCancelIsNotSent) {
  const test::FakeServer server;
  const auto model = open_remote(options_for(server));
  const WholePrompt prompt{model->tokenize("Hello", true, false), "Hello"};
  EXPECT_EQ(model->ask(prompt, {}).failed, "");
  model->cancel();
  EXPECT_EQ(model->ask(prompt, {}).failed, "stopped");
  EXPECT_EQ(server.answered(), 1);
}

TEST(Remote, CancelEndsARequestInFlight) {
  test::FakeServerOptions slow;
  slow.seconds = 3;
  const test::FakeServer server(slow);
  const auto model = open_remote(options_for(server));
  const WholePrompt prompt{model->tokenize("Hello", true, false), "Hello"};
  std::string failed;
  std::thread asking([&] { failed = model->ask(prompt, {}).failed; });
  while (server.most_at_once() == 0) std::this_thread::yield();
  model->cancel();
  asking.join();
  EXPECT_EQ(failed, "stopped");
}

// What servers may say, and what hostile ones do.

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
