// Turns a chunk's columns into its payload in the file and back: compression and checksum.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "traces/format/columns.hpp"
#include "traces/format/layout.hpp"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace bubblesim::traces::format {

/// Compresses payloads. The same columns, level and zstd library give the same bytes.
class PayloadPacker {
 public:
  explicit PayloadPacker(int level);

  /// Sets codec, sizes and checksum of `header`. The view is valid until the next call. Nothing if
  /// the payload exceeds kMaxPayloadBytes.
  [[nodiscard]] std::optional<ByteView> pack(const ColumnBytes& columns, ChunkHeader& header);

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  [[nodiscard]] std::size_t compress();
  void pad_to(std::size_t bytes, std::size_t& used);

  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
  std::vector<std::uint8_t> raw_;
  std::vector<std::uint8_t> stored_;
  int level_;
};

/// Decompresses payloads, after the caller has verified their checksums.
class PayloadUnpacker {
 public:
  PayloadUnpacker();

  /// The payload, followed by kVarintPadding readable bytes; valid until the next call. Nothing if
  /// it does not decompress to exactly header.raw_bytes, or the codec is unknown.
  [[nodiscard]] std::optional<ByteView> unpack(const ChunkHeader& header, ByteView stored);

 private:
  struct Free {
    void operator()(ZSTD_DCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_DCtx_s, Free> context_;
  std::vector<std::uint8_t> raw_;
};

}  // namespace bubblesim::traces::format
