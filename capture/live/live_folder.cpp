#include "capture/live/live_folder.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace bubblesim::capture {

namespace fs = std::filesystem;

Result<std::unique_ptr<LiveFolder>> LiveFolder::make(const std::string& parent,
                                                     std::uint32_t clients) {
  std::string name = (fs::path(parent) / "bubblesim-fill-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    return fail(parent, {}, std::string("no folder can be made in it: ") + std::strerror(errno));
  }
  std::unique_ptr<LiveFolder> folder(new LiveFolder(name));
  for (std::uint32_t client = 0; client < clients; ++client) {
    BUBBLESIM_RETURN_IF_ERROR(folder->add_counts(client));
  }
  return folder;
}

LiveFolder::~LiveFolder() {
  for (LiveCounts* counts : counts_) ::munmap(counts, sizeof(LiveCounts));
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

Result<void> LiveFolder::add_counts(std::uint32_t client) {
  const std::string path = path_ + "/client" + std::to_string(client);
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  void* mapped = MAP_FAILED;
  // Zeros are what all counts begin with.
  if (file >= 0 && ::ftruncate(file, sizeof(LiveCounts)) == 0) {
    mapped = ::mmap(nullptr, sizeof(LiveCounts), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  const int code = errno;
  if (file >= 0) ::close(file);
  if (mapped == MAP_FAILED) return fail(path, {}, std::string("cannot be made: ") +
                                                      std::strerror(code));
  counts_.push_back(static_cast<LiveCounts*>(mapped));
  return {};
}

std::vector<std::string> LiveFolder::notes() const {
  std::vector<std::string> lines;
  std::ifstream in(path_ + "/" + kNotesFile);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace bubblesim::capture
