// Bytes of an input, one block after another: a file or memory, unpacked if its content is gzip,
// whatever its name. Reports its progress; holds at most one block and the buffers of unpacking (85
// KiB).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "sim/base/result.hpp"

namespace bubblesim::traces {

class ByteStream {
 public:
  /// Opens a regular file; the fault says why it cannot be read.
  [[nodiscard]] static Result<ByteStream> open(const std::filesystem::path& path);
  /// Reads `text`, which must outlive the source.
  [[nodiscard]] static ByteStream from_memory(std::string_view text);

  ByteStream(ByteStream&&) noexcept;
  ByteStream& operator=(ByteStream&&) noexcept;
  ~ByteStream();

  /// Reads up to `size` bytes into `out`; fewer only at the end of the input, 0 after it.
  [[nodiscard]] std::size_t read(char* out, std::size_t size);

  /// Whether the input is gzip. Valid after the first read().
  [[nodiscard]] bool packed() const;
  /// True if the compressed stream ended early or is corrupt. Bytes read before that are good.
  [[nodiscard]] bool damaged() const;
  /// Bytes (packed) read from the file so far, and the size of the file.
  [[nodiscard]] std::uint64_t consumed() const;
  [[nodiscard]] std::uint64_t total() const;

 private:
  struct Impl;
  explicit ByteStream(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// A bounded view of a text that is read block by block: the text from an anchor to the end of the
// last block. Moving the anchor drops the text before it; `more()` lengthens the view.

class TextWindow {
 public:
  /// `limit`: the most bytes in the view; `more()` does not exceed it.
  TextWindow(ByteStream& source, std::size_t limit, std::function<void()> on_block = {});

  /// The text from the anchor on. Valid until the next `more()`.
  [[nodiscard]] std::string_view text() const {
    return {buffer_.data() + begin_, end_ - begin_};
  }
  /// Reads another block. False: the input has ended or the view is at its limit.
  [[nodiscard]] bool more();
  /// Moves the anchor forward by `count` <= text().size().
  void advance(std::size_t count);
  /// Offset of the anchor in the unpacked input, in bytes.
  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  /// Whether the input has ended, so that `text()` is all that is left.
  [[nodiscard]] bool at_end() const { return ended_; }

 private:
  ByteStream& source_;
  std::function<void()> on_block_;
  std::vector<char> buffer_;
  std::size_t limit_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t offset_ = 0;
  bool ended_ = false;
};

}  // namespace bubblesim::traces
