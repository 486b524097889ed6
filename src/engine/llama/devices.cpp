// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/devices.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/files/source.h"
#include "base/text.h"
#include "base/words.h"
#include "engine/llama/loader.h"
#include "mrrope/version.h"

namespace mrrope::engine {

namespace {

namespace fs = std::filesystem;

struct AddOn {
  std::string name;            // cuda
  ggml_backend_reg_t backend;  // null: cannot be used
  std::string problem = {};
  std::string hint = {};
};

std::vector<AddOn>& add_ons() {
  static std::vector<AddOn> instance;
  return instance;
}

fs::path file_of(const void* address) {
  Dl_info info{};
  return address != nullptr && dladdr(address, &info) != 0 ? info.dli_fname : "";
}

// Empty where ggml is part of the program.
fs::path backend_folder() {
  const fs::path file = file_of(dlsym(RTLD_DEFAULT, "ggml_backend_load"));
  return file.filename() == "libmrrope-ggml.so" ? file.parent_path().lexically_normal()
                                                : fs::path();
}

ggml_backend_dev_t cpu() { return ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU); }

bool is_gpu(ggml_backend_dev_t device) {
  const auto type = ggml_backend_dev_type(device);
  return type == GGML_BACKEND_DEVICE_TYPE_GPU || type == GGML_BACKEND_DEVICE_TYPE_IGPU;
}

bool is_remote(ggml_backend_dev_t device) {
  return std::string_view(ggml_backend_reg_name(ggml_backend_dev_backend_reg(device))) == "RPC";
}

std::vector<ggml_backend_dev_t> all_devices() {
  std::vector<ggml_backend_dev_t> out;
  for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) out.push_back(ggml_backend_dev_get(i));
  return out;
}

std::string names(const std::vector<ggml_backend_dev_t>& devices) {
  const auto name = [](ggml_backend_dev_t d) { return std::string(ggml_backend_dev_name(d)); };
  return joined(mapped(devices, name), ", ");
}

// mrrope-cuda-0.5.0.so: the version is that of the command it was built for.
AddOn load_add_on(const fs::path& file) {
  const std::string stem = file.stem().string();
  const std::size_t dash = stem.rfind('-');
  const std::string package = stem.substr(0, dash);
  const std::string made_for = stem.substr(dash + 1);
  AddOn out{package.substr(package.find('-') + 1), nullptr};
  if (made_for != version()) {
    out.problem = cat(package, " ", made_for, " is not for mrrope ", version());
    out.hint = cat("pip install ", package, "==", version());
    return out;
  }
  take_llama_log();
  ggml_backend_reg_t backend = ggml_backend_load(file.c_str());
  const std::string why = take_llama_log();
  if (backend == nullptr) {
    const std::size_t at = why.find(".so: ");
    out.problem = cat(package, " cannot be loaded: ",
                      why.empty()      ? "it does not support this system"
                      : at == why.npos ? why
                                       : why.substr(at + 5));
  } else if (ggml_backend_reg_dev_count(backend) == 0) {
    out.problem = cat(package, " finds no GPU", why.empty() ? "" : cat(": ", why));
  } else {
    out.backend = backend;
  }
  out.hint = "install the driver of the GPU, or give --device CPU";
  return out;
}

ggml_backend_dev_t device_named(const std::string& name) {
  const ggml_backend_dev_t found = ggml_backend_dev_by_name(name.c_str());
  if (found != nullptr) return found;
  for (const AddOn& a : add_ons()) {
    if (a.backend != nullptr || !lower_case(name).starts_with(a.name)) continue;
    fail(cat("there is no device ", shown(name), ": ", a.problem), a.hint);
  }
  refuse(cat("there is no device ", shown(name), ", but ", names(all_devices())),
         backend_folder().empty() ? "./run --cuda builds mrrope for NVIDIA GPUs"
                                  : "--device list shows them");
}

// The backends of add-ons with a GPU: of two, none is better than the other for sure.
bool is_ambiguous() {
  return std::ranges::count_if(add_ons(), [](const AddOn& a) { return a.backend != nullptr; }) > 1;
}

}  // namespace

void* symbol_of(ggml_backend_dev_t device, const char* name) {
  const fs::path file = file_of(ggml_backend_dev_backend_reg(device));
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* const found = dlsym(library, name);
  dlclose(library);  // ggml keeps it
  return found;
}

void load_processor() {
  static const bool loaded = [] {
    keep_llama_log();
    const fs::path folder = backend_folder();
    if (folder.empty()) return true;
    ggml_backend_load_all_from_path(folder.c_str());
    fail_if(cpu() == nullptr, cat("no code for this processor in ", folder.string()),
            "install mrrope again");
    return true;
  }();
  static_cast<void>(loaded);
}

void load_add_ons() {
  const fs::path folder = backend_folder();
  if (folder.empty() || !add_ons().empty()) return;
  std::error_code ignored;
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("mrrope-") && name.ends_with(".so")) files.insert(entry.path());
  }
  for (const fs::path& file : files) add_ons().push_back(load_add_on(file));
}

std::vector<ggml_backend_dev_t> chosen_devices(const LocalOptions& options) {
  start_llama();
  if (options.device.empty() && !is_ambiguous()) return {};
  std::vector<ggml_backend_dev_t> out;
  for (const ggml_backend_dev_t d : all_devices()) {
    if (is_remote(d) && !options.rpc.empty()) out.push_back(d);
  }
  if (!options.device.empty()) {
    for (const std::string& name : split_list(options.device)) {
      const ggml_backend_dev_t d = device_named(name);
      if (is_gpu(d) && !has(out, d)) out.push_back(d);
    }
  }
  refuse_if(
      out.size() >= llama_max_devices(),
      cat("--device names ", out.size(), " devices, and llama.cpp takes ", llama_max_devices() - 1),
      "name fewer");
  out.push_back(nullptr);
  return out;
}

std::vector<ggml_backend_dev_t> devices_in_use(const LocalOptions& options) {
  std::vector<ggml_backend_dev_t> out;
  if (options.gpu_layers != 0) {
    out = chosen_devices(options);
    if (out.empty()) out = all_devices();
    std::erase_if(out, [](ggml_backend_dev_t d) { return d == nullptr || !is_gpu(d); });
  }
  out.push_back(cpu());
  return out;
}

std::string processor_code() {
  load_processor();
  const fs::path file =
      backend_folder().empty() ? fs::path() : file_of(ggml_backend_dev_backend_reg(cpu()));
  const std::string stem = file.stem().string();
  const std::string_view before = "libggml-cpu-";
  return stem.starts_with(before) ? stem.substr(before.size()) : "";
}

std::string device_list() {
  start_llama();
  std::string out;
  for (const ggml_backend_dev_t d : all_devices()) {
    std::size_t free = 0;
    std::size_t total = 0;
    ggml_backend_dev_memory(d, &free, &total);
    const std::string code = d == cpu() ? processor_code() : "";
    out += cat(ggml_backend_dev_name(d), ": ", ggml_backend_dev_description(d),
               code.empty() ? "" : cat(", code for ", code), ", ", bytes_text(double(total)), "\n");
  }
  for (const AddOn& a : add_ons()) {
    if (a.backend == nullptr) out += cat(a.problem, "; ", a.hint, "\n");
  }
  return out;
}

std::vector<std::string> device_notes(const LocalOptions& options) {
  std::vector<std::string> out;
  if (!options.device.empty() || options.gpu_layers == 0) return out;
  start_llama();
  std::vector<ggml_backend_dev_t> gpus = all_devices();
  std::erase_if(gpus, [](ggml_backend_dev_t d) { return !is_gpu(d) || is_remote(d); });
  for (const AddOn& a : add_ons()) {
    if (a.backend != nullptr) continue;
    out.push_back(cat(a.problem, gpus.empty() ? ", so the CPU is used; " : "; ", a.hint));
  }
  if (is_ambiguous()) {
    out.push_back(
        cat("several add-ons have a GPU, so the CPU is used; give --device one of ", names(gpus)));
  }
  return out;
}

}  // namespace mrrope::engine
