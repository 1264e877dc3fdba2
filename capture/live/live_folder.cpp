#include "capture/live/live_folder.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace bubblesim::capture {

Result<std::unique_ptr<LiveFolder>> LiveFolder::make(const std::string& parent,
                                                     std::uint32_t clients) {
  BUBBLESIM_ASSIGN_OR_RETURN(auto scratch, ScratchFolder::make(parent, "fill"));
  std::unique_ptr<LiveFolder> folder(new LiveFolder(std::move(scratch)));
  for (std::uint32_t client = 0; client < clients; ++client) {
    BUBBLESIM_RETURN_IF_ERROR(folder->add_counts(client));
  }
  return folder;
}

LiveFolder::~LiveFolder() {
  for (LiveCounts* counts : counts_) ::munmap(counts, sizeof(LiveCounts));
}

Result<void> LiveFolder::add_counts(std::uint32_t client) {
  const std::string path = folder_->path() + "/client" + std::to_string(client);
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  void* mapped = MAP_FAILED;
  // All counts begin as zeros.
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
  std::ifstream file(path() + "/" + kNotesFile);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

}  // namespace bubblesim::capture
