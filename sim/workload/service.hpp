// An inference service on one GPU: a queue of requests in front of a program.
//
// Offline: there is always a next batch. Online: requests enter the queue as they arrive; a
// batch starts when the program is free and the batch is due (program::Batching). Batches run one
// after another.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/engine/engine.hpp"
#include "sim/program/batching.hpp"
#include "sim/workload/program_run.hpp"
#include "sim/workload/request_service.hpp"

namespace bubblesim::workload {

/// Does passes in the place of a service's program.
class PassTaker {
 public:
  virtual ~PassTaker() = default;
  /// Whether it takes the pass that begins now, whose end it tells as the program's observer would;
  /// false: the program runs.
  virtual bool take_pass(SimTime now, double factor) = 0;
};

class Service final : public RequestService, public engine::EventHandler {
 public:
  /// `run` was set up with Repeat::kOnePass; its observer must call pass_finished. `taker`: null:
  /// `run` has every pass.
  Service(engine::Engine& engine, ProgramRun& run, const program::Batching& batching,
          ServiceListener& listener, PassTaker* taker = nullptr);

  /// Makes the service an offline one: from now on there is always a next batch.
  void start_offline(SimTime now) override;
  void enqueue(std::uint64_t number, SimTime now) override;
  void serve_waiting(SimTime now) override;
  /// Called by the run's observer.
  void pass_finished(SimTime now) override;

  /// Online: the first request of the running batch; nothing if no batch runs.
  [[nodiscard]] std::optional<std::uint64_t> serving(std::size_t) const override;
  /// Requests that arrived and wait for a batch.
  [[nodiscard]] std::size_t queued() const override { return queue_.size(); }
  [[nodiscard]] std::vector<serving::UnfinishedRequest> unfinished() const override;

  void on_event(SimTime now) override;

 private:
  struct Waiting {
    std::uint64_t number;
    SimTime arrival;
  };

  void start_batch(std::size_t size, SimTime now);

  engine::Engine& engine_;
  ProgramRun& run_;
  program::Batching batching_;
  ServiceListener& listener_;
  PassTaker* taker_;
  engine::EntityId timer_;  ///< fires when a batch is due, after the arrivals of that instant
  std::deque<Waiting> queue_;
  std::vector<Waiting> batch_;
  SimTime batch_start_{};
  bool offline_ = false;
  bool busy_ = false;
};

}  // namespace bubblesim::workload
