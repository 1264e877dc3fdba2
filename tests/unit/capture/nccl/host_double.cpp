#include "tests/unit/capture/nccl/host_double.hpp"

#include <sys/syscall.h>
#include <unistd.h>

namespace bubblesim::capture {

HostDouble& host_double() {
  static HostDouble host;
  return host;
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
