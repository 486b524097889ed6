// SPDX-License-Identifier: Apache-2.0
// Replies about the server and its model, and files of conversations.
#include <algorithm>
#include <ctime>

#include "base/text.h"
#include "engine/run/open.h"
#include "formats/gguf/gguf.h"
#include "formats/plan_file.h"
#include "mrrope/version.h"
#include "serve/api/fields.h"
#include "serve/api/service.h"

namespace mrrope::serve {

namespace {

constexpr std::size_t kMaxFileNameBytes = 128;

// A plain name: nothing in a request becomes a path.
std::string file_name(const Service& service, std::string_view body) {
  const ParsedBody parsed(body, service.limits);
  std::string name = parsed.at("filename").text();
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  refuse_if(name.empty() || name.size() > kMaxFileNameBytes || name.front() == '.' ||
                name.front() == '-' || name.find_first_not_of(kPlain) != std::string::npos,
            "filename",
            cat("must be a plain file name of letters, digits, '.', '_' and '-', at most ",
                kMaxFileNameBytes, " of them, and begin with none of the signs but '_'"));
  return name;
}

int slot_number(const Service& service, const std::string& text) {
  for (int number = 0; number < service.settings.slots; ++number) {
    if (text == std::to_string(number)) return number;
  }
  throw ApiError(
      400,
      cat("there is no slot ", text.substr(0, 20), "; they are 0 to ", service.settings.slots - 1),
      "id_slot");
}

// Returns the length of the conversation afterwards.
std::int64_t done(const Service& service, std::future<std::int64_t> result, const GiveUp& give_up) {
  const auto until = Clock::now() + service.settings.timeout;
  const auto too_late = [&] {
    if (Clock::now() > until) throw ApiError(503, "the slot is still busy: try again later");
    return give_up();
  };
  try {
    return result_of(std::move(result), too_late);
  } catch (const Error& error) {
    const std::string folder = (service.settings.slot_folder / "").string();
    const bool theirs = error.kind() == ErrorKind::usage || error.kind() == ErrorKind::corrupt ||
                        error.kind() == ErrorKind::unsupported;
    // Clients need not know where files lie.
    throw ApiError(theirs ? 400 : 500, replaced(error.what(), folder, ""), "filename");
  }
}

// 494032768 as "494.03M", as ollama writes it.
std::string parameter_text(std::uint64_t count) {
  const auto number = double(count);
  if (count >= 1'000'000'000) return fixed(number / 1e9, 1) + "B";
  if (count >= 1'000'000) return fixed(number / 1e6, 2) + "M";
  return count == 0 ? "" : fixed(number / 1e3, 2) + "K";
}

// Of the model, for ollama's clients.
ordered_json details(const Service& service) {
  const std::string& family = service.model.facts().architecture;
  const ModelCard& card = service.card.get();
  return {{"parent_model", ""},
          {"format", "gguf"},
          {"family", family},
          {"families", ordered_json::array({family})},
          {"parameter_size", parameter_text(card.parameters)},
          {"quantization_level", card.quantization}};
}

ordered_json ollama_entry(const Service& service) {
  const std::string& name = service.settings.model_name;
  return {{"name", name},
          {"model", name},
          {"size", service.model.facts().weight_bytes},
          {"digest", service.card.get().digest},
          {"details", details(service)}};
}

}  // namespace

ordered_json props_reply(const Service& service) {
  ordered_json rungs = ordered_json::array();
  for (const Rung& rung : service.ladder.rungs()) {
    rungs.push_back({{"length", rung.length}, {"scale", rung.plan.extension().scale}});
  }
  const ServerSettings& settings = service.settings;
  return {
      {"model", settings.model_name},
      {"version", cat("mrrope ", version())},
      {"engine", service.model.description()},
      {"window", service.model.facts().geometry.train_length},
      {"context", settings.context},
      {"method", settings.method},
      {"rungs", rungs},
      {"chat", service.chat_error.empty()},
      {"chat_template", service.chat ? ordered_json(service.chat->source) : ordered_json(nullptr)},
      {"total_slots", settings.slots},
      {"default_generation_settings",
       {{"n_ctx", settings.context},
        {"params",
         {{"temperature", 1}, {"top_k", 0}, {"top_p", 1}, {"min_p", 0}, {"n_predict", -1}}}}},
      {"model_alias", settings.model_name},
      {"model_path", service.model.facts().path.filename().string()},
      {"modalities", {{"vision", false}, {"audio", false}}},
      {"bos_token", service.chat ? service.chat->bos : ""},
      {"eos_token", service.chat ? service.chat->eos : ""},
      {"build_info", cat("mrrope ", version())}};
}

ordered_json slots_reply(const Service& service, const std::vector<SlotState>& slots) {
  ordered_json list = ordered_json::array();
  for (const SlotState& slot : slots) {
    const std::int64_t left =
        slot.busy ? std::max<std::int64_t>(0, slot.max_tokens - slot.written) : -1;
    ordered_json about = place_json(service.ladder, slot);
    if (slot.busy) about["prefill"] = prefill_json(slot);
    list.push_back({{"id", list.size()},
                    {"n_ctx", service.settings.context},
                    {"is_processing", slot.busy},
                    {"n_prompt_tokens", slot.prompt},
                    {"n_prompt_tokens_processed", slot.read},
                    {"n_prompt_tokens_cache", slot.cached},
                    {"next_token",
                     {{{"has_next_token", slot.busy && slot.written > 0},
                       {"n_remain", left},
                       {"n_decoded", slot.busy ? slot.written : 0}}}},
                    {"mrrope", std::move(about)}});
  }
  return list;
}

ordered_json models_reply(const Service& service) {
  return {{"object", "list"},
          {"data",
           {{{"id", service.settings.model_name},
             {"object", "model"},
             {"created", std::int64_t(std::time(nullptr))},
             {"owned_by", "mrrope"},
             {"max_model_len", service.settings.context}}}}};
}

ModelCard model_card(const Model& model) {
  ModelCard card;
  const std::string digest = model_digest(model.files);
  card.digest = digest.substr(digest.find(':') + 1);
  card.quantization = engine::precision_of(model, {}).at("weights");
  if (model.format != "gguf") return card;
  for (const GgufPart& part : read_gguf(model.path).parts) {
    for (const GgufTensor& tensor : part.tensors) card.parameters += tensor.elements();
  }
  return card;
}

ordered_json ollama_tags_reply(const Service& service) {
  ordered_json entry = ollama_entry(service);
  entry["modified_at"] = "1970-01-01T00:00:00Z";
  return {{"models", ordered_json::array({std::move(entry)})}};
}

ordered_json ollama_ps_reply(const Service& service) {
  ordered_json entry = ollama_entry(service);
  entry["expires_at"] = "2286-11-20T17:46:39Z";  // never; ollama has no word for it either
  entry["context_length"] = service.settings.context;
  return {{"models", ordered_json::array({std::move(entry)})}};
}

ordered_json ollama_show_reply(const Service& service, std::string_view body) {
  const ParsedBody asked(body, service.limits);
  check_model(service, asked.at("model").text_or(asked.at("name").text_or("").c_str()));
  const Model& facts = service.model.facts();
  const std::string& family = facts.architecture;
  ordered_json can = ordered_json::array({"completion"});
  if (service.has_tools) can.push_back("tools");
  return {{"modelfile", ""},
          {"parameters", ""},
          {"template", service.chat ? service.chat->source : ""},
          {"size", facts.weight_bytes},
          {"digest", service.card.get().digest},
          {"details", details(service)},
          {"model_info",
           {{"general.architecture", family},
            {"general.parameter_count", service.card.get().parameters},
            {family + ".context_length", service.settings.context},
            {family + ".embedding_length", facts.embedding},
            {family + ".block_count", facts.layers.size()},
            {family + ".attention.head_count", facts.heads}}},
          {"capabilities", can}};
}

ordered_json slot_action_reply(const Service& service, Scheduler& scheduler,
                               const std::string& slot, const std::string& action,
                               std::string_view body, const GiveUp& give_up) {
  const ServerSettings& s = service.settings;
  if (s.slot_folder.empty()) {
    throw ApiError(501, "slots cannot be saved: start the server with --slot-save-path FOLDER", {},
                   "not_supported");
  }
  const int number = slot_number(service, slot);
  const auto began = Clock::now();
  const auto on_slot = [&](Scheduler::SlotTask task) {
    return done(service, scheduler.run_on_slot(number, std::move(task)), give_up);
  };
  if (action == "erase") {
    // Shared: nobody may be waiting any more when it is done.
    const auto erased = std::make_shared<std::int64_t>(0);
    on_slot([erased](std::unique_ptr<Timeline>& timeline, std::string&) {
      *erased = timeline->length();
      timeline->truncate(0);
    });
    return {{"id_slot", number}, {"n_erased", *erased}};
  }
  if (action != "save" && action != "restore") {
    throw ApiError(400, cat("action ", shown(action), " is not save, restore or erase"), "action");
  }
  const std::string name = file_name(service, body);
  const std::filesystem::path path = s.slot_folder / name;
  const bool saves = action == "save";
  if (!saves && !std::filesystem::exists(path)) {
    throw ApiError(404, cat("there is no saved slot ", name), "filename");
  }
  const std::int64_t length = on_slot([&service, path, saves](auto& timeline, std::string& salt) {
    const engine::SessionOwner& owner = service.settings.slot_owner;
    if (saves) return engine::save_session(path, owner, *timeline, {}, salt);
    timeline.reset();
    engine::Session saved = engine::load_session(path, owner, service.model);
    timeline = std::move(saved.timeline);
    salt = saved.salt;
  });
  const std::chrono::duration<double, std::milli> took = Clock::now() - began;
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  return {{"id_slot", number},
          {"filename", name},
          {saves ? "n_saved" : "n_restored", length},
          {saves ? "n_written" : "n_read", error ? 0 : bytes},
          {"timings", {{saves ? "save_ms" : "restore_ms", took.count()}}}};
}

std::string metrics_text(const SchedulerCounts& counts,
                         const std::map<int, std::uint64_t>& responses, double uptime_seconds) {
  std::string out;
  const auto head = [&](const std::string& name, const char* help) {
    const char* const type = name.ends_with("_total") ? "counter" : "gauge";
    out += cat("# HELP mrrope_", name, " ", help, "\n# TYPE mrrope_", name, " ", type, "\n");
  };
  const auto one = [&](const char* name, auto value, const char* help) {
    head(name, help);
    out += cat("mrrope_", name, " ", value, "\n");
  };
  head("http_responses_total", "Responses by status.");
  for (const auto& [status, count] : responses) {
    out += cat("mrrope_http_responses_total{code=\"", status, "\"} ", count, "\n");
  }
  head("answers_total", "Answers by how they ended.");
  static constexpr std::pair<Outcome::End, const char*> kEnds[] = {
      {Outcome::End::stop, "stop"},           {Outcome::End::length, "length"},
      {Outcome::End::cancelled, "cancelled"}, {Outcome::End::timeout, "timeout"},
      {Outcome::End::refused, "refused"},     {Outcome::End::failed, "failed"}};
  std::map<Outcome::End, std::uint64_t> ended = counts.ended;
  for (const auto& [end, name] : kEnds) {
    out += cat("mrrope_answers_total{end=\"", name, "\"} ", ended[end], "\n");
  }
  one("prompt_tokens_total", counts.prompt_tokens, "Prompt tokens computed.");
  one("cached_tokens_total", counts.cached_tokens, "Prompt tokens found in the cache.");
  one("completion_tokens_total", counts.written_tokens, "Tokens written.");
  one("computations_total", counts.computations, "Batches computed.");
  one("computed_tokens_total", counts.computed_tokens, "Tokens in those batches.");
  one("rung_turns_total", counts.turns, "Times that cached keys were turned to another rung.");
  one("busy_seconds_total", counts.busy_seconds, "Seconds spent computing.");
  one("slots", counts.slots, "Most conversations computed at the same time.");
  one("slots_busy", counts.slots_busy, "Conversations being computed.");
  one("queue", counts.queued, "Requests waiting for a slot.");
  one("uptime_seconds", uptime_seconds, "Seconds since the start.");
  return out;
}

}  // namespace mrrope::serve
