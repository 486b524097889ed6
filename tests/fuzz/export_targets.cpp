// SPDX-License-Identifier: Apache-2.0
// GGUF files through every kind of export, and plan files.
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json.h"
#include "export/export.h"
#include "formats/facts.h"
#include "formats/plan_file.h"
#include "fuzz/require.h"
#include "fuzz/targets.h"
#include "support/temp_folder.h"

namespace mrrope::fuzz {
namespace {

void check_file(const GgufFileOut& file) {
  std::set<std::string> names;
  for (const GgufTensorOut& tensor : file.tensors) {
    require(names.insert(tensor.name).second, "two tensors of one name");
    if (tensor.rows.head == 0) continue;
    require(tensor.rows.head % 2 == 0 && tensor.rows.heads > 0, "heads that cannot be reordered");
    require(tensor.dims.size() == 1 || tensor.dims.size() == 2, "rows of neither matrix nor bias");
    require(tensor.rows.heads <= tensor.dims.back() / tensor.rows.head, "more heads than rows");
  }
}

void export_one(const Gguf& gguf, const Model& model, const char* method,
                exporting::GgufOptions options) {
  const Plan plan = make_plan(model.geometry, {.method = method, .scale = 4});
  options.length = std::min<std::int64_t>(4 * model.geometry.train_length, 1 << 30);
  const exporting::GgufExport exported = plan_gguf_export(gguf, model, plan, options);
  check_file(exported.file);
  write_gguf(exported.file, {});
  const std::filesystem::path out = exported.file.path;
  require(std::filesystem::file_size(out) == exported.file.size(), "a size other than stated");
  const Gguf back = read_gguf(out);
  require(back.first().tensors.size() == exported.file.tensors.size(), "a tensor lost");
  require(gguf_facts(back).architecture->name == exported.architecture, "another architecture");
}

}  // namespace

void gguf_export(std::span<const std::byte> bytes) {
  static const test::TempFolder folder(test::fast_place());
  only_errors([&] {
    const auto in =
        folder.write("in.gguf", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    const Gguf gguf = read_gguf(in);
    if (gguf.parts.size() != 1) return;
    const Model model = finish_model(gguf_facts(gguf), false);
    for (const char* method : {"pro", "pi", "yarn"}) {
      for (const bool native : {false, true}) {
        exporting::GgufOptions options;
        options.out = folder / "out.gguf";
        options.native = native;
        only_errors([&] { export_one(gguf, model, method, options); });
        forget_input(options.out);  // or memory would grow, which looks like a leak
        std::filesystem::remove(options.out);
      }
    }
  });
}

void plan(std::span<const std::byte> bytes) {
  only_errors([&] {
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto read = ladder_from_json(parse_json(text, "fuzz"));
    const std::string first = to_json(read).dump();
    const auto again = ladder_from_json(nlohmann::json::parse(first));
    require(to_json(again).dump() == first, "a plan that does not survive its own file");
  });
}

}  // namespace mrrope::fuzz
