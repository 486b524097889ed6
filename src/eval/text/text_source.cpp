// SPDX-License-Identifier: Apache-2.0
#include "eval/text/text_source.h"

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>

#include "base/files/source.h"
#include "base/text.h"
#include "mrrope/error.h"

namespace mrrope::eval {

namespace {

constexpr std::size_t kInput = 1 << 16;
// What a decoder may use for its own window: xz -9 needs 65 MiB, zstd --ultra -22 128 MiB.
constexpr std::uint64_t kDecoderMemory = std::uint64_t(512) << 20;
constexpr int kZstdWindowLog = 29;

// The compressed file, in pieces.
class Input {
 public:
  explicit Input(const std::filesystem::path& path) : source_(Source::open(path)) { fill(); }

  const std::string& path() const { return source_.name(); }
  std::string_view rest() const { return {buffer_.data() + at_, size_ - at_}; }
  void consume(std::size_t bytes) { at_ += bytes; }

  // Makes rest() non-empty unless the file is at its end.
  bool more() {
    if (at_ == size_) fill();
    return at_ < size_;
  }

  [[noreturn]] void corrupt(const std::string& what) const {
    throw Error(ErrorKind::corrupt, path() + ": " + what, "fetch or compress the file again");
  }

 private:
  void fill() {
    at_ = 0;
    size_ = std::size_t(std::min<std::uint64_t>(buffer_.size(), source_.size() - offset_));
    source_.read(offset_, std::as_writable_bytes(std::span(buffer_).first(size_)));
    offset_ += size_;
  }

  Source source_;
  std::uint64_t offset_ = 0;  // of what comes after the buffer
  std::array<char, kInput> buffer_;
  std::size_t at_ = 0;
  std::size_t size_ = 0;
};

class PlainSource : public TextSource {
 public:
  explicit PlainSource(std::unique_ptr<Input> input) : input_(std::move(input)) {}

  std::size_t read(char* to, std::size_t size) override {
    if (!input_->more()) return 0;
    const std::size_t take = std::min(size, input_->rest().size());
    std::memcpy(to, input_->rest().data(), take);
    input_->consume(take);
    return take;
  }

 private:
  std::unique_ptr<Input> input_;
};

class GzipSource : public TextSource {
 public:
  explicit GzipSource(std::unique_ptr<Input> input) : input_(std::move(input)) {
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) {
      throw Error(ErrorKind::out_of_memory, "no memory for the gzip decoder",
                  "unpack the file first");
    }
  }
  ~GzipSource() override { inflateEnd(&stream_); }

  std::size_t read(char* to, std::size_t size) override {
    size = std::min(size, std::size_t(1) << 30);
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = uInt(size);
    while (stream_.avail_out == size) {
      if (!input_->more()) {
        if (!finished_) input_->corrupt("the gzip archive is cut off");
        return 0;
      }
      const std::string_view rest = input_->rest();
      if (finished_) {  // another member, or the zeros that tapes and some tools append
        if (rest[0] == '\0') {
          input_->consume(1);
          continue;
        }
        inflateReset(&stream_);
        finished_ = false;
      }
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest.data()));
      stream_.avail_in = uInt(rest.size());
      const int status = inflate(&stream_, Z_NO_FLUSH);
      input_->consume(rest.size() - stream_.avail_in);
      if (status == Z_STREAM_END) finished_ = true;
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
        input_->corrupt(cat("damaged gzip archive: ", stream_.msg ? stream_.msg : "bad data"));
      }
    }
    return size - stream_.avail_out;
  }

 private:
  std::unique_ptr<Input> input_;
  z_stream stream_{};
  bool finished_ = false;
};

class XzSource : public TextSource {
 public:
  explicit XzSource(std::unique_ptr<Input> input) : input_(std::move(input)) {
    if (lzma_stream_decoder(&stream_, kDecoderMemory, LZMA_CONCATENATED) != LZMA_OK) {
      throw Error(ErrorKind::out_of_memory, "no memory for the xz decoder",
                  "unpack the file first");
    }
  }
  ~XzSource() override { lzma_end(&stream_); }

  std::size_t read(char* to, std::size_t size) override {
    if (finished_) return 0;
    stream_.next_out = reinterpret_cast<std::uint8_t*>(to);
    stream_.avail_out = size;
    while (stream_.avail_out == size && !finished_) {
      const lzma_action action = input_->more() ? LZMA_RUN : LZMA_FINISH;
      const std::string_view rest = input_->rest();
      stream_.next_in = reinterpret_cast<const std::uint8_t*>(rest.data());
      stream_.avail_in = rest.size();
      const lzma_ret status = lzma_code(&stream_, action);
      input_->consume(rest.size() - stream_.avail_in);
      if (status == LZMA_STREAM_END) {
        finished_ = true;
      } else if (status == LZMA_BUF_ERROR) {
        input_->corrupt("the xz archive is cut off");
      } else if (status == LZMA_MEMLIMIT_ERROR) {
        throw Error(ErrorKind::out_of_memory,
                    input_->path() + ": this xz archive needs more than 512 MiB to unpack",
                    "compress it with xz -9 or less");
      } else if (status != LZMA_OK) {
        input_->corrupt(cat("damaged xz archive (code ", int(status), ")"));
      }
    }
    return size - stream_.avail_out;
  }

 private:
  std::unique_ptr<Input> input_;
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool finished_ = false;
};

class ZstdSource : public TextSource {
 public:
  explicit ZstdSource(std::unique_ptr<Input> input)
      : input_(std::move(input)), stream_(ZSTD_createDStream()) {
    if (!stream_ ||
        ZSTD_isError(ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, kZstdWindowLog))) {
      throw Error(ErrorKind::out_of_memory, "no memory for the zstd decoder",
                  "unpack the file first");
    }
  }

  std::size_t read(char* to, std::size_t size) override {
    ZSTD_outBuffer out{to, size, 0};
    while (out.pos == 0) {
      // A full output buffer may hide more; only then is there something to do without input.
      if (!input_->more() && !pending_) {
        if (inside_) input_->corrupt("the zstd archive is cut off");
        return 0;
      }
      const std::string_view rest = input_->rest();
      ZSTD_inBuffer in{rest.data(), rest.size(), 0};
      const std::size_t status = ZSTD_decompressStream(stream_.get(), &out, &in);
      input_->consume(in.pos);
      if (ZSTD_isError(status)) {
        input_->corrupt(cat("damaged zstd archive: ", ZSTD_getErrorName(status)));
      }
      inside_ = status != 0;
      pending_ = out.pos == out.size && inside_;
    }
    return out.pos;
  }

 private:
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };
  std::unique_ptr<Input> input_;
  std::unique_ptr<ZSTD_DStream, Free> stream_;
  bool inside_ = false;   // a frame has begun and not ended
  bool pending_ = false;  // the decoder may hold output
};

struct Packing {
  std::string_view suffix;
  std::string_view magic;
};
constexpr std::array<Packing, 3> kPackings = {Packing{".gz", "\x1f\x8b"},
                                              Packing{".xz", std::string_view("\xfd"
                                                                              "7zXZ\0",
                                                                              6)},
                                              Packing{".zst", "\x28\xb5\x2f\xfd"}};

}  // namespace

std::string inner_name(const std::filesystem::path& path) {
  for (const Packing& packing : kPackings) {
    if (path.extension() == packing.suffix) return path.stem().string();
  }
  return path.filename().string();
}

std::unique_ptr<TextSource> open_text(const std::filesystem::path& path) {
  auto input = std::make_unique<Input>(path);
  const std::string_view head = input->rest();
  if (head.starts_with(kPackings[0].magic)) return std::make_unique<GzipSource>(std::move(input));
  if (head.starts_with(kPackings[1].magic)) return std::make_unique<XzSource>(std::move(input));
  if (head.starts_with(kPackings[2].magic)) return std::make_unique<ZstdSource>(std::move(input));
  for (const Packing& packing : kPackings) {
    if (path.extension() == packing.suffix && !head.empty()) {
      input->corrupt(cat("named ", packing.suffix, ", but its content is not that"));
    }
  }
  return std::make_unique<PlainSource>(std::move(input));
}

}  // namespace mrrope::eval
