// SPDX-License-Identifier: Apache-2.0
#include "base/files/source.h"

#include <sys/stat.h>

#include "support/test.h"

namespace mrrope {
namespace {

Source in_memory(std::string_view text) {
  return Source::memory(std::as_bytes(std::span(text)), "memory");
}

TEST(Source, KnowsItsSizeAndReadsInside) {
  const TempFolder folder;
  const Source source = Source::open(folder.write("a", "hello"));
  EXPECT_EQ(source.size(), 5u);
  std::string text(3, '\0');
  source.read(1, std::as_writable_bytes(std::span(text)));
  EXPECT_EQ(text, "ell");
}

TEST(Source, RefusesToReadOutside) {
  const Source source = in_memory("hello");
  std::string text(3, '\0');
  const auto to = std::as_writable_bytes(std::span(text));
  EXPECT_ERROR(source.read(3, to), corrupt, "3 bytes", "offset 3", "5 bytes");
  EXPECT_ERROR(source.read(UINT64_MAX, to), corrupt, "18446744073709551615");
}

TEST(Source, RefusesWhatIsNotAFile) {
  const TempFolder folder;
  EXPECT_ERROR(Source::open(folder.path() / "none"), failed, "none", "No such file");
  EXPECT_ERROR(Source::open(folder.path()), failed, "not a regular file");
  EXPECT_ERROR(Source::open("/dev/null"), failed, "not a regular file");
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_ERROR(Source::open(pipe), failed, "not a regular file");
}

TEST(Reader, ReadsLittleEndianNumbers) {
  const std::string bytes("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x00\x00\x80\x3f", 13);
  const Source source = in_memory(bytes);
  Reader in(source);
  EXPECT_EQ(in.bits(1, "a"), 0x01u);
  EXPECT_EQ(in.bits(2, "b"), 0x0302u);
  EXPECT_EQ(in.position(), 3u);
  in.skip(6, "c");
  EXPECT_EQ(in.f32("d"), 1.0f);
  EXPECT_EQ(in.remaining(), 0u);
  EXPECT_ERROR(in.bits(1, "one more"), corrupt, "one more", "offset 13");
}

TEST(Reader, ReadsAcrossItsBufferAndSkipsFar) {
  const TempFolder folder;
  std::string bytes(300'000, 'x');
  bytes.replace(65'530, 12, "hello, world");
  bytes.replace(299'997, 3, "end");
  const Source source = Source::open(folder.write("a", bytes));
  Reader in(source);
  in.skip(65'529, "start");
  EXPECT_EQ(in.text(1, "x"), "x");
  EXPECT_EQ(in.text(12, "greeting"), "hello, world");
  in.skip(in.remaining() - 3, "middle");
  EXPECT_EQ(in.text(3, "end"), "end");
  Reader again(source);
  EXPECT_EQ(again.text(300'000, "all"), bytes);
}

TEST(Reader, RefusesLengthsPastTheEndBeforeAllocating) {
  const Source source = in_memory("hello");
  Reader in(source);
  EXPECT_ERROR(in.text(UINT64_MAX, "a name"), corrupt, "a name", "18446744073709551615", "5");
  EXPECT_ERROR(in.skip(UINT64_MAX, "a list"), corrupt, "a list");
  EXPECT_EQ(in.position(), 0u);
}

TEST(Reader, ShowsNamesWithoutControlCharacters) {
  const Source source = in_memory("hello");
  Reader in(source);
  EXPECT_ERROR(in.u64("a\x1b[2J"), corrupt, "a?[2J needs 8 bytes");
}

TEST(Reader, NoticesAFileThatShrinks) {
  const TempFolder folder;
  const auto path = folder.write("a", "hello, world");
  const Source source = Source::open(path);
  std::filesystem::resize_file(path, 3);
  Reader in(source);
  EXPECT_ERROR(in.u64("a number"), failed, "shorter");
}

TEST(Names, AreShownWithoutControlCharactersAndAreNoPaths) {
  test::expect_functions("names", {{"shown", [](auto& a) { return shown(a[0]); }},
                                   {"printable", [](auto& a) { return printable(a[0]); }},
                                   {"plain", [](auto& a) {
                                      check_plain_name("index.json", a[0]);
                                      return std::string("fine");
                                    }}});
}

TEST(PlainFile, FollowsLinksOnlyInsideTheFolder) {
  const TempFolder folder;
  folder.write("secret", "x");
  folder.write("model/real", "x");
  folder.write("blobs/blob", "x");
  const auto home = folder.path() / "model";
  std::filesystem::create_symlink("real", home / "inside");
  std::filesystem::create_symlink("../secret", home / "outside");
  std::filesystem::create_symlink("../blobs/blob", home / "blob");
  EXPECT_EQ(plain_file_in(home, "inside"), home / "inside");
  EXPECT_EQ(plain_file_in(home, "not there"), home / "not there");
  EXPECT_ERROR(plain_file_in(home, "outside"), corrupt, "outside", "secret", "leads out");
  EXPECT_ERROR(plain_file_in(home, "blob"), corrupt, "leads out");
  EXPECT_EQ(plain_file_in(home, "blob", folder.path() / "blobs"), home / "blob");
  EXPECT_ERROR(plain_file_in(home, "outside", folder.path() / "blobs"), corrupt, "leads out");
  EXPECT_ERROR(plain_file_in(home, "outside", folder.path() / "gone"), corrupt, "leads out");
}

}  // namespace
}  // namespace mrrope
