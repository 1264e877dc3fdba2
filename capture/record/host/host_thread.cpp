
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "capture/record/host/host_event.hpp"

namespace bubblesim::capture {
namespace {

std::atomic<std::uint32_t> generation{1};

struct Remembered {
  std::uint64_t thread = 0;
  std::uint32_t generation = 0;
};
thread_local Remembered remembered;

}  // namespace

std::uint64_t host_thread_id() noexcept {
  const std::uint32_t now = generation.load(std::memory_order_relaxed);
  if (remembered.generation != now) {
    remembered = {static_cast<std::uint64_t>(::syscall(SYS_gettid)), now};
  }
  return remembered.thread;
}

void forget_host_threads() noexcept { generation.fetch_add(1, std::memory_order_relaxed); }

}  // namespace bubblesim::capture
