// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "mrrope/error.h"
#include "serve/api/fields.h"
#include "serve/api/service.h"

namespace mrrope::serve {

namespace {

constexpr std::size_t kMaxFileNameBytes = 128;
constexpr std::chrono::milliseconds kSlotPoll{100};

// A plain name: nothing in a request becomes a path.
std::string file_name(const Service& service, std::string_view body) {
  const ParsedBody parsed(body, service.limits);
  std::string name = parsed.at("filename").text();
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  if (name.empty() || name.size() > kMaxFileNameBytes || name.front() == '.' ||
      name.front() == '-' || !std::all_of(name.begin(), name.end(), plain)) {
    refuse("filename",
           cat("must be a plain file name of letters, digits, '.', '_' and '-', at most ",
               kMaxFileNameBytes, " of them, and begin with none of the signs but '_'"));
  }
  return name;
}

int slot_number(const Service& service, const std::string& text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0 ||
      number >= service.settings.parallel) {
    throw ApiError(400,
                   cat("there is no slot ", text.substr(0, 20), "; they are 0 to ",
                       service.settings.parallel - 1),
                   "id_slot");
  }
  return number;
}

// Clients need not know where files lie.
std::string without(std::string text, const std::string& folder) {
  for (std::size_t at = 0; (at = text.find(folder, at)) != std::string::npos;) {
    text.erase(at, folder.size());
  }
  return text;
}

double milliseconds_since(Clock::time_point began) {
  return std::chrono::duration<double, std::milli>(Clock::now() - began).count();
}

// Returns the length of the conversation afterwards.
std::int64_t done(const Service& service, std::future<std::int64_t> result,
                  const std::function<bool()>& give_up) {
  const auto until = Clock::now() + service.settings.timeout;
  while (result.wait_for(kSlotPoll) != std::future_status::ready) {
    if (give_up()) throw ApiError(499, "the client is gone");
    if (Clock::now() > until) throw ApiError(503, "the slot is still busy: try again later");
  }
  try {
    return result.get();
  } catch (const std::future_error&) {
    throw ApiError(503, "the server has stopped", {}, "shutting_down");
  } catch (const Error& error) {
    const std::string folder = (service.settings.slot_folder / "").string();
    const bool theirs = error.kind() == ErrorKind::usage || error.kind() == ErrorKind::corrupt ||
                        error.kind() == ErrorKind::unsupported;
    throw ApiError(theirs ? 400 : 500, without(error.what(), folder), "filename");
  }
}

}  // namespace

ordered_json slot_action_reply(const Service& service, Scheduler& scheduler,
                               const std::string& slot, const std::string& action,
                               std::string_view body, const std::function<bool()>& give_up) {
  const ServerSettings& s = service.settings;
  if (s.slot_folder.empty()) {
    throw ApiError(501, "slots cannot be saved: start the server with --slot-save-path FOLDER", {},
                   "not_supported");
  }
  const int number = slot_number(service, slot);
  const auto began = Clock::now();
  if (action == "erase") {
    // Shared: nobody may be waiting any more when it is done.
    const auto erased = std::make_shared<std::int64_t>(0);
    done(service,
         scheduler.run_on_slot(number,
                               [erased](std::unique_ptr<Timeline>& timeline, std::string&) {
                                 *erased = timeline->length();
                                 timeline->truncate(0);
                               }),
         give_up);
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
  const std::int64_t length =
      done(service,
           scheduler.run_on_slot(number,
                                 [&service, path, saves](auto& timeline, std::string& salt) {
                                   const engine::SessionOwner& owner = service.settings.slot_owner;
                                   if (saves) {
                                     return engine::save_session(path, owner, *timeline, {}, salt);
                                   }
                                   timeline.reset();
                                   engine::Session saved =
                                       engine::load_session(path, owner, service.model);
                                   timeline = std::move(saved.timeline);
                                   salt = saved.salt;
                                 }),
           give_up);
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  return {{"id_slot", number},
          {"filename", name},
          {saves ? "n_saved" : "n_restored", length},
          {saves ? "n_written" : "n_read", error ? 0 : bytes},
          {"timings", {{saves ? "save_ms" : "restore_ms", milliseconds_since(began)}}}};
}

}  // namespace mrrope::serve
