// The fixed parts of a .btr file: file header, chunk header, chunk kinds, limits.
//
// traces/format/FORMAT.md is the specification and has the same numbers. All integers are
// little-endian. Nothing here allocates or reads a file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace bubblesim::traces::format {

/// A reader refuses another major version. A higher minor version adds only skippable parts.
inline constexpr std::uint16_t kMajorVersion = 1;
inline constexpr std::uint16_t kMinorVersion = 5;

/// Built like PNG's magic: a high bit, a name, and line ends that a text-mode transfer changes.
inline constexpr std::array<std::uint8_t, 8> kFileMagic{0x89, 'B',  'T',  'R',
                                                        0x0D, 0x0A, 0x1A, 0x0A};
inline constexpr std::array<std::uint8_t, 4> kChunkMagic{0xC5, 'B', 'C', 'K'};
inline constexpr std::size_t kFileHeaderBytes = 16;
inline constexpr std::size_t kChunkHeaderBytes = 44;

/// Bytes of one decompressed payload. Bounds the memory of a reader.
inline constexpr std::uint32_t kMaxPayloadBytes = 64U << 20U;
/// Decompressed bytes per stored byte. Bounds the memory that a small hostile file can use.
inline constexpr std::uint32_t kMaxExpansion = 32;
/// The rank of chunks without a rank.
inline constexpr std::uint32_t kNoRank = 0xFFFFFFFF;
/// A chunk with a first-record position beyond this is damaged: 2^48 records are petabytes.
inline constexpr std::uint64_t kMaxRecordPosition = std::uint64_t{1} << 48U;

enum class ChunkKind : std::uint16_t {
  kEnd = 1,
  kRank = 2,
  kNames = 3,
  kShapes = 4,
  kThreads = 5,
  kStreams = 6,
  kHostCalls = 7,
  kDeviceOps = 8,
  kEdges = 9,
  kCollectives = 10,
  kMarkers = 11,
  kMemory = 12,
  kCounters = 13,
  kStalls = 14,      ///< this kind and all below: from 1.1 on
  kClocks = 15,
  kSyncs = 16,
  kNotes = 17,
};

/// snake_case name of a kind; empty for an unknown kind.
[[nodiscard]] std::string_view chunk_kind_name(std::uint16_t kind);

enum class Codec : std::uint8_t { kStored = 0, kZstd = 1 };

/// The header before each payload. `kind` and `codec` are numbers, since they may be unknown.
struct ChunkHeader {
  std::uint16_t kind = 0;
  std::uint8_t codec = 0;
  std::uint32_t rank = kNoRank;
  std::uint32_t records = 0;
  std::uint32_t index = 0;         ///< 0, 1, 2, ... in file order
  std::uint32_t stored_bytes = 0;  ///< of the payload, in the file
  std::uint32_t raw_bytes = 0;     ///< of the payload, decompressed
  std::uint32_t payload_crc = 0;   ///< CRC-32 (zlib's) of the stored bytes
  std::uint64_t first_record = 0;  ///< number of records of this kind and rank in earlier chunks
};

struct FileHeader {
  std::uint16_t major = kMajorVersion;
  std::uint16_t minor = kMinorVersion;
  bool checksum_right = true;
};

[[nodiscard]] std::uint32_t crc32_of(std::span<const std::uint8_t> bytes);

[[nodiscard]] std::array<std::uint8_t, kFileHeaderBytes> encode_file_header();
/// Nothing if the magic is wrong. `bytes` has kFileHeaderBytes bytes.
[[nodiscard]] std::optional<FileHeader> decode_file_header(std::span<const std::uint8_t> bytes);

[[nodiscard]] std::array<std::uint8_t, kChunkHeaderBytes> encode_chunk_header(
    const ChunkHeader& header);
/// Nothing unless magic and checksum are right and the sizes are within the limits above. `bytes`
/// has kChunkHeaderBytes bytes.
[[nodiscard]] std::optional<ChunkHeader> decode_chunk_header(std::span<const std::uint8_t> bytes);

}  // namespace bubblesim::traces::format
