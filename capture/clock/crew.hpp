// Threads that take part in a clock; the thread that starts and awaits them takes part too.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "capture/clock/host_clock.hpp"

namespace bubblesim::capture {

class Crew {
 public:
  /// `clock` outlives the crew.
  explicit Crew(HostClock& clock);
  /// Waits, as wait() does, until every thread has ended.
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  /// Starts a thread that joins the clock and then runs `work`; returns when it has joined. The
  /// calling thread keeps its turn.
  void start(Turn turn, std::function<void()> work);

  /// Waits, in the clock's time, until every thread has ended.
  void wait();

 private:
  struct Progress;
  HostClock& clock_;
  std::unique_ptr<Progress> progress_;
  std::vector<std::thread> threads_;
};

}  // namespace bubblesim::capture
