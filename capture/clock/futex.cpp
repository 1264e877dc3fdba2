#include "capture/clock/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <limits>

namespace bubblesim::capture {
namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

constexpr std::int64_t kSecond = 1'000'000'000;

}  // namespace

HostTime machine_now() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return HostTime{Duration{std::int64_t{now.tv_sec} * kSecond + now.tv_nsec}};
}

void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                HostTime deadline) noexcept {
  timespec until{};
  const std::int64_t ns = to_ns(deadline);
  if (ns < 0) return;
  until.tv_sec = ns / kSecond;
  until.tv_nsec = ns % kSecond;
  // Not FUTEX_PRIVATE_FLAG: the word is in memory of several processes. The bitset form takes an
  // absolute time of CLOCK_MONOTONIC.
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, value,
          deadline == HostTime::max() ? nullptr : &until, nullptr, FUTEX_BITSET_MATCH_ANY);
}

void futex_wake(const std::atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE, std::numeric_limits<int>::max(), nullptr, nullptr, 0);
}

}  // namespace bubblesim::capture
