// Counts each client's use of the GPU.
//
// Busy time is the length of the union of intervals in which at least one operation runs: a
// kernel runs while it has resident blocks and its context has the GPU, a copy while a copy
// engine serves it. Sums are integer nanoseconds; SM time is an integral, so a double.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/base/time.hpp"
#include "sim/gpu/gpu.hpp"

namespace bubblesim::gpu {

/// The time during which a count is above zero.
class BusyClock {
 public:
  void begin(SimTime now) {
    if (running_++ == 0) since_ = now;
  }
  void end(SimTime now) {
    if (--running_ == 0) total_ += now - since_;
  }
  [[nodiscard]] Duration total(SimTime now) const {
    return running_ > 0 ? total_ + (now - since_) : total_;
  }

 private:
  std::uint32_t running_ = 0;
  SimTime since_{};
  Duration total_{};
};

/// The usage counters of one GPU.
class Usage {
 public:
  void add_client() { clients_.emplace_back(); }

  /// An operation of the client begins or resumes running.
  void begin(ClientId client, program::WorkKind kind, SimTime now);
  /// A running operation of the client ends, or is suspended.
  void end(ClientId client, program::WorkKind kind, SimTime now);
  /// An operation of the client has completed.
  void count(ClientId client, program::WorkKind kind);
  /// A kernel of the client starts over.
  void count_reset(ClientId client) { ++clients_[client.index()].resets; }
  /// Adds SMs that the client's kernels cover, times nanoseconds; an SM with several kernels counts
  /// once.
  void add_sm_ns(ClientId client, double sm_ns) {
    clients_[client.index()].sm_ns += sm_ns;
    if (sm_log_ != nullptr) sm_log_->push_back(sm_ns);
  }
  /// Gpu::log_sm_ns().
  void log_sm_ns(std::vector<double>* log) { sm_log_ = log; }

  [[nodiscard]] ClientUsage usage_of(ClientId client, SimTime now) const;
  [[nodiscard]] Duration busy(SimTime now) const { return busy_.total(now); }
  [[nodiscard]] Duration busy_without_collectives(SimTime now) const {
    return busy_without_collectives_.total(now);
  }

 private:
  struct Client {
    BusyClock busy;
    double sm_ns = 0;
    std::uint64_t kernels = 0;
    std::uint64_t copies = 0;
    std::uint64_t resets = 0;
  };

  std::vector<Client> clients_;
  BusyClock busy_;
  BusyClock busy_without_collectives_;
  std::vector<double>* sm_log_ = nullptr;
};

}  // namespace bubblesim::gpu
