#include "traces/format/chunk_scanner.hpp"

#include <fmt/format.h>

#include <cstring>

#include "traces/format/counters.hpp"

namespace bubblesim::traces::format {
namespace {

constexpr std::size_t kSearchBytes = std::size_t{1} << 20U;

std::string printable(ByteView bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) {
    if (byte >= 0x20 && byte < 0x7F) text += static_cast<char>(byte);
    else text += fmt::format("\\x{:02x}", byte);
  }
  return text;
}

/// Where in `bytes` the first whole, right chunk header stands.
std::optional<std::size_t> find_header(ByteView bytes) {
  std::size_t from = 0;
  while (bytes.size() - from >= kChunkHeaderBytes) {
    const std::size_t range = bytes.size() - from - kChunkHeaderBytes + 1;
    const void* hit = std::memchr(bytes.data() + from, kChunkMagic[0], range);
    if (hit == nullptr) return std::nullopt;
    from = static_cast<std::size_t>(static_cast<const std::uint8_t*>(hit) - bytes.data());
    if (decode_chunk_header(bytes.subspan(from, kChunkHeaderBytes))) return from;
    ++from;
  }
  return std::nullopt;
}

}  // namespace

Result<FileHeader> read_file_header(ByteSource& source, const std::string& name) {
  const ByteView bytes = source.view(0, kFileHeaderBytes);
  if (const auto fault = source.fault()) return tl::unexpected<Error>(*fault);
  if (bytes.size() < kFileHeaderBytes) {
    return fail(name, "byte 0",
                fmt::format("found {} bytes, expected a .btr file, which has {} or more",
                            bytes.size(), kFileHeaderBytes));
  }
  const auto header = decode_file_header(bytes);
  if (!header) {
    return fail(name, "byte 0",
                fmt::format("found a file that starts with \"{}\", expected \"{}\" (.btr)",
                            printable(bytes.first(kFileMagic.size())), printable(kFileMagic)));
  }
  if (header->checksum_right && header->major != kMajorVersion) {
    return fail(name, "byte 8",
                fmt::format("found .btr version {}.{}, this program supports {}.x", header->major,
                            header->minor, kMajorVersion));
  }
  return *header;
}

std::optional<ChunkHeader> ChunkScanner::header_at(std::uint64_t offset) {
  const ByteView bytes = source_.view(offset, kChunkHeaderBytes);
  if (bytes.size() < kChunkHeaderBytes) return std::nullopt;
  return decode_chunk_header(bytes);
}

void ChunkScanner::skip_to_header() {
  const std::uint64_t start = offset_;
  std::uint64_t from = start + 1;
  for (;;) {
    const ByteView bytes = source_.view(from, kSearchBytes);
    if (const auto found = find_header(bytes)) {
      offset_ = from + *found;
      break;
    }
    if (bytes.size() < kSearchBytes) {
      offset_ = source_.size();
      unknown_tail_ = true;
      break;
    }
    from += bytes.size() - kChunkHeaderBytes + 1;
  }
  bytes_lost_ += offset_ - start;
}

ScannedChunk ChunkScanner::take(const ChunkHeader& header) {
  ScannedChunk chunk{header, offset_, ChunkState::kWhole, {}};
  const std::uint64_t total = kChunkHeaderBytes + std::uint64_t{header.stored_bytes};
  cut_in_chunk_ = total > source_.size() - offset_;
  if (cut_in_chunk_) {
    chunk.state = ChunkState::kCutOff;
  } else {
    chunk.stored = source_.view(offset_ + kChunkHeaderBytes, header.stored_bytes);
    const bool right = chunk.stored.size() == header.stored_bytes &&
                       crc32_of(chunk.stored) == header.payload_crc;
    if (!right) chunk.state = ChunkState::kDamaged;
  }
  const std::uint64_t taken = cut_in_chunk_ ? kChunkHeaderBytes : total;
  if (chunk.state != ChunkState::kWhole) bytes_lost_ += taken;
  offset_ += taken;
  return chunk;
}

std::optional<ScannedChunk> ChunkScanner::next() {
  while (!ended_ && offset_ < source_.size()) {
    const auto header = header_at(offset_);
    if (!header) {
      skip_to_header();
      continue;
    }
    ScannedChunk chunk = take(*header);
    if (header->index < next_index_) {
      chunk.state = ChunkState::kMisplaced;
      ++misplaced_;
      return chunk;
    }
    next_index_ = std::uint64_t{header->index} + 1;
    if (chunk.state == ChunkState::kWhole) ++whole_;
    ended_ = chunk.state == ChunkState::kWhole &&
             header->kind == static_cast<std::uint16_t>(ChunkKind::kEnd);
    if (ended_) bytes_after_end_ = source_.size() - offset_;
    return chunk;
  }
  return std::nullopt;
}

void ChunkScanner::count(CounterSet& counters) const {
  const std::uint64_t tail = unknown_tail_ && !cut_in_chunk_ && !ended_ ? 1 : 0;
  counters.add(kEndMissing, ended_ ? 0 : 1);
  counters.add(kBytesLost, bytes_lost_);
  counters.add(kChunksLost, next_index_ + tail - whole_);
  counters.add(kChunksMalformed, misplaced_);
  counters.add(kBytesAfterEnd, bytes_after_end_);
}

}  // namespace bubblesim::traces::format
