// The content hash of a run: equal keys mean equal results.
//
// The hash is XXH3-128 (libxxhash): it reads traces as fast as memory gives them, and 2^64 runs
// would be needed for two to share a key by accident. It protects against change, not malice.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "sim/base/result.hpp"

namespace bubblesim::sweep {

/// 32 hexadecimal digits, the same on every machine.
[[nodiscard]] std::string hash_text(std::string_view bytes);

/// Hashes of files, each read once a process: content, not name or date. Thread-safe.
class FileHashes {
 public:
  /// A folder's hash is that of the relative names and contents of all files below, in the order of
  /// names. Fault: it cannot be read.
  [[nodiscard]] Result<std::string> hash(const std::string& path);

 private:
  std::mutex mutex_;
  std::map<std::string, std::string, std::less<>> known_;
};

/// All that decides a run but its seed and the program: the config (paths absolute) as canonical
/// JSON with each path replaced by the hash of what it names, and the hashes of the configs that it
/// names by id or that those name, in `configs` (holds devices/, models/ ...). A config that uses a
/// trace without naming a device depends on all of devices/. Faults, at pointers of the config:
/// what is not there, with the nearest name.
[[nodiscard]] CheckedResult<std::string> run_content(std::string_view config,
                                                     const std::string& configs,
                                                     FileHashes& files);

[[nodiscard]] std::string run_key(std::string_view content, std::uint64_t seed,
                                  std::string_view program_version);
/// 16 digits.
[[nodiscard]] std::string point_key(std::string_view content);

}  // namespace bubblesim::sweep
