#include "sim/sweep/content_hash.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "sim/base/input_file.hpp"

namespace bubblesim::sweep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBlock = std::size_t{1} << 20;

/// Hashes what it is given in turn.
class Hasher {
 public:
  Hasher() { XXH3_128bits_reset(&state_); }
  void add(std::string_view bytes) { XXH3_128bits_update(&state_, bytes.data(), bytes.size()); }
  [[nodiscard]] std::string digits() const {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_));
    std::string out;
    for (const unsigned char byte : canonical.digest) {
      out += "0123456789abcdef"[byte >> 4U];
      out += "0123456789abcdef"[byte & 15U];
    }
    return out;
  }

 private:
  XXH3_state_t state_;
};

Result<std::string> hash_of_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  Hasher hasher;
  std::vector<char> block(kBlock);
  while (file) {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    hasher.add({block.data(), static_cast<std::size_t>(file.gcount())});
  }
  if (!file.eof()) return fail(path.string(), {}, "cannot be read");
  return hasher.digits();
}

Result<std::string> hash_of_folder(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code fault;
  for (fs::recursive_directory_iterator entry(folder, fault), end; !fault && entry != end;
       entry.increment(fault)) {
    if (is_hidden_file(entry->path())) {
      entry.disable_recursion_pending();
      continue;
    }
    if (entry->is_regular_file(fault)) files.push_back(entry->path());
  }
  if (fault) return fail(folder.string(), {}, "cannot be listed: " + fault.message());
  std::sort(files.begin(), files.end());
  Hasher hasher;
  for (const fs::path& file : files) {
    BUBBLESIM_ASSIGN_OR_RETURN(const std::string hash, hash_of_file(file));
    hasher.add(file.lexically_relative(folder).string() + '\n' + hash + '\n');
  }
  return hasher.digits();
}

}  // namespace

std::string hash_text(std::string_view bytes) {
  Hasher hasher;
  hasher.add(bytes);
  return hasher.digits();
}

Result<std::string> FileHashes::hash(const std::string& path) {
  const std::scoped_lock lock(mutex_);
  if (const auto known = known_.find(path); known != known_.end()) return known->second;
  std::error_code fault;
  BUBBLESIM_ASSIGN_OR_RETURN(std::string hash, fs::is_directory(path, fault)
                                                   ? hash_of_folder(path)
                                                   : hash_of_file(path));
  known_.emplace(path, hash);
  return hash;
}

}  // namespace bubblesim::sweep
