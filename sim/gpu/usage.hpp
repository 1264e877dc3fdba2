// Counts each client's use of the GPU.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/gpu/gpu.hpp"

namespace bubblesim::gpu {

/// The usage counters of one GPU.
class Usage {
 public:
  void add_client() { clients_.emplace_back(); }
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

  [[nodiscard]] ClientUsage usage_of(ClientId client) const {
    const Client& used = clients_[client.index()];
    return {.sm_seconds = used.sm_ns * 1e-9, .resets = used.resets};
  }

 private:
  struct Client {
    double sm_ns = 0;
    std::uint64_t resets = 0;
  };

  std::vector<Client> clients_;
  std::vector<double>* sm_log_ = nullptr;
};

}  // namespace bubblesim::gpu
