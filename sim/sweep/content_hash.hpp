// Hashes of contents: equal hashes mean equal bytes.
//
// The hash is XXH3-128 (libxxhash): it reads traces at memory speed, and only among 2^64 runs would
// two share a key by accident. It protects against change, not malice.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "sim/base/result.hpp"

namespace bubblesim::sweep {

/// 32 hexadecimal digits, the same on every machine.
[[nodiscard]] std::string hash_text(std::string_view bytes);

/// Hashes of files, each read once by a process: of content, not of name or date. Thread-safe.
class FileHashes {
 public:
  /// The hash of a file or folder. A folder's hash covers the relative names and contents of all
  /// files below it, in the order of names. Fault: `path` cannot be read.
  [[nodiscard]] Result<std::string> hash(const std::string& path);

 private:
  std::mutex mutex_;
  std::map<std::string, std::string, std::less<>> known_;
};

}  // namespace bubblesim::sweep
