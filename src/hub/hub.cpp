// SPDX-License-Identifier: Apache-2.0
#include "hub/hub.h"

#include <common.h>
#include <download.h>
#include <log.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <optional>
#include <regex>
#include <set>

#include "base/files/source.h"
#include "base/files/split_name.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/text.h"

namespace mrrope::hub {

namespace {

namespace fs = std::filesystem;
using hf_cache::hf_file;
using hf_cache::hf_files;

constexpr std::size_t kMostModels = 10000;  // of one store
constexpr std::size_t kLongestPath = 1000;  // of a file in a repository

bool is_sha256(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
}

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// ---- GGUF files of a repository or a folder

// Of a path of at most kLongestPath letters.
SplitName part_of(const std::string& path) { return split_name(path.substr(0, path.rfind('.'))); }

// Whether a model starts in this file: not a later part, nor what llama.cpp keeps beside models.
bool starts_model(const std::string& path) {
  if (!path.ends_with(".gguf") || path.size() > kLongestPath || part_of(path).number != 1) {
    return false;
  }
  const std::string name = path.substr(path.rfind('/') + 1);
  const auto has = [&](const char* word) { return name.find(word) != std::string::npos; };
  return !has("mmproj") && !has("imatrix") && !has("mtp-") && !has("eagle3-") && !has("dflash-") &&
         !has("dspark-");
}

// "Q4_K_M" of "folder/name-Q4_K_M-00001-of-00002.gguf", as llama.cpp lists it.
std::string quant_of(const std::string& path) {
  const std::string stem = part_of(path).stem;
  std::string quant = stem.substr(stem.find_last_of("/.-") + 1);
  for (char& c : quant) c = char(std::toupper(static_cast<unsigned char>(c)));
  return quant;
}

bool has_quant(const std::string& path, const std::string& quant) {
  const std::string text = lower_case(path);
  const std::string word = lower_case(quant);
  return word.empty() || text.find(word + ".") != std::string::npos ||
         text.find(word + "-") != std::string::npos;
}

// The file that llama.cpp would take: the quantization, or where none is given its usual ones.
const hf_file* chosen(const hf_files& files, const std::string& quant) {
  using Names = std::vector<std::string>;
  for (const std::string& wanted : quant.empty() ? Names{"Q4_K_M", "Q8_0", ""} : Names{quant}) {
    for (const hf_file& file : files) {
      if (starts_model(file.path) && has_quant(file.path, wanted)) return &file;
    }
  }
  return nullptr;
}

// All parts of a model, in their order; a part that is not there is nullptr.
std::vector<const hf_file*> parts_of(const hf_files& files, const hf_file& first) {
  const SplitName part = part_of(first.path);
  if (part.count <= 1) return {&first};
  std::vector<const hf_file*> parts(part.count, nullptr);
  for (const hf_file& file : files) {
    if (file.path.size() > kLongestPath || !file.path.ends_with(".gguf")) continue;
    const SplitName other = part_of(file.path);
    const bool same = other.stem == part.stem && other.count == part.count;
    if (same && other.number >= 1 && other.number <= part.count) {
      parts[other.number - 1] = &file;
    }
  }
  return parts;
}

void sort(hf_files& files) {
  std::ranges::sort(files, [](const hf_file& a, const hf_file& b) { return a.path < b.path; });
}

// In the cache: of one repository, or of all.
hf_files cached_files(const std::string& repo = {}) {
  hf_files files;
  try {
    files = hf_cache::get_cached_files(repo);
  } catch (const fs::filesystem_error& e) {
    fail(cat("cannot read ", hf_cache::get_cache_path(), ": ", e.code().message()),
         "check its rights, or set HF_HUB_CACHE to another folder");
  }
  sort(files);
  return files;
}

// "user/repo:quant"
struct RepoName {
  std::string repo;
  std::string quant;
};

std::optional<RepoName> parse_repo(const std::string& text) {
  static const std::regex name("(\\w+([.-]\\w+)*/\\w+([.-]\\w+)*)(:(\\w+([.-]\\w+)*))?");
  std::smatch words;
  if (text.size() > 256 || !std::regex_match(text, words, name)) return std::nullopt;
  return RepoName{words[1], words[5]};
}

// The first file of the model in the cache; empty if a part is not there.
fs::path cached(const RepoName& name) {
  const hf_files files = cached_files(name.repo);
  const hf_file* first = chosen(files, name.quant);
  if (first == nullptr) return {};
  for (const hf_file* part : parts_of(files, *first)) {
    if (part == nullptr || !path_exists(part->local_path)) return {};
  }
  return first->local_path;
}

// ---- Models on this machine

fs::path ollama_folder() {
  const std::string set = from_environment("OLLAMA_MODELS");
  return set.empty() ? fs::path(from_environment("HOME")) / ".ollama" / "models" : fs::path(set);
}

// Models of Hugging Face's cache, which llama.cpp uses too: GGUF files, and folders with weights.
void list_repositories(std::vector<LocalModel>& out) {
  const hf_files files = cached_files();
  std::set<std::string> seen;
  std::map<std::string, fs::path> configs;
  for (const hf_file& file : files) {
    if (file.path == "config.json") configs[file.repo_id] = fs::path(file.local_path).parent_path();
    if (!starts_model(file.path)) continue;
    const std::string name = cat(file.repo_id, ":", quant_of(file.path));
    if (seen.insert(name).second) out.push_back({name, file.local_path});
  }
  for (const hf_file& file : files) {
    const auto folder = configs.find(file.repo_id);
    if (folder == configs.end() || !file.path.ends_with(".safetensors")) continue;
    out.push_back({folder->first, folder->second});
    configs.erase(folder);
  }
}

// Files that earlier versions of llama.cpp downloaded, or that people put there.
void list_files(const fs::path& folder, std::vector<LocalModel>& out) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (starts_model(name)) out.push_back({part_of(name).stem, entry.path()});
  }
}

// The blob with the weights, as a manifest of ollama's store names it.
fs::path blob_of(const fs::path& store, const fs::path& manifest) {
  constexpr JsonLimits kLimits{.bytes = 1 << 20, .depth = 16, .values = 10000};
  const auto json =
      parse_ordered_json(read_text(Source::open(manifest), kLimits), manifest.string(), kLimits);
  const auto layers = json.find("layers");
  if (layers == json.end() || !layers->is_array()) corrupt(shown(manifest.string()), "no layers");
  for (const auto& layer : *layers) {
    if (!text_at(layer, "mediaType").ends_with("image.model")) continue;
    const std::string digest = text_at(layer, "digest");
    constexpr std::string_view kKind = "sha256:";
    corrupt_if(!digest.starts_with(kKind) || !is_sha256(digest.substr(kKind.size())),
               shown(manifest.string()), cat("the digest ", shown(digest), " is not a SHA-256"));
    fs::path blob = plain_file_in(store / "blobs", "sha256-" + digest.substr(kKind.size()), {});
    if (file_exists(blob)) return blob;
    fail(cat(shown(blob.string()), " is missing"));
  }
  unsupported("no GGUF model in it");
}

// manifests/HOST/NAMESPACE/NAME/TAG. Links are not followed.
void list_ollama(const fs::path& store, std::vector<LocalModel>& out) {
  std::error_code error;
  const fs::path manifests = store / "manifests";
  std::size_t count = 0;
  auto entry = fs::recursive_directory_iterator(
      manifests, fs::directory_options::skip_permission_denied, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (entry.depth() >= 3) entry.disable_recursion_pending();
    std::error_code ignored;
    if (entry.depth() != 3 || entry->symlink_status(ignored).type() != fs::file_type::regular) {
      continue;
    }
    if (++count > kMostModels) {
      out.push_back({manifests.string(), {}, cat("the rest of over ", kMostModels, " manifests")});
      return;
    }
    std::vector<std::string> words;  // HOST, NAMESPACE, NAME, TAG
    for (const fs::path& word : entry->path().lexically_relative(manifests)) {
      words.push_back(word.string());
    }
    std::string name = cat(words[2], ":", words[3]);
    if (words[1] != "library") name = cat(words[1], "/", name);
    if (!words[0].starts_with("registry.")) name = cat(words[0], "/", name);
    LocalModel model{name, {}};
    try {
      model.path = blob_of(store, entry->path());
    } catch (const Error& e) {
      model.problem = e.what();
    }
    out.push_back(std::move(model));
  }
}

// Three names that are spelled like the word, or contain it.
std::string near_names(const std::string& word, const std::vector<LocalModel>& models) {
  constexpr std::size_t kLongest = 100;
  std::string wanted = lower_case(word);
  if (wanted.ends_with(".gguf")) wanted.resize(wanted.size() - 5);
  if (wanted.starts_with('/') || wanted.starts_with('.')) wanted = fs::path(wanted).filename();
  if (wanted.size() < 3 || wanted.size() > kLongest) return {};
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const LocalModel& model : models) {
    std::string name = lower_case(model.name).substr(0, kLongest);
    if (wanted.find(':') == std::string::npos) name.resize(std::min(name.find(':'), name.size()));
    const bool inside = name.find(wanted) != std::string::npos;
    const std::size_t distance = inside ? 0 : edit_distance(wanted, name);
    if (distance <= wanted.size() / 3) near.emplace_back(distance, printable(model.name));
  }
  std::ranges::sort(near);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < near.size() && i < 3; ++i) names.push_back(near[i].second);
  return names.empty() ? "" : cat("did you mean ", joined(names, " or "), "? ");
}

// ---- Downloads

// Why a server refused, in words. -1: it could not be asked.
[[noreturn]] void refused(const std::string& repo, const std::string& what, long status,
                          const std::string& reason = {}) {
  std::string server = common_get_model_endpoint();
  if (const auto at = server.rfind('@'); at != std::string::npos) server.erase(0, at + 1);
  const std::string message = cat("cannot download ", what, " of ", repo, " from ", server, ": ");
  fail_if(status == 401 || status == 403,
          cat(message, "status ", status, ", it does not exist or is not public"),
          from_environment("HF_TOKEN").empty()
              ? "check the spelling; for a gated one accept its terms on its page and set HF_TOKEN "
                "to your token"
              : "check the spelling, and that the token in HF_TOKEN may read it");
  fail_if(status == 404, cat(message, "status 404, there is none"),
          "check the spelling: -hf USER/REPO[:QUANT]");
  if (status > 0) fail(cat(message, "status ", status), "try again later");
  fail(cat(message, "no connection", reason.empty() ? "" : cat(" (", reason, ")")),
       "check the network, or set HF_ENDPOINT to another server; mrrope models lists what is here");
}

// llama.cpp logs why there is no list of files; the status has to be asked for again.
[[noreturn]] void explain_no_list(const std::string& repo, const std::string& token) {
  common_remote_params request;
  request.timeout = 30;
  request.max_size = 1 << 20;
  if (!token.empty()) request.headers.emplace_back("Authorization", "Bearer " + token);
  long status = -1;
  std::string reason;
  try {
    status = common_remote_get_content(
                 cat(common_get_model_endpoint(), "api/models/", repo, "/refs"), request)
                 .first;
  } catch (const std::exception& e) {
    reason = e.what();
  }
  fail_if(status == 200,
          cat("the list of files of ", repo, " is empty or not one that can be used"),
          "check that it is a repository with GGUF files, or try again later");
  refused(repo, "the list of files", status, reason);
}

[[noreturn]] void explain_no_model(const RepoName& name, const hf_files& files) {
  constexpr std::size_t kMostShown = 40;
  std::set<std::string> quants;
  for (const hf_file& file : files) {
    if (starts_model(file.path)) quants.insert(printable(quant_of(file.path)));
  }
  fail_if(quants.empty(), cat(name.repo, " has no GGUF file"),
          "look for a repository of the same model with GGUF in its name");
  while (quants.size() > kMostShown) quants.erase(std::prev(quants.end()));
  refuse(cat(name.repo, " has no ", name.quant),
         cat("it has ", joined({quants.begin(), quants.end()}, ", "), ": -hf ", name.repo, ":",
             *quants.begin()));
}

// What llama.cpp reports of one file. It removes a file that a callback cancels, so this one never
// does: Ctrl-C ends the process, and what has come stays for the next call.
class Watcher : public common_download_callback {
 public:
  Watcher(std::string file, const fs::path& partial, const OnBytes& on_bytes)
      : file_(std::move(file)), partial_(partial), on_bytes_(on_bytes) {}

  void on_start(const common_download_progress& p) override {
    if (p.total == 0) fail(cat("the server does not say how long ", file_, " is"), kElsewhere);
    std::error_code error;
    std::uint64_t have = path_exists(partial_) ? fs::file_size(partial_, error) : 0;
    if (error) have = 0;
    if (have >= p.total) {  // there is no rest to ask for
      fs::remove(partial_, error);
      have = 0;
    }
    const fs::space_info space = fs::space(partial_.parent_path(), error);
    fail_if(
        !error && space.available < p.total - have,
        cat(file_, " needs ", bytes_text(double(p.total - have)), ", and ",
            partial_.parent_path().string(), " has ", bytes_text(double(space.available)), " free"),
        "make room, or set HF_HUB_CACHE to a folder on another disk");
    report(have, p.total);
  }
  void on_update(const common_download_progress& p) override {
    if (p.downloaded > p.total) fail(cat(file_, " is longer than the server said"), kElsewhere);
    report(p.downloaded, p.total);
  }
  void on_done(const common_download_progress&, bool) override {}

  static constexpr const char* kElsewhere =
      "download it by other means, and give the path of the file";

 private:
  void report(std::uint64_t done, std::uint64_t total) const {
    if (on_bytes_) on_bytes_("downloading " + file_, done, total);
  }

  std::string file_;
  fs::path partial_;
  const OnBytes& on_bytes_;
};

void download_file(const hf_file& file, const std::string& token, const OnBytes& on_bytes) {
  std::error_code error;
  if (path_exists(file.final_path)) return;
  const std::string name = printable(file.path);
  fail_if(!is_sha256(file.oid),
          cat("the server lists no SHA-256 of ", name, " in ", file.repo_id,
              ", so it could not be checked"),
          Watcher::kElsewhere);
  const fs::path partial = file.local_path + ".downloadInProgress";
  fs::create_directories(partial.parent_path(), error);
  if (error) fail(cat("cannot make ", partial.parent_path().string(), ": ", error.message()), "");
  Watcher watcher(name, partial, on_bytes);
  common_download_opts options;
  options.bearer_token = token;
  options.callback = &watcher;
  const int status = common_download_file_single(file.url, file.local_path, options, true);
  if (status < 200 || status >= 400) {
    const auto have = path_exists(partial) ? fs::file_size(partial, error) : 0;
    if (status >= 0 || have == 0) refused(file.repo_id, name, status);
    fail(cat("the download of ", name, " of ", file.repo_id, " ended early, after ",
             bytes_text(double(have))),
         cat("rerun the command: it goes on from there (to begin again, remove ", partial.string(),
             ")"));
  }
  const Source source = Source::open(file.local_path);
  Sha256 hash;
  hash.update(source, 0, source.size(), [&](std::uint64_t done) {
    if (on_bytes) on_bytes("checking " + name, done, source.size());
  });
  const std::string digest = hash.hex();
  if (digest != lower_case(file.oid)) {
    fs::remove(file.local_path, error);
    throw Error(ErrorKind::corrupt,
                cat(name, " of ", file.repo_id, " came with SHA-256 ", digest, ", not ", file.oid),
                "it was removed: rerun the command");
  }
}

}  // namespace

std::vector<fs::path> model_folders() {
  std::vector<fs::path> folders = {hf_cache::get_cache_path(), fs_get_cache_directory(),
                                   ollama_folder()};
  if (folders[0] == folders[1]) folders.erase(folders.begin());  // LLAMA_CACHE
  return folders;
}

std::vector<LocalModel> local_models() {
  common_log_set_verbosity_thold(-1);
  std::vector<LocalModel> models;
  try {
    list_repositories(models);
  } catch (const Error& e) {
    models.push_back({"(cache of Hugging Face)", {}, e.what()});
  }
  list_files(fs_get_cache_directory(), models);
  list_ollama(ollama_folder(), models);
  std::ranges::stable_sort(
      models, [](const LocalModel& a, const LocalModel& b) { return a.name < b.name; });
  return models;
}

fs::path find_model(const std::string& name) {
  if (path_exists(name)) return name;
  const std::vector<LocalModel> models = local_models();
  for (const std::string& wanted : {name, name + ":latest"}) {
    for (const LocalModel& model : models) {
      if (model.name != wanted) continue;
      fail_if(model.path.empty(), cat(name, " cannot be used: ", model.problem),
              "fetch it again; mrrope models lists the others");
      return model.path;
    }
  }
  if (const auto repo = parse_repo(name)) {
    if (fs::path path = cached(*repo); !path.empty()) return path;
  }
  try {
    Source::open(name);
  } catch (const Error& e) {
    throw Error(e.kind(), e.what(),
                cat(e.hint(), "; ", near_names(name, models),
                    parse_repo(name) && !name.ends_with(".gguf")
                        ? cat("to download it give -hf ", shell_word(name), "; ")
                        : "",
                    "mrrope models lists those that have a name here"));
  }
  return name;
}

fs::path download(const std::string& repo_and_quant, const OnBytes& on_bytes) {
  const auto name = parse_repo(repo_and_quant);
  refuse_if(!name, cat(shown(repo_and_quant), " is not the name of a repository"),
            "write -hf USER/REPO or -hf USER/REPO:QUANT, such as :Q4_K_M");
  common_log_set_verbosity_thold(-1);  // what fails is said below
  if (fs::path path = cached(*name); !path.empty()) return path;
  const std::string token = from_environment("HF_TOKEN");
  if (on_bytes) on_bytes("asking for the files of " + name->repo, 0, 1 << 20);
  hf_files files = hf_cache::get_repo_files(name->repo, token);
  if (files.empty()) explain_no_list(name->repo, token);
  sort(files);
  const hf_file* first = chosen(files, name->quant);
  if (first == nullptr) explain_no_model(*name, files);
  const std::vector<const hf_file*> parts = parts_of(files, *first);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] != nullptr) continue;
    fail(cat("part ", i + 1, " of ", parts.size(), " of ", printable(first->path),
             " is missing in ", name->repo),
         "take another quantization: -hf USER/REPO:QUANT");
  }
  for (const hf_file* part : parts) {
    download_file(*part, token, on_bytes);
    hf_cache::finalize_file(*part);
  }
  fail_if(!path_exists(first->final_path), cat("cannot write ", first->final_path),
          "check the rights of the folder");
  return first->final_path;
}

}  // namespace mrrope::hub
