// SPDX-License-Identifier: Apache-2.0
// How exported files get onto the disk; tests/integration runs what is in them.
#include "export/gguf_export.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/gguf_writer.h"
#include "support/temp_folder.h"

namespace mrrope::exporting {
namespace {

using test::llama_gguf;
using test::read_file;
using test::TempFolder;
namespace fs = std::filesystem;

struct Input {
  Input()
      : path(folder.write("in.gguf",
                          llama_gguf().tensor("a", {64}, 0, std::string(256, 'a')).bytes())),
        gguf(read_gguf(path)),
        model(read_model(path)) {}
  GgufExport to(const fs::path& out) const {
    Extension pro{.method = "pro", .scale = 4};
    GgufOptions options;
    options.out = out;
    options.length = 16384;
    return plan_gguf_export(gguf, model, make_plan(model.geometry, pro), options);
  }
  TempFolder folder;
  fs::path path;
  Gguf gguf;
  Model model;
};

TEST(WriteExport, PublishesOnlyWhatWasVerified) {
  const Input in;
  const fs::path out = in.folder / "out.gguf";
  const GgufExport exported = in.to(out);
  const auto fails = [&](Staging&, const GgufExport& staged) {
    EXPECT_EQ(read_gguf(staged.files.front().path).rope_factors("rope_freqs.weight").back(), 4);
    EXPECT_EQ(staged.files.front().path.filename(), "out.gguf");
    throw Error(ErrorKind::goal_not_met, "something differs", "report it");
  };
  EXPECT_ERROR(write_export(exported, false, {}, fails), goal_not_met, "differs");
  EXPECT_FALSE(fs::exists(out));
  in.folder.write("out.gguf", "old");
  EXPECT_ERROR(write_export(exported, false, {}), usage, "already exists");
  EXPECT_ERROR(write_export(exported, true, {}, fails), goal_not_met, "differs");
  EXPECT_EQ(read_file(out), "old");
  write_export(exported, true, {},
               [&](Staging&, const GgufExport&) { EXPECT_EQ(read_file(out), "old"); });
  EXPECT_EQ(read_gguf(out).rope_factors("rope_freqs.weight").back(), 4);
  // The input, the output, and nothing else.
  EXPECT_EQ(std::distance(fs::directory_iterator(in.folder.path()), fs::directory_iterator()), 2);
}

TEST(WriteExport, RefusesFoldersAndMissingNames) {
  const Input in;
  fs::create_directory(in.folder / "d");
  EXPECT_ERROR(write_export(in.to(in.folder / "d"), true, {}), usage, "not a regular file");
  EXPECT_ERROR(write_export(in.to(in.folder / "d/"), true, {}), usage, "does not name a file");
}

}  // namespace
}  // namespace mrrope::exporting
