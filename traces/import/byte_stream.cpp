#include "traces/import/byte_stream.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "traces/import/gzip_inflater.hpp"

namespace bubblesim::traces {
namespace {

/// About 250 KiB of text when it is gzip.
constexpr std::size_t kPackedBlock = std::size_t{16} << 10;

}  // namespace

struct ByteStream::Impl {
  struct FileCloser {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::unique_ptr<std::FILE, FileCloser> file;
  std::string_view memory;
  std::uint64_t consumed = 0;
  std::uint64_t total = 0;
  bool damaged = false;
  bool started = false;
  std::unique_ptr<GzipInflater> inflater;  ///< none: the input is no gzip
  bool in_member = false;
  std::vector<char> packed;     ///< read from the file, not yet handed on
  std::size_t packed_begin = 0;
  std::size_t packed_end = 0;

  std::size_t read_raw(char* out, std::size_t size) {
    std::size_t count = 0;
    if (file) {
      count = std::fread(out, 1, size, file.get());
      if (count < size && std::ferror(file.get()) != 0) damaged = true;
    } else {
      count = std::min(size, memory.size());
      if (count > 0) std::memcpy(out, memory.data(), count);
      memory.remove_prefix(count);
    }
    consumed += count;
    return count;
  }

  void start() {
    started = true;
    packed.resize(kPackedBlock);
    packed_end = read_raw(packed.data(), packed.size());
    const auto byte = [this](std::size_t i) { return static_cast<unsigned char>(packed[i]); };
    if (packed_end >= 2 && byte(0) == 0x1f && byte(1) == 0x8b) {
      inflater = gzip_libraries().front().make();
    }
  }

  bool refill_packed() {
    if (packed_begin < packed_end) return true;
    packed_begin = 0;
    packed_end = read_raw(packed.data(), packed.size());
    return packed_end > 0;
  }

  std::size_t read_plain(char* out, std::size_t size) {
    const std::size_t held = std::min(size, packed_end - packed_begin);
    if (held > 0) std::memcpy(out, packed.data() + packed_begin, held);
    packed_begin += held;
    return held == size ? held : held + read_raw(out + held, size - held);
  }

  /// A gzip file may hold several members, one after another; bytes that are none end it.
  bool next_member() {
    if (!refill_packed()) return false;
    if (static_cast<unsigned char>(packed[packed_begin]) != 0x1f) return false;
    inflater->start_member();
    return in_member = true;
  }

  std::size_t read_packed(char* out, std::size_t size) {
    std::size_t produced = 0;
    while (produced < size && !damaged) {
      if (!in_member && !next_member()) break;
      static_cast<void>(refill_packed());  // at the end of the input, what is held back comes
      const GzipInflater::Step step =
          inflater->step({packed.data() + packed_begin, packed_end - packed_begin},
                         {out + produced, size - produced});
      packed_begin += step.taken;
      produced += step.made;
      in_member = step.status == GzipInflater::Status::kOpen;
      const bool cut = in_member && step.taken == 0 && step.made == 0;
      if (cut || step.status == GzipInflater::Status::kDamaged) damaged = true;
    }
    return produced;
  }
};

ByteStream::ByteStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ByteStream::ByteStream(ByteStream&&) noexcept = default;
ByteStream& ByteStream::operator=(ByteStream&&) noexcept = default;
ByteStream::~ByteStream() = default;

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
  auto impl = std::make_unique<Impl>();
  impl->file.reset(std::fopen(path.c_str(), "rb"));
  if (!impl->file) {
    return fail(path.string(), "", std::string("cannot be opened: ") + std::strerror(errno));
  }
  std::setvbuf(impl->file.get(), nullptr, _IONBF, 0);
  const auto size = std::filesystem::file_size(path, code);
  impl->total = code ? 0 : size;
  return ByteStream(std::move(impl));
}

ByteStream ByteStream::from_memory(std::string_view text) {
  auto impl = std::make_unique<Impl>();
  impl->memory = text;
  impl->total = text.size();
  return ByteStream(std::move(impl));
}

std::size_t ByteStream::read(char* out, std::size_t size) {
  if (!impl_->started) impl_->start();
  return impl_->inflater ? impl_->read_packed(out, size) : impl_->read_plain(out, size);
}

bool ByteStream::packed() const { return impl_->inflater != nullptr; }
bool ByteStream::damaged() const { return impl_->damaged; }
std::uint64_t ByteStream::consumed() const { return impl_->consumed; }
std::uint64_t ByteStream::total() const { return impl_->total; }

namespace {

/// Larger blocks are up to 5 % faster, and are what the peak of memory of small traces consists of.
constexpr std::size_t kReadBytes = std::size_t{32} << 10;

}  // namespace

TextWindow::TextWindow(ByteStream& source, std::size_t limit, std::function<void()> on_block)
    : source_(source), on_block_(std::move(on_block)), buffer_(2 * kReadBytes), limit_(limit) {}

bool TextWindow::more() {
  const std::size_t held = end_ - begin_;
  if (ended_ || held >= limit_) return false;
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, held);
    begin_ = 0;
    end_ = held;
  }
  if (buffer_.size() - end_ < kReadBytes) buffer_.resize(2 * buffer_.size());
  const std::size_t count = source_.read(buffer_.data() + end_, kReadBytes);
  end_ += count;
  if (count == 0) ended_ = true;
  if (on_block_) on_block_();
  return count > 0;
}

void TextWindow::advance(std::size_t count) {
  begin_ += count;
  offset_ += count;
}

}  // namespace bubblesim::traces
