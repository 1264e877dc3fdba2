#include "sim/base/packed_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace bubblesim {
namespace {

/// About 250 KiB of text when it is gzip.
constexpr std::size_t kPackedBlock = std::size_t{16} << 10;
constexpr std::size_t kChunkBytes = std::size_t{1} << 16;

}  // namespace

Result<ByteStream> ByteStream::open(const std::filesystem::path& path) {
  std::error_code code;
  const auto status = std::filesystem::status(path, code);
  if (!std::filesystem::exists(status)) return fail(path.string(), "", "no such file");
  if (std::filesystem::is_directory(status)) {
    return fail(path.string(), "", "is a directory; expected one trace file");
  }
  if (!std::filesystem::is_regular_file(status)) {
    return fail(path.string(), "", "is not a regular file; expected one trace file");
  }
  return open_any(path);
}

Result<ByteStream> ByteStream::open_any(const std::filesystem::path& path) {
  ByteStream stream;
  stream.file_.reset(std::fopen(path.c_str(), "rb"));
  if (!stream.file_) {
    return fail(path.string(), "", std::string("cannot be opened: ") + std::strerror(errno));
  }
  std::setvbuf(stream.file_.get(), nullptr, _IONBF, 0);
  std::error_code code;
  const auto size = std::filesystem::file_size(path, code);
  stream.total_ = code ? 0 : size;
  return stream;
}

ByteStream ByteStream::from_memory(std::string_view text) {
  ByteStream stream;
  stream.memory_ = text;
  stream.total_ = text.size();
  return stream;
}

std::size_t ByteStream::read(char* out, std::size_t size) {
  if (packed_.empty()) start();
  return inflater_ ? read_packed(out, size) : read_plain(out, size);
}

void ByteStream::start() {
  packed_.resize(kPackedBlock);
  packed_end_ = read_raw(packed_.data(), packed_.size());
  if (std::string_view(packed_.data(), packed_end_).starts_with("\x1f\x8b")) {
    inflater_ = gzip_libraries().front().make();
  }
}

std::size_t ByteStream::read_raw(char* out, std::size_t size) {
  std::size_t count = 0;
  if (file_) {
    count = std::fread(out, 1, size, file_.get());
    if (count < size && std::ferror(file_.get()) != 0) damaged_ = true;
  } else {
    count = memory_.copy(out, size);
    memory_.remove_prefix(count);
  }
  consumed_ += count;
  return count;
}

std::size_t ByteStream::read_plain(char* out, std::size_t size) {
  const std::size_t held = std::min(size, packed_end_ - packed_begin_);
  std::copy_n(packed_.data() + packed_begin_, held, out);
  packed_begin_ += held;
  return held == size ? held : held + read_raw(out + held, size - held);
}

std::size_t ByteStream::read_packed(char* out, std::size_t size) {
  std::size_t produced = 0;
  while (produced < size && !damaged_) {
    if (!in_member_ && !next_member()) break;
    refill_packed();  // at the end of the input, what is held back comes
    const GzipInflater::Step step =
        inflater_->step({packed_.data() + packed_begin_, packed_end_ - packed_begin_},
                        {out + produced, size - produced});
    packed_begin_ += step.taken;
    produced += step.made;
    in_member_ = step.status == GzipInflater::Status::kOpen;
    const bool cut = in_member_ && step.taken == 0 && step.made == 0;
    if (cut || step.status == GzipInflater::Status::kDamaged) damaged_ = true;
  }
  return produced;
}

bool ByteStream::refill_packed() {
  if (packed_begin_ < packed_end_) return true;
  packed_begin_ = 0;
  packed_end_ = read_raw(packed_.data(), packed_.size());
  return packed_end_ > 0;
}

/// A gzip file may hold several members, one after another; bytes that are none end it.
bool ByteStream::next_member() {
  if (!refill_packed() || packed_[packed_begin_] != '\x1f') return false;
  inflater_->start_member();
  return in_member_ = true;
}

Result<void> read_packed_file(const std::string& path,
                              const std::function<Result<void>(std::string_view)>& take) {
  auto stream = ByteStream::open_any(path);
  if (!stream) return fail(path, {}, "the file cannot be opened");
  std::vector<char> buffer(kChunkBytes);
  while (true) {
    const std::size_t count = stream->read(buffer.data(), buffer.size());
    if (stream->damaged()) {
      return fail(path, {}, "the file cannot be read to its end, or its compression is damaged");
    }
    if (count == 0) return {};
    BUBBLESIM_RETURN_IF_ERROR(take({buffer.data(), count}));
  }
}

Result<std::string> read_packed_text(const std::string& path, std::size_t most_mib,
                                     std::string_view expected) {
  std::string text;
  BUBBLESIM_RETURN_IF_ERROR(read_packed_file(path, [&](std::string_view bytes) -> Result<void> {
    text += bytes;
    if (text.size() <= most_mib << 20U) return {};
    const std::string limit = std::to_string(most_mib) + " MiB";
    return fail(path, {}, "more than " + limit + "; expected " + std::string(expected));
  }));
  return text;
}

}  // namespace bubblesim
