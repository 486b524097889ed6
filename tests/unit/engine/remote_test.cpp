// SPDX-License-Identifier: Apache-2.0
#include "engine/remote/remote.h"

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

}  // namespace
}  // namespace mrrope::engine
