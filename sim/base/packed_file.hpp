// Files that may be packed by gzip, as their content shows, not their name. It is a target of its
// own, `packed_file`, so that jobs and policies can link sim/base without zlib.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/gzip_inflater.hpp"
#include "sim/base/result.hpp"

namespace bubblesim {

/// Bytes of an input, one block after another: a file or memory, unpacked if its content is gzip.
/// Reports its progress; holds at most one block and the buffers of unpacking (85 KiB).
class ByteStream {
 public:
  /// Opens a regular file; the fault says why it cannot be read.
  [[nodiscard]] static Result<ByteStream> open(const std::filesystem::path& path);
  /// Opens a file or a pipe.
  [[nodiscard]] static Result<ByteStream> open_any(const std::filesystem::path& path);
  /// Reads `text`, which must outlive the stream.
  [[nodiscard]] static ByteStream from_memory(std::string_view text);

  /// Reads up to `size` bytes into `out`; fewer only at the end of the input, 0 after it.
  [[nodiscard]] std::size_t read(char* out, std::size_t size);

  /// Whether the input is gzip. Valid after the first read().
  [[nodiscard]] bool packed() const { return inflater_ != nullptr; }
  /// True if the compressed stream ended early or is corrupt. Bytes read before that are good.
  [[nodiscard]] bool damaged() const { return damaged_; }
  /// Bytes (packed) read from the file so far, and the size of the file.
  [[nodiscard]] std::uint64_t consumed() const { return consumed_; }
  [[nodiscard]] std::uint64_t total() const { return total_; }

 private:
  struct FileCloser {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  ByteStream() = default;
  void start();
  [[nodiscard]] std::size_t read_raw(char* out, std::size_t size);
  [[nodiscard]] std::size_t read_plain(char* out, std::size_t size);
  [[nodiscard]] std::size_t read_packed(char* out, std::size_t size);
  bool refill_packed();
  [[nodiscard]] bool next_member();

  std::unique_ptr<std::FILE, FileCloser> file_;  ///< none: `memory_` is read
  std::string_view memory_;
  std::uint64_t consumed_ = 0;
  std::uint64_t total_ = 0;
  bool damaged_ = false;
  std::unique_ptr<GzipInflater> inflater_;  ///< none: the input is no gzip
  bool in_member_ = false;
  std::vector<char> packed_;  ///< read from the input, not yet handed on; empty before start()
  std::size_t packed_begin_ = 0;
  std::size_t packed_end_ = 0;
};

/// Hands on the file's bytes, unpacked and in pieces, until the end or a fault of the taker. Fault:
/// the file cannot be opened or read to its end, or its compression is damaged.
[[nodiscard]] Result<void> read_packed_file(
    const std::string& path, const std::function<Result<void>(std::string_view)>& take);

/// The whole file, unpacked. More than `most_mib` MiB are a fault, too, which names `expected`.
[[nodiscard]] Result<std::string> read_packed_text(const std::string& path, std::size_t most_mib,
                                                   std::string_view expected);

}  // namespace bubblesim
