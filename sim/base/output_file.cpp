#include "sim/base/output_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <streambuf>
#include <system_error>
#include <vector>

namespace bubblesim {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBufferBytes = std::size_t{1} << 16;
constexpr unsigned kMode = 0666;  // less what the user's mask takes away

tl::unexpected<Error> unwritable(const std::string& path, int reason) {
  std::string text = "cannot be written";
  if (reason != 0) text += std::string(": ") + std::strerror(reason);
  return fail(path, {}, text);
}

}  // namespace

/// Remembers why the first write failed, which a std::filebuf does not.
class OutputFile::Buffer final : public std::streambuf {
 public:
  explicit Buffer(const OutputTarget& target) : bytes_(kBufferBytes) {
    file_ = target.partial.empty()
                ? ::open(target.path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC)
                : open_new_file(target.partial, kMode);
    if (file_ < 0) reason_ = errno;
    setp(bytes_.data(), bytes_.data() + bytes_.size());
  }
  ~Buffer() override { close(); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  /// Why something failed; 0: nothing did.
  [[nodiscard]] int reason() const { return reason_; }

  void close() {
    if (file_ < 0) return;
    (void)write_out();
    if (::close(file_) != 0 && reason_ == 0) reason_ = errno;
    file_ = -1;
  }

 private:
  int_type overflow(int_type letter) override {
    if (!write_out()) return traits_type::eof();
    if (!traits_type::eq_int_type(letter, traits_type::eof())) {
      sputc(traits_type::to_char_type(letter));
    }
    return traits_type::not_eof(letter);
  }
  int sync() override { return write_out() ? 0 : -1; }

  bool write_out() {
    const char* at = pbase();
    while (reason_ == 0 && at < pptr()) {
      const ssize_t written = ::write(file_, at, static_cast<std::size_t>(pptr() - at));
      if (written >= 0) {
        at += written;
      } else if (errno != EINTR) {
        reason_ = errno;
      }
    }
    setp(bytes_.data(), bytes_.data() + bytes_.size());
    return reason_ == 0;
  }

  std::vector<char> bytes_;
  int file_ = -1;
  int reason_ = 0;
};

OutputFile::OutputFile(std::string path, OutputTarget target)
    : path_(std::move(path)), target_(std::move(target)),
      buffer_(std::make_unique<Buffer>(target_)),
      stream_(std::make_unique<std::ostream>(buffer_.get())) {}

OutputFile::OutputFile(OutputFile&&) noexcept = default;
OutputFile& OutputFile::operator=(OutputFile&&) noexcept = default;

Result<OutputTarget> output_target(const std::string& path) {
  std::error_code fault;  // also where nothing of the name is there, which is no fault
  fs::path target = path;
  if (fs::is_symlink(target, fault)) {
    target = fs::weakly_canonical(target, fault);
    if (fault) return fail(path, {}, "cannot be written: " + fault.message());
  }
  const fs::file_status status = fs::status(target, fault);
  if (fs::is_directory(status)) return unwritable(path, EISDIR);
  const bool renames = !fs::exists(status) || fs::is_regular_file(status);
  return OutputTarget{target.string(), renames ? target.string() + ".partial" : ""};
}

int open_new_file(const std::string& path, unsigned rights) {
  ::unlink(path.c_str());
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, rights);
}

Result<OutputFile> OutputFile::create(const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(OutputTarget target, output_target(path));
  OutputFile file(path, std::move(target));
  if (const int reason = file.buffer_->reason(); reason != 0) {
    file.target_.partial.clear();  // it may be another's
    return unwritable(path, reason);
  }
  return file;
}

OutputFile::~OutputFile() {
  if (!buffer_ || target_.partial.empty()) return;
  buffer_->close();
  std::error_code ignored;
  fs::remove(target_.partial, ignored);
}

Result<void> OutputFile::finish() {
  buffer_->close();
  // The destructor removes what there is of a file that is not whole.
  if (buffer_->reason() != 0) return unwritable(path_, buffer_->reason());
  std::error_code fault;
  if (!target_.partial.empty()) fs::rename(target_.partial, target_.path, fault);
  if (fault) return fail(path_, {}, "cannot be written: " + fault.message());
  stream_.reset();
  buffer_.reset();
  return {};
}

Result<void> write_whole_file(const std::string& path, const std::string& text) {
  BUBBLESIM_ASSIGN_OR_RETURN(OutputFile file, OutputFile::create(path));
  file.stream().write(text.data(), static_cast<std::streamsize>(text.size()));
  return file.finish();
}

Result<std::unique_ptr<ScratchFolder>> ScratchFolder::make(const std::string& parent,
                                                           const std::string& purpose) {
  std::string path = (fs::path(parent) / ("bubblesim-" + purpose + "-XXXXXX")).string();
  if (::mkdtemp(path.data()) == nullptr) {
    return fail(parent, {}, std::string("no folder can be made in it: ") + std::strerror(errno));
  }
  return std::unique_ptr<ScratchFolder>(new ScratchFolder(std::move(path)));
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;  // what stays is where such things are swept up
  fs::remove_all(path_, ignored);
}

}  // namespace bubblesim
