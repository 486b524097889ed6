// SPDX-License-Identifier: Apache-2.0
// What the fuzzers feed: each takes any bytes, allows no exception but mrrope::Error (and catches
// that one), and aborts where a reader returned what it should have refused.
#pragma once

#include <cstddef>
#include <span>

namespace mrrope::fuzz {

void gguf(std::span<const std::byte> bytes);
void gguf_export(std::span<const std::byte> bytes);  // the same file through every kind of export
void plan(std::span<const std::byte> bytes);         // a plan file
void profile(std::span<const std::byte> bytes);      // of tune
void safetensors(std::span<const std::byte> bytes);  // a file, or an index if it starts with '{'
void config(std::span<const std::byte> bytes);
void run(std::span<const std::byte> bytes);      // run.json on one line, then journal lines
void request(std::span<const std::byte> bytes);  // the body of a request to mrrope serve
void reply(std::span<const std::byte> bytes);    // the body of a server's reply to --endpoint

}  // namespace mrrope::fuzz
