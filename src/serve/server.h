// SPDX-License-Identifier: Apache-2.0
// The model over HTTP: OpenAI's API, llama-server's /props, /tokenize and /detokenize, Prometheus
// metrics and a page.
#pragma once

#include <functional>
#include <memory>

#include "serve/api/service.h"

namespace mrrope::serve {

class HttpServer;

// A port that is bound. Clients wait there until run_server().
struct Listener {
  std::shared_ptr<HttpServer> http;
  int port = 0;
  bool loopback = false;  // only this machine can reach it
};
// Binds host and port of these settings, which can be long before a model is loaded. Throws Error
// (failed).
Listener listen_on(const ServerSettings& settings);

// Serves until `enough` returns true, which is called a few times per second. Then new requests
// are refused and accepted ones are finished. Computes on the caller's thread, best the one that
// opened the model, which has room for as many timelines as the service has slots and is not used
// by anything else. The listener is that of the same settings.
void run_server(const Service& service, const Listener& listener,
                const std::function<bool()>& enough);

}  // namespace mrrope::serve
