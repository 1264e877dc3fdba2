#include "sim/base/input_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>

#include "sim/base/nearest.hpp"

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

std::string file_uri(const std::string& path) {
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  static constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-";
  std::string out = "file://";
  for (const char c : std::filesystem::absolute(path).string()) {
    const auto byte = static_cast<unsigned char>(c);
    if (kPlain.find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += '%';
      out += kHex[byte >> 4U];
      out += kHex[byte & 15U];
    }
  }
  return out;
}

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Takes the digits that `text` begins with off it; leading zeros are not returned.
std::string_view take_number(std::string_view& text) {
  const std::size_t length = std::min(text.find_first_not_of("0123456789"), text.size());
  std::string_view digits = text.substr(0, length);
  text.remove_prefix(length);
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  return digits;
}

bool name_less(std::string_view a, std::string_view b) {
  std::string_view rest_a = a;
  std::string_view rest_b = b;
  while (!rest_a.empty() && !rest_b.empty()) {
    if (is_digit(rest_a.front()) && is_digit(rest_b.front())) {
      const std::string_view number_a = take_number(rest_a);
      const std::string_view number_b = take_number(rest_b);
      if (number_a.size() != number_b.size()) return number_a.size() < number_b.size();
      if (number_a != number_b) return number_a < number_b;
    } else {
      const auto byte_a = static_cast<unsigned char>(rest_a.front());
      const auto byte_b = static_cast<unsigned char>(rest_b.front());
      if (byte_a != byte_b) return byte_a < byte_b;
      rest_a.remove_prefix(1);
      rest_b.remove_prefix(1);
    }
  }
  if (rest_a.empty() != rest_b.empty()) return rest_a.empty();
  return a < b;
}

}  // namespace

bool natural_less(const std::filesystem::path& a, const std::filesystem::path& b) {
  return std::lexicographical_compare(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const auto& x, const auto& y) { return name_less(x.native(), y.native()); });
}

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".json";

}  // namespace

bool is_file_path(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(kSuffix);
}

std::string data_file_id(const std::string& path) { return fs::path(path).stem().string(); }

bool is_hidden_file(const fs::path& path) { return path.filename().string().starts_with('.'); }

Result<std::vector<std::string>> list_data_files(const std::string& folder,
                                                 std::string_view what) {
  std::error_code code;
  fs::directory_iterator entries(folder, code);
  std::vector<std::string> paths;
  while (!code && entries != fs::directory_iterator()) {
    const fs::path& path = entries->path();
    if (path.extension() == kSuffix && !is_hidden_file(path)) paths.push_back(path.string());
    entries.increment(code);
  }
  if (code) {
    return fail(folder, {}, "the folder of " + std::string(what) +
                                " files cannot be read: " + code.message());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Result<std::string> find_data_file(std::string_view name, const std::string& folder,
                                   std::string_view what) {
  if (is_file_path(name)) return std::string(name);
  BUBBLESIM_ASSIGN_OR_RETURN(const auto paths, list_data_files(folder, what));
  std::vector<std::string> ids;
  for (const std::string& path : paths) {
    ids.push_back(data_file_id(path));
    if (ids.back() == name) return path;
  }
  return fail(folder, {}, unknown_name_message(what, name, ids));
}

}  // namespace bubblesim
