// SPDX-License-Identifier: Apache-2.0
// The model over HTTP: OpenAI's API, llama-server's /props, /tokenize and /detokenize, Prometheus
// metrics and a page.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/chat/chat.h"
#include "model/timeline_model.h"
#include "serve/settings.h"

namespace mrrope::serve {

class ApiServer {
 public:
  // The model is under the ladder, has room for `parallel` timelines of `context` tokens and is not
  // used by anything else. Binds the port. Throws Error (failed).
  ApiServer(TimelineModel& model, const Ladder& ladder, engine::ChatRenderer& renderer,
            const ServerSettings& settings);
  ~ApiServer();

  int port() const;
  // Whether only this machine can reach it.
  bool loopback() const;
  // Empty, or why the model's chat template cannot be used.
  const std::string& chat_trouble() const;

  // Serves until `enough` returns true, which is called a few times per second. Then new requests
  // are refused and accepted ones are finished. Computes on the caller's thread, best the one that
  // opened the model.
  void run(const std::function<bool()>& enough);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mrrope::serve
