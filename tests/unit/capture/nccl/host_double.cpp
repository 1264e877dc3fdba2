#include "tests/unit/capture/nccl/host_double.hpp"

#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace bubblesim::capture {

HostDouble& host_double() {
  static HostDouble host;
  return host;
}

std::vector<HostEvent> HostDouble::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(events_, {});
}

void HostDouble::put(HostEvent&& event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
}

void HostDouble::reset() {
  recording = true;
  now_ns = 1'000;
  step_ns = 1;
  (void)take();
}

bool host_recording() noexcept { return host_double().recording; }

TraceTime host_now() noexcept {
  HostDouble& host = host_double();
  return TraceTime{Duration{host.now_ns.fetch_add(host.step_ns)}};
}

void emit_host_event(HostEvent&& event) noexcept {
  if (host_recording()) host_double().put(std::move(event));
}

std::uint64_t host_thread_id() noexcept {
  return static_cast<std::uint64_t>(::syscall(SYS_gettid));
}

}  // namespace bubblesim::capture
