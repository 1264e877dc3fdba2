// The recorder's side of capture/record/host/host_event.hpp: switches what threads of the job say
// on and off, and takes it in. One recording at a time.
#pragma once

#include "capture/record/host/host_event_queue.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::capture {

/// The queue, made at its first use; it lives as long as the process, for a thread of the job may
/// hold on to it at any time. Throws std::bad_alloc.
[[nodiscard]] HostEventQueue& host_queue();
/// From now on events are taken. `offset`: of CUPTI's clock to CLOCK_REALTIME.
void open_host_link(Duration offset) noexcept;
void adjust_host_link(Duration offset) noexcept;
/// Events are ignored from now on. Async-signal-safe.
void close_host_link() noexcept;

}  // namespace bubblesim::capture
