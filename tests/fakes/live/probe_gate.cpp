// In the gate's place behind the hooks, for tests of the hooks alone: writes what it is told into
// the file BUBBLESIM_PROBE, "KIND BLOCKS THREADS OPERATIONS", and lets a launch go on once the file
// BUBBLESIM_PROBE_HOLD, if named, is there (or after 20 s).
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <unistd.h>

#include "capture/live/interpose/gate_seam.hpp"

namespace bubblesim::capture::interpose {
namespace {

void write_line(const std::string& line) {
  const int file = ::open(std::getenv("BUBBLESIM_PROBE"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC,
                          0600);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(file, line.data(), line.size());
  ::close(file);
}

}  // namespace

bool gate_is_wanted() noexcept {
  static const bool wanted = std::getenv("BUBBLESIM_PROBE") != nullptr;
  return wanted;
}

void before_launch(SeenLaunch& launch) noexcept {
  constexpr const char* kKinds[] = {"kernel", "collective", "copy", "memset"};
  write_line(std::string(kKinds[static_cast<int>(launch.info.kind)]) + " " +
             std::to_string(launch.info.blocks) + " " +
             std::to_string(launch.info.threads_per_block) + " " +
             std::to_string(launch.info.operations) + (launch.per_thread ? " own\n" : "\n"));
  const char* const hold = std::getenv("BUBBLESIM_PROBE_HOLD");
  for (int i = 0; hold != nullptr && i < 20'000 && ::access(hold, F_OK) != 0; ++i) ::usleep(1000);
}

void context_ends(Handle) noexcept {}

void after_launch(const SeenLaunch&, CuResult result) noexcept {
  if (result != kCuSuccess) write_line("refused\n");
}

}  // namespace bubblesim::capture::interpose
