#include "traces/format/layout.hpp"

#include <zlib.h>

#include <algorithm>

namespace bubblesim::traces::format {
namespace {

template <class T>
void put(std::span<std::uint8_t> bytes, std::size_t offset, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    bytes[offset + i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
}

template <class T>
T get(std::span<const std::uint8_t> bytes, std::size_t offset) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value |= std::uint64_t{bytes[offset + i]} << (8 * i);
  }
  return static_cast<T>(value);
}

bool sizes_are_allowed(const ChunkHeader& header) {
  if (header.stored_bytes == 0 || header.stored_bytes > header.raw_bytes) return false;
  if (header.raw_bytes > kMaxPayloadBytes) return false;
  return header.raw_bytes / kMaxExpansion <= header.stored_bytes &&
         header.first_record <= kMaxRecordPosition;
}

}  // namespace

std::string_view chunk_kind_name(std::uint16_t kind) {
  switch (static_cast<ChunkKind>(kind)) {
    case ChunkKind::kEnd: return "end";
    case ChunkKind::kRank: return "rank";
    case ChunkKind::kNames: return "names";
    case ChunkKind::kShapes: return "shapes";
    case ChunkKind::kThreads: return "threads";
    case ChunkKind::kStreams: return "streams";
    case ChunkKind::kHostCalls: return "host_calls";
    case ChunkKind::kDeviceOps: return "device_ops";
    case ChunkKind::kEdges: return "edges";
    case ChunkKind::kCollectives: return "collectives";
    case ChunkKind::kMarkers: return "markers";
    case ChunkKind::kMemory: return "memory";
    case ChunkKind::kCounters: return "counters";
    case ChunkKind::kStalls: return "stalls";
    case ChunkKind::kClocks: return "clocks";
    case ChunkKind::kSyncs: return "syncs";
    case ChunkKind::kNotes: return "notes";
  }
  return {};
}

std::uint32_t crc32_of(std::span<const std::uint8_t> bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, bytes.data(), bytes.size()));
}

std::array<std::uint8_t, kFileHeaderBytes> encode_file_header() {
  std::array<std::uint8_t, kFileHeaderBytes> bytes{};
  std::copy(kFileMagic.begin(), kFileMagic.end(), bytes.begin());
  put(bytes, 8, kMajorVersion);
  put(bytes, 10, kMinorVersion);
  put(bytes, 12, crc32_of(std::span(bytes).first(12)));
  return bytes;
}

std::optional<FileHeader> decode_file_header(std::span<const std::uint8_t> bytes) {
  if (!std::equal(kFileMagic.begin(), kFileMagic.end(), bytes.begin())) return std::nullopt;
  return FileHeader{get<std::uint16_t>(bytes, 8), get<std::uint16_t>(bytes, 10),
                    get<std::uint32_t>(bytes, 12) == crc32_of(bytes.first(12))};
}

std::array<std::uint8_t, kChunkHeaderBytes> encode_chunk_header(const ChunkHeader& header) {
  std::array<std::uint8_t, kChunkHeaderBytes> bytes{};
  std::copy(kChunkMagic.begin(), kChunkMagic.end(), bytes.begin());
  put(bytes, 4, header.kind);
  put(bytes, 6, header.codec);
  put(bytes, 8, header.rank);
  put(bytes, 12, header.records);
  put(bytes, 16, header.index);
  put(bytes, 20, header.stored_bytes);
  put(bytes, 24, header.raw_bytes);
  put(bytes, 28, header.payload_crc);
  put(bytes, 32, header.first_record);
  put(bytes, 40, crc32_of(std::span(bytes).first(40)));
  return bytes;
}

std::optional<ChunkHeader> decode_chunk_header(std::span<const std::uint8_t> bytes) {
  if (!std::equal(kChunkMagic.begin(), kChunkMagic.end(), bytes.begin())) return std::nullopt;
  if (get<std::uint32_t>(bytes, 40) != crc32_of(bytes.first(40))) return std::nullopt;
  const ChunkHeader header{
      .kind = get<std::uint16_t>(bytes, 4),
      .codec = get<std::uint8_t>(bytes, 6),
      .rank = get<std::uint32_t>(bytes, 8),
      .records = get<std::uint32_t>(bytes, 12),
      .index = get<std::uint32_t>(bytes, 16),
      .stored_bytes = get<std::uint32_t>(bytes, 20),
      .raw_bytes = get<std::uint32_t>(bytes, 24),
      .payload_crc = get<std::uint32_t>(bytes, 28),
      .first_record = get<std::uint64_t>(bytes, 32)};
  if (!sizes_are_allowed(header)) return std::nullopt;
  return header;
}

}  // namespace bubblesim::traces::format
