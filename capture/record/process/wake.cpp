#include "capture/record/process/wake.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <ctime>

namespace bubblesim::capture {

Wake::Wake() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Wake::~Wake() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void Wake::notify() noexcept {
  const std::uint64_t increment = 1;
  // Fails only when the counter is full: then the sleeper is awake already.
  if (::write(descriptor_, &increment, sizeof(increment)) < 0) return;
}

void Wake::wait(Duration longest) noexcept {
  const std::int64_t ns = std::max<std::int64_t>(to_ns(longest), 0);
  const timespec limit{static_cast<time_t>(ns / 1'000'000'000),
                       static_cast<long>(ns % 1'000'000'000)};
  pollfd waiting{descriptor_, POLLIN, 0};
  if (::ppoll(&waiting, 1, &limit, nullptr) <= 0) return;
  std::uint64_t count = 0;
  if (::read(descriptor_, &count, sizeof(count)) < 0) return;
}

}  // namespace bubblesim::capture
