// SPDX-License-Identifier: Apache-2.0
#include "fuzz/targets.h"

#include <algorithm>
#include <string>

#include "base/json.h"
#include "engine/remote/remote.h"
#include "formats/facts.h"
#include "formats/gguf/gguf.h"
#include "fuzz/require.h"
#include "mrrope/ladder.h"
#include "serve/api/request.h"
#include "tune/profile.h"

namespace mrrope::fuzz {
namespace {

void use(const Facts& facts, bool replace_scaling) {
  const Model model = finish_model(facts, replace_scaling);
  validate(model.geometry);
  require(!model.layers.empty(), "a model without layers");
  require(model.geometry.rotary_dim <= model.key_length, "a rotation wider than the head");
  for (const double theta : trained_theta(model.geometry)) require(theta >= 0, "a negative theta");
  kv_bytes(model, 131072, 16);
}

}  // namespace

void gguf(std::span<const std::byte> bytes) {
  only_errors([&] {
    const Source source = Source::memory(bytes, "fuzz");
    const Gguf model = read_gguf(source);
    const GgufPart& part = model.first();
    std::uint64_t records = 0;
    for (const GgufKeyValue& kv : part.key_values) {
      require(kv.offset + kv.size <= bytes.size() && kv.size >= 5, "a key-value outside the file");
      records += kv.size;
    }
    require(24 + records <= bytes.size(), "key-values that overlap");
    for (const GgufTensor& tensor : part.tensors) {
      require(tensor.offset + tensor.size <= bytes.size() && tensor.size > 0,
              "a tensor outside the file");
    }
    const Facts facts = gguf_facts(model);
    only_errors([&] { use(facts, true); });
    use(facts, false);
  });
}

void safetensors(std::span<const std::byte> bytes) {
  only_errors([&] {
    const Source source = Source::memory(bytes, "fuzz");
    if (!bytes.empty() && bytes[0] == std::byte{'{'}) {
      for (const std::string& name : read_safetensors_index(source)) {
        require(name.find('/') == std::string::npos && name != "..", "a path for a name");
      }
      return;
    }
    require(safetensors_bytes(source) <= bytes.size(), "tensors outside the file");
  });
}

void config(std::span<const std::byte> bytes) {
  only_errors([&] {
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const Facts facts = config_facts(parse_json(text, "fuzz"), "fuzz");
    only_errors([&] { use(facts, true); });
    use(facts, false);
  });
}

void profile(std::span<const std::byte> bytes) {
  only_errors([&] {
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const tune::Profile p = tune::parse_profile(parse_json(text, "fuzz"), "fuzz");
    require(p.window >= 1 && p.ctx > p.window, "a context inside the window");
    const Geometry geometry{.rotary_dim = 8, .base = 10000, .train_length = p.window};
    make_ladder(geometry, p.method, std::min(p.ctx, 64 * p.window));
  });
}

void request(std::span<const std::byte> bytes) {
  const std::string_view body(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  constexpr serve::BodyLimits kLargest{1 << 20, 1 << 18, 4096, true};
  const auto only_refusals = [](auto&& action) {
    try {
      action();
    } catch (const serve::ApiError& error) {
      require(error.status == 400 && error.what()[0] != '\0', "a refusal without a reason");
    }
  };
  const auto check = [](const serve::CompletionRequest& r) {
    require(r.sampling.temperature >= 0 && r.sampling.top_k >= 0, "sampling out of range");
    require(r.sampling.top_p >= 0 && r.sampling.top_p <= 1, "top_p out of range");
    require(!r.length || *r.length >= 1, "an answer of no length");
    require(!r.logprobs || (*r.logprobs >= 0 && *r.logprobs <= 20), "logprobs out of range");
    for (const std::string& stop : r.stop) require(!stop.empty(), "an empty stop string");
    for (const auto& prompt : r.prompts) {
      require(!prompt.empty(), "a prompt of no parts");
      for (const serve::PromptPart& part : prompt) {
        for (const Token token : part.tokens) require(token >= 0, "a negative token");
      }
    }
  };
  using serve::Route;
  for (const Route route :
       {Route::completion, Route::chat, Route::responses, Route::llama_completion,
        Route::ollama_chat, Route::ollama_generate, Route::messages, Route::count_tokens}) {
    only_refusals([&] {
      const serve::CompletionRequest r = parse_request(body, route, kLargest);
      require(route != Route::chat || !r.conversation.messages.empty(), "a chat without messages");
      check(r);
    });
  }
  only_refusals([&] { parse_tokenize(body, kLargest); });
  only_refusals([&] {
    for (const Token token : parse_detokenize(body, kLargest)) require(token >= 0, "a token");
  });
}

void reply(std::span<const std::byte> bytes) {
  const std::string body(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  // These errors are counted and the request is repeated: there is nothing to type.
  const auto only_corrupt = [](auto&& action) {
    try {
      action();
    } catch (const Error& error) {
      require(error.kind() == ErrorKind::corrupt && error.what()[0] != '\0', "another error");
    }
  };
  only_corrupt([&] {
    for (const engine::RemoteModelInfo& model : engine::parse_models(body)) {
      require(model.context >= 0 && model.trained >= 0, "a negative context");
    }
  });
  only_corrupt([&] { require(engine::parse_props_context(body) >= 0, "a negative context"); });
  for (const bool chat : {false, true}) only_corrupt([&] { engine::parse_answer(body, chat); });
  only_corrupt([&] {
    for (const Token token : engine::parse_tokens(body)) require(token >= 0, "a negative token");
  });
  only_corrupt([&] { engine::parse_text(body); });
  for (const char c : engine::error_text(body)) {
    require(static_cast<unsigned char>(c) >= 0x20, "a control character from a server");
  }
  const double wait = engine::retry_after_seconds(body, 0);
  require(wait >= 0 && wait <= 300, "a wait outside of its limits");
}

}  // namespace mrrope::fuzz
