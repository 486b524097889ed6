// SPDX-License-Identifier: Apache-2.0
// cpp-httplib's server with one more limit: a request must arrive within a time that grows with
// what has arrived, so that a client that sends a byte now and then holds no thread for long.
#pragma once

#include <httplib.h>

namespace mrrope {

class HttpServer final : public httplib::Server {
 private:
  bool process_and_close_socket(socket_t socket) override;
};

}  // namespace mrrope
