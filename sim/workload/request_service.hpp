// The front of a program that serves requests: takes requests as they arrive, and decides the
// program's next work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/serving/scheduler.hpp"

namespace bubblesim::workload {

/// A request that was served.
struct ServedRequest {
  std::uint64_t number = 0;  ///< as given to arrive(); offline: 0
  SimTime arrival{};
  SimTime start{};           ///< of its batch, or of its first iteration
  SimTime end{};
  std::optional<SimTime> first_token{};  ///< continuous batching
  std::uint64_t output_tokens = 0;       ///< of an engine's request; 0 for other programs
};

/// Told of every served request.
class ServiceListener {
 public:
  virtual ~ServiceListener() = default;
  virtual void on_served(const ServedRequest& request) = 0;
  /// A pass has ended, and with it `requests` requests.
  virtual void on_batch(std::uint64_t requests, SimTime now) = 0;
  /// Called before on_batch() by a language-model engine: the step's times between tokens.
  virtual void on_token_gaps(std::span<const Duration> /*gaps*/, SimTime /*now*/) {}
  /// A language-model engine has scheduled a step, or found nothing to schedule: until the next
  /// call its sequences hold the blocks that its schedulers report.
  virtual void on_scheduled(SimTime /*now*/) {}
};

class RequestService {
 public:
  virtual ~RequestService() = default;
  /// From now on there is always a next request.
  virtual void start_offline(SimTime now) = 0;
  /// A request arrives and waits. Once all requests of the instant wait, serve_waiting() must be
  /// called, so that they can start together.
  virtual void enqueue(std::uint64_t number, SimTime now) = 0;
  /// Starts the program on waiting requests, unless it is running.
  virtual void serve_waiting(SimTime now) = 0;
  /// The only request of its instant arrives.
  void arrive(std::uint64_t number, SimTime now) { arrive_together(number, 1, now); }
  /// All requests of an instant arrive, `count` of them, numbered from `first` on.
  void arrive_together(std::uint64_t first, std::uint64_t count, SimTime now) {
    for (std::uint64_t i = 0; i < count; ++i) enqueue(first + i, now);
    serve_waiting(now);
  }
  /// Called by the run's observer.
  virtual void pass_finished(SimTime now) = 0;
  /// Online: the oldest running request (a language-model server: of this member); nothing if none
  /// runs. Offline: nothing.
  [[nodiscard]] virtual std::optional<std::uint64_t> serving(std::size_t member) const = 0;
  /// Requests that arrived and wait.
  [[nodiscard]] virtual std::size_t queued() const = 0;
  /// Requests that have not been served, oldest first; of a language-model engine with their first
  /// tokens.
  [[nodiscard]] virtual std::vector<serving::UnfinishedRequest> unfinished() const = 0;
  /// The schedulers of a language-model engine, one for each data-parallel member; else empty.
  [[nodiscard]] virtual std::span<const serving::Scheduler* const> schedulers() const {
    return {};
  }
};

}  // namespace bubblesim::workload
