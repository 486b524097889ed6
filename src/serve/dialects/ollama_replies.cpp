// SPDX-License-Identifier: Apache-2.0
#include "serve/api/service.h"

namespace mrrope::serve {

namespace {

ordered_json details(const Service& service) {
  const std::string& family = service.model.facts().architecture;
  return {{"parent_model", ""},   {"format", "gguf"},
          {"family", family},     {"families", ordered_json::array({family})},
          {"parameter_size", ""}, {"quantization_level", ""}};
}

}  // namespace

ordered_json ollama_tags_reply(const Service& service) {
  const std::string& name = service.settings.model_name;
  return {{"models", ordered_json::array({{{"name", name},
                                           {"model", name},
                                           {"modified_at", "1970-01-01T00:00:00Z"},
                                           {"size", service.model.facts().weight_bytes},
                                           {"digest", ""},
                                           {"details", details(service)}}})}};
}

ordered_json ollama_show_reply(const Service& service, std::string_view body) {
  check_model(service, parse_ollama_show(body, service.limits));
  const Model& facts = service.model.facts();
  const std::string& family = facts.architecture;
  ordered_json can = ordered_json::array({"completion"});
  if (service.has_tools) can.push_back("tools");
  return {{"modelfile", ""},
          {"parameters", ""},
          {"template", service.chat ? service.chat->source : ""},
          {"details", details(service)},
          {"model_info",
           {{"general.architecture", family},
            {family + ".context_length", service.settings.context},
            {family + ".embedding_length", facts.embedding},
            {family + ".block_count", facts.layers.size()},
            {family + ".attention.head_count", facts.heads}}},
          {"capabilities", can}};
}

}  // namespace mrrope::serve
