// Random access to the bytes of a file through a window of bounded size, or to bytes in memory.
// It is no memory map: a file that another process cuts short while it is read must not end us.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "traces/format/columns.hpp"

namespace bubblesim::traces::format {

class ByteSource {
 public:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;

  [[nodiscard]] virtual std::uint64_t size() const = 0;
  /// `bytes` bytes from `offset`, good until the next call; fewer only if the source holds no
  /// more there or a read failed.
  [[nodiscard]] virtual ByteView view(std::uint64_t offset, std::size_t bytes) = 0;
  /// The first failed read, if any.
  [[nodiscard]] virtual std::optional<Error> fault() const { return std::nullopt; }
};

/// Borrows the bytes.
class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(ByteView bytes) : bytes_(bytes) {}
  [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
  [[nodiscard]] ByteView view(std::uint64_t offset, std::size_t bytes) override;

 private:
  ByteView bytes_;
};

/// A regular file. Its size is taken once, when it is opened.
class FileSource final : public ByteSource {
 public:
  [[nodiscard]] static Result<std::unique_ptr<FileSource>> open(const std::string& path);
  ~FileSource() override;
  [[nodiscard]] std::uint64_t size() const override { return size_; }
  [[nodiscard]] ByteView view(std::uint64_t offset, std::size_t bytes) override;
  [[nodiscard]] std::optional<Error> fault() const override { return fault_; }

 private:
  FileSource(std::string path, int descriptor, std::uint64_t size)
      : path_(std::move(path)), descriptor_(descriptor), size_(size) {}
  void load(std::uint64_t offset, std::size_t bytes);

  std::string path_;
  int descriptor_;
  std::uint64_t size_;
  std::vector<std::uint8_t> window_;
  std::uint64_t window_start_ = 0;
  std::size_t window_used_ = 0;
  std::optional<Error> fault_;
};

}  // namespace bubblesim::traces::format
