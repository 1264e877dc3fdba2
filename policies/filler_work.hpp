// The GPU time of fillers' outstanding launches: each counts with the time that the same kernel
// took before. Fillers share the GPU, so their times add up.
#pragma once

#include <algorithm>
#include <cstddef>
#include <ranges>
#include <vector>

#include "policies/seen_kernel_times.hpp"
#include "sim/policy/policy.hpp"

namespace bubblesim::policies {

class FillerWork {
 public:
  /// A kernel that was never seen to end counts `unknown`.
  FillerWork(std::size_t clients, Duration unknown) : unknown_(unknown), queues_(clients) {}

  [[nodiscard]] Duration estimate(const policy::LaunchInfo& launch) const {
    return times_.time_of(kernel_key(launch)).value_or(unknown_);
  }

  void pass(const policy::LaunchInfo& launch, policy::Instant now) {
    const Duration span = estimate(launch);
    queues_[launch.client.index()].push_back(
        {launch.launch, kernel_key(launch), launch.operations, span, now});
    ends_ = std::max(ends_, now) + span;
    ++launches_;
  }

  /// How long the kernel takes at least, if a launch has ended; else 0.
  Duration complete(const policy::CompletionInfo& completion, policy::Instant now) {
    Queue& queue = queues_[completion.client.index()];
    const auto launch = std::ranges::find(queue, completion.launch, &Launch::number);
    if (launch == queue.end() || --launch->operations > 0) return {};
    // A launch begins after the client's previous launch, or at its own call.
    const Duration shortest =
        times_.observe(launch->key, now - std::max(launch->passed, queue.last_end));
    queue.last_end = now;
    queue.erase(launch);
    --launches_;
    plan_end(now);
    return shortest;
  }

  void gone(ClientId client, policy::Instant now) {
    launches_ -= queues_[client.index()].size();
    queues_[client.index()].clear();
    plan_end(now);
  }

  /// How long the fillers' launches keep the GPU busy from now on, if nothing else runs.
  [[nodiscard]] Duration left(policy::Instant now) const {
    return launches_ == 0 ? Duration{} : std::max(Duration{}, ends_ - now);
  }
  [[nodiscard]] bool empty() const { return launches_ == 0; }
  [[nodiscard]] std::size_t launches_of(ClientId client) const {
    return queues_[client.index()].size();
  }

 private:
  struct Launch {
    std::uint64_t number = 0;
    std::uint64_t key = 0;
    std::uint32_t operations = 0;
    Duration span{};
    policy::Instant passed{};
  };
  struct Queue : std::vector<Launch> {
    policy::Instant last_end{};
  };

  void plan_end(policy::Instant now) {
    ends_ = now;
    for (const Queue& queue : queues_) {
      for (const Launch& launch : queue) ends_ += launch.span;
    }
  }

  Duration unknown_;
  SeenKernelTimes times_;
  std::vector<Queue> queues_;
  std::size_t launches_ = 0;
  policy::Instant ends_{};
};

}  // namespace bubblesim::policies
