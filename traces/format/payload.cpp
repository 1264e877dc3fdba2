#include "traces/format/payload.hpp"

#include <zstd.h>

#include <cstring>

namespace bubblesim::traces::format {
namespace {

/// RFC 8878, 3.1.2: a frame that every decoder passes over.
constexpr std::uint32_t kSkippableFrame = 0x184D2A50;
constexpr std::size_t kSkippableHeaderBytes = 8;

void put_u32(std::uint8_t* place, std::uint32_t value) {
  std::memcpy(place, &value, sizeof(value));
}

void assemble(const ColumnBytes& columns, std::vector<std::uint8_t>& raw) {
  raw.resize((columns.lengths.size() + 1) * kMaxVarintBytes + columns.bytes.size());
  std::uint8_t* place = write_varint(raw.data(), columns.lengths.size());
  for (const std::size_t length : columns.lengths) place = write_varint(place, length);
  if (!columns.bytes.empty()) std::memcpy(place, columns.bytes.data(), columns.bytes.size());
  raw.resize(static_cast<std::size_t>(place - raw.data()) + columns.bytes.size());
}

}  // namespace

void PayloadPacker::Free::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }
void PayloadUnpacker::Free::operator()(ZSTD_DCtx_s* context) const { ZSTD_freeDCtx(context); }

PayloadPacker::PayloadPacker(int level) : context_(ZSTD_createCCtx()), level_(level) {}

std::size_t PayloadPacker::compress() {
  stored_.resize(ZSTD_compressBound(raw_.size()));
  const std::size_t used = ZSTD_compressCCtx(context_.get(), stored_.data(), stored_.size(),
                                             raw_.data(), raw_.size(), level_);
  return ZSTD_isError(used) != 0 ? raw_.size() : used;
}

// Keeps the promise of kMaxExpansion for data that compresses better than that.
void PayloadPacker::pad_to(std::size_t bytes, std::size_t& used) {
  const std::size_t frame = std::max(bytes - used, kSkippableHeaderBytes);
  stored_.resize(std::max(stored_.size(), used + frame));
  std::memset(stored_.data() + used, 0, frame);
  put_u32(stored_.data() + used, kSkippableFrame);
  put_u32(stored_.data() + used + 4, static_cast<std::uint32_t>(frame - kSkippableHeaderBytes));
  used += frame;
}

std::optional<ByteView> PayloadPacker::pack(const ColumnBytes& columns, ChunkHeader& header) {
  assemble(columns, raw_);
  if (raw_.size() > kMaxPayloadBytes) return std::nullopt;
  std::size_t used = compress();
  if (used * kMaxExpansion < raw_.size()) pad_to(raw_.size() / kMaxExpansion + 1, used);
  const bool smaller = used < raw_.size();
  const ByteView stored = smaller ? ByteView(stored_).first(used) : ByteView(raw_);
  header.codec = static_cast<std::uint8_t>(smaller ? Codec::kZstd : Codec::kStored);
  header.raw_bytes = static_cast<std::uint32_t>(raw_.size());
  header.stored_bytes = static_cast<std::uint32_t>(stored.size());
  header.payload_crc = crc32_of(stored);
  return stored;
}

PayloadUnpacker::PayloadUnpacker() : context_(ZSTD_createDCtx()) {}

std::optional<ByteView> PayloadUnpacker::unpack(const ChunkHeader& header, ByteView stored) {
  raw_.resize(std::size_t{header.raw_bytes} + kVarintPadding);
  if (header.codec == static_cast<std::uint8_t>(Codec::kStored)) {
    if (stored.size() != header.raw_bytes) return std::nullopt;
    std::memcpy(raw_.data(), stored.data(), stored.size());
  } else if (header.codec == static_cast<std::uint8_t>(Codec::kZstd)) {
    const std::size_t got = ZSTD_decompressDCtx(context_.get(), raw_.data(), header.raw_bytes,
                                                stored.data(), stored.size());
    if (ZSTD_isError(got) != 0 || got != header.raw_bytes) return std::nullopt;
  } else {
    return std::nullopt;
  }
  return ByteView(raw_).first(header.raw_bytes);
}

}  // namespace bubblesim::traces::format
