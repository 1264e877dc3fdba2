#include "traces/format/byte_source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

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

}  // namespace bubblesim::traces::format
