// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "export/export.h"
#include "models/gguf_writer.h"
#include "support/test.h"

namespace mrrope::exporting {
namespace {

// "gguf ARCHITECTURE METHOD TIMES [ATTN_COEF]" is about a small file of that architecture; "hf
// METHOD TIMES CONFIG" about a checkpoint.
std::string advice_for(const std::string& input) {
  std::istringstream words(input);
  std::string kind, architecture, method, config;
  double scale = 1;
  double attn_coef = -1;
  words >> kind;
  const test::TempFolder folder;
  std::filesystem::path path = folder / "small-model.gguf";
  std::optional<Gguf> gguf;
  if (kind == "gguf") {
    words >> architecture >> method >> scale >> attn_coef;
    test::write_file(path, test::llama_gguf({.architecture = architecture}).bytes());
    gguf = read_gguf(path);
  } else {
    std::getline(words >> method >> scale >> std::ws, config);
    path = folder / "model";
    folder.write("model/config.json", config);
  }
  const Model model = read_model(path);
  Extension extension{.method = method, .scale = scale};
  if (words && attn_coef >= 0) extension.parameters.attn_coef = attn_coef;
  const Plan plan = make_plan(model.geometry, extension);
  const auto length = static_cast<std::int64_t>(double(model.geometry.train_length) * scale);
  std::string out;
  for (const EngineAdvice& a :
       engine_advice({model, gguf ? &*gguf : nullptr, plan, length, "--method " + method})) {
    out += cat(a.engine, ": ", to_string(a.verdict), a.why.empty() ? "" : ": ", a.why, "\n");
    for (const std::string& command : a.commands) out += "  " + command + "\n";
  }
  out.pop_back();
  return std::regex_replace(out, std::regex(R"((\.\d{6})\d+)"), "$1");  // with fewer digits
}

TEST(Engines, SayWhatToTypeOrWhyTheyCannot) { test::expect_transcript("engines", advice_for); }

}  // namespace
}  // namespace mrrope::exporting
