// SPDX-License-Identifier: Apache-2.0
// The model over HTTP: OpenAI's API, llama-server's /props, /tokenize and /detokenize, Prometheus
// metrics and a page.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "serve/api/service.h"

namespace mrrope::serve {

class HttpServer;

// A port that is bound. Clients wait there until ApiServer::run().
struct Listener {
  std::shared_ptr<HttpServer> http;
  int port = 0;
  bool loopback = false;  // only this machine can reach it
};
// Binds host and port of these settings, which can be long before a model is loaded. Throws Error
// (failed).
Listener listen_on(const ServerSettings& settings);

class ApiServer {
 public:
  // The model is under the ladder, has room for `parallel` timelines of `context` tokens and is not
  // used by anything else. The listener is that of the same settings.
  ApiServer(TimelineModel& model, const Ladder& ladder, engine::ChatRenderer& renderer,
            const ServerSettings& settings, Listener listener);
  ~ApiServer();

  const Listener& listener() const;
  // Empty, or why the model's chat template cannot be used.
  const std::string& chat_error() const;

  // Serves until `enough` returns true, which is called a few times per second. Then new requests
  // are refused and accepted ones are finished. Computes on the caller's thread, best the one that
  // opened the model.
  void run(const std::function<bool()>& enough);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mrrope::serve
