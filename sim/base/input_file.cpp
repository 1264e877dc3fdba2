#include "sim/base/input_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace bubblesim {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 16;

class Descriptor {
 public:
  explicit Descriptor(const std::string& path)
      : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Descriptor() {
    if (file_ >= 0) ::close(file_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] bool is_open() const { return file_ >= 0; }
  /// As read(2), but for interruptions.
  ssize_t read(std::array<char, kBlockBytes>& block) const {
    ssize_t count = 0;
    do count = ::read(file_, block.data(), block.size());
    while (count < 0 && errno == EINTR);
    return count;
  }

 private:
  int file_;
};

tl::unexpected<Error> unreadable(const std::string& path, int reason) {
  return fail(path, {}, std::string("cannot be read: ") + std::strerror(reason));
}

}  // namespace

std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

Result<std::string> read_text_file(const std::string& path) {
  const Descriptor file(path);
  if (!file.is_open()) return unreadable(path, errno);
  std::string bytes;
  std::array<char, kBlockBytes> block;
  for (;;) {
    const ssize_t count = file.read(block);
    if (count < 0) return unreadable(path, errno);
    if (count == 0) break;
    bytes.append(block.data(), static_cast<std::size_t>(count));
  }
  bytes.erase(0, bytes.size() - without_byte_order_mark(bytes).size());
  return bytes;
}

}  // namespace bubblesim
