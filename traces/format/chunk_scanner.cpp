#include "traces/format/chunk_scanner.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "traces/format/counters.hpp"

namespace bubblesim::traces::format {
namespace {

/// What one read asks for: large enough that calls cost little, small enough for a cache.
constexpr std::size_t kWindowBytes = std::size_t{1} << 20U;

}  // namespace

ByteView MemorySource::view(std::uint64_t offset, std::size_t bytes) {
  if (offset >= bytes_.size()) return {};
  return bytes_.subspan(offset, std::min<std::size_t>(bytes, bytes_.size() - offset));
}

Result<std::unique_ptr<FileSource>> FileSource::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return fail(path, {}, std::string("cannot open: ") + std::strerror(errno));
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    return fail(path, {}, "found something that is not a regular file, expected a .btr file");
  }
  return std::unique_ptr<FileSource>(
      new FileSource(path, descriptor, static_cast<std::uint64_t>(status.st_size)));
}

FileSource::~FileSource() { ::close(descriptor_); }

void FileSource::load(std::uint64_t offset, std::size_t bytes) {
  if (window_.size() < bytes) window_.resize(bytes);
  window_start_ = offset;
  window_used_ = 0;
  while (window_used_ < bytes) {
    const ssize_t got = ::pread(descriptor_, window_.data() + window_used_, bytes - window_used_,
                                static_cast<off_t>(offset + window_used_));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && !fault_) {
      fault_ = Error{path_, "byte " + std::to_string(offset + window_used_),
                     std::string("cannot read: ") + std::strerror(errno)};
    }
    if (got <= 0) return;
    window_used_ += static_cast<std::size_t>(got);
  }
}

ByteView FileSource::view(std::uint64_t offset, std::size_t bytes) {
  if (offset >= size_) return {};
  bytes = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, size_ - offset));
  const bool inside = offset >= window_start_ && offset - window_start_ <= window_used_ &&
                      window_used_ - (offset - window_start_) >= bytes;
  if (!inside) {
    load(offset, static_cast<std::size_t>(
                     std::min<std::uint64_t>(std::max(bytes, kWindowBytes), size_ - offset)));
  }
  const auto skip = static_cast<std::size_t>(offset - window_start_);
  return ByteView(window_).subspan(skip, std::min(bytes, window_used_ - skip));
}

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
