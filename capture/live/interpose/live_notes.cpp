#include "capture/live/interpose/live_notes.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace bubblesim::capture::interpose {

LiveCounts& open_counts(const std::string& folder, const std::string& client) {
  static LiveCounts* const unread = new LiveCounts;
  if (folder.empty()) return *unread;
  const int file = ::open((folder + "/client" + client).c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return *unread;
  struct stat status{};
  void* mapped = MAP_FAILED;
  if (::fstat(file, &status) == 0 && status.st_size >= static_cast<off_t>(sizeof(LiveCounts))) {
    mapped = ::mmap(nullptr, sizeof(LiveCounts), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  ::close(file);
  return mapped == MAP_FAILED ? *unread : *static_cast<LiveCounts*>(mapped);
}

void note(const std::string& folder, const std::string& client, const std::string& what) {
  const std::string line = "client " + client + ": process " + std::to_string(::getpid()) + " (" +
                           program_invocation_short_name + ") " + what + "\n";
  int out = STDERR_FILENO;
  if (!folder.empty()) {
    out = ::open((folder + "/" + kNotesFile).c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC,
                 0600);
    if (out < 0) return;
  }
  // One write: lines of several processes do not mix.
  [[maybe_unused]] const ssize_t written = ::write(out, line.data(), line.size());
  if (out != STDERR_FILENO) ::close(out);
}

}  // namespace bubblesim::capture::interpose
