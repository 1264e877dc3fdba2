// Bytes of an input, one block after another: a file or memory, unpacked if its content is gzip
// (whatever its name says). Knows how far it has come; never holds more than a block and
// what unpacking needs (85 KiB at most).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

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

  /// Fills up to `size` bytes at `out`; fewer only at the end of the input, 0 after it.
  [[nodiscard]] std::size_t read(char* out, std::size_t size);

  /// Is the input gzip? Known once something was read.
  [[nodiscard]] bool packed() const;
  /// The compressed stream ended early or is corrupt: what was read before is good.
  [[nodiscard]] bool damaged() const;
  /// Bytes taken from the file (packed) so far, and its size.
  [[nodiscard]] std::uint64_t consumed() const;
  [[nodiscard]] std::uint64_t total() const;

 private:
  struct Impl;
  explicit ByteStream(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace bubblesim::traces
