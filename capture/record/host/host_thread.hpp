// The number that the system gives a thread, without a system call each time.
#pragma once

namespace bubblesim::capture {

/// After a fork: the numbers that threads remember are those of the parent. Async-signal-safe.
void forget_host_threads() noexcept;

}  // namespace bubblesim::capture
