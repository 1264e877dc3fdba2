#include "capture/replay/cuda/device_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace bubblesim::capture::cuda {

DeviceLock::DeviceLock(const std::string& folder, const std::string& uuid, Duration patience,
                       const std::function<void()>& waiting) {
  if (folder.empty()) return;
  const std::string path = folder + "/bubblesim-measures-" + uuid;
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  // In a folder such as /tmp Linux lets nobody create what another user's file is already.
  if (file_ < 0) file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file_ < 0) return;
  auto say = std::chrono::steady_clock::now();
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!(held_ = ::flock(file_, LOCK_EX | LOCK_NB) == 0)) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= until) return;
    if (waiting && now >= say) {
      waiting();
      say = now + std::chrono::seconds(1);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

DeviceLock::~DeviceLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace bubblesim::capture::cuda
