// SPDX-License-Identifier: Apache-2.0
// The model over HTTP: OpenAI's API, llama-server's /props, /tokenize and /detokenize, Prometheus
// metrics and a page.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "engine/chat/chat.h"
#include "model/timeline_model.h"

namespace mrrope {

struct ServerSettings {
  std::string host = "127.0.0.1";
  int port = 8080;                     // 0: any that is free
  int parallel = 1;                    // conversations at the same time
  int queue = 64;                      // requests that wait, at most
  std::chrono::seconds timeout{3600};  // for one answer, waiting included
  std::int64_t context = 0;            // tokens of one conversation
  std::string key;                     // empty: none is asked for
  std::string model_name;
  std::string method;  // as the user called it
};

class ApiServer {
 public:
  // The model stands under the ladder, has room for `parallel` timelines of `context` tokens and is
  // nobody else's. Binds the port. Throws Error (failed).
  ApiServer(TimelineModel& model, const Ladder& ladder, ChatRenderer& renderer,
            const ServerSettings& settings);
  ~ApiServer();

  int port() const;
  // Empty, or why the model's chat template cannot be used.
  const std::string& chat_trouble() const;

  // Serves until `enough` says so, which is asked some times a second. Then new requests are
  // refused and those accepted are finished. Computes on the caller's thread, best the one that
  // opened the model.
  void run(const std::function<bool()>& enough);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mrrope
