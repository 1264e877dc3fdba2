// The content hash of a run: equal keys mean equal results.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "sim/base/result.hpp"

namespace bubblesim::run {

/// Hashes of files, each read once a process: content, not name or date. Thread-safe.
class FileHashes {
 public:
  [[nodiscard]] Result<std::string> of(const std::string& path);
  // A folder's hash is that of its files' names and contents, in name order.
 private:
  std::map<std::string, std::string, std::less<>> known_;
};

/// Key of `config` (canonical JSON, seed included): of its text with every path replaced by the
/// content of what it names, of the configs that it names by id, and of `program_version`.
[[nodiscard]] Result<std::string> run_key(std::string_view config, std::string_view program_version,
                                          FileHashes& files);

}  // namespace bubblesim::run
