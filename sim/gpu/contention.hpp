// How much kernels of different clients slow each other when their blocks are resident together.
//
// Shares are fractions of the whole GPU's DRAM bandwidth and of all its issue slots. A kernel with
// memory boundness b (the fraction of its time that is bound by DRAM) runs, relative to alone, at
//
//   rate = 1 / (b * max(1, D) + (1 - b) * max(1, I)) / (1 + a * L)
//
// D, I: demand of all clients for DRAM bandwidth and issue slots; L: the other clients' demand
// for DRAM bandwidth, which stands in for their pressure on L2; a: ContentionSpec::l2_slowdown.
// The form is fluid sharing of each resource in proportion to demand; the L2 factor is that of
// iGniter (TPDS 2023). Kernels of one client never slow each other: where they ran together, their
// recorded durations say so already; so one client's demand is at most 1. Clients that share a
// MIG instance have `bandwidth` of the DRAM's, and D is their demand over that.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/gpu/kernel_profile.hpp"
#include "sim/hardware/gpu_spec.hpp"

namespace bubblesim::gpu {

/// Adds up demands, then tells each kernel its rate. One round: clear, add each, total, rate.
class Contention {
 public:
  Contention(const hardware::ContentionSpec& spec, std::uint32_t sm_count);

  void set_clients(std::size_t count) { clients_.resize(count); }
  /// Of the DRAM bandwidth that these clients have together, (0, 1]; at first 1.
  void set_bandwidth(double share) { bandwidth_ = share; }
  [[nodiscard]] double bandwidth() const { return bandwidth_; }
  void clear() { std::fill(clients_.begin(), clients_.end(), Demand{}); }
  /// Part of the SMs that a kernel sits on whose full wave is so many blocks. One of fewer blocks
  /// than SMs sits on that many SMs, one block each: the hardware spreads blocks before it stacks
  /// them.
  [[nodiscard]] double sm_share(std::uint64_t full_wave) const {
    return std::min(1.0, static_cast<double>(full_wave) / sm_count_);
  }
  /// A kernel that has `resident` of the `full_wave` blocks that it has alone.
  void add(ClientId client, const KernelProfile& profile, std::uint64_t resident,
           std::uint64_t full_wave, double sm_share) {
    Demand& demand = clients_[client.index()];
    if (resident == full_wave) {
      demand.dram += profile.dram_share;
      demand.issue += profile.issue_share * sm_share;
      return;
    }
    const double present = static_cast<double>(resident) / static_cast<double>(full_wave);
    demand.dram += profile.dram_share * present;
    demand.issue += profile.issue_share * present * sm_share;
  }
  /// After the last add.
  void total() {
    total_ = {};
    for (Demand& demand : clients_) {
      demand.dram = std::min(demand.dram, 1.0);
      demand.issue = std::min(demand.issue, 1.0);
      total_.dram += demand.dram;
      total_.issue += demand.issue;
    }
    none_ = total_.dram <= bandwidth_ && total_.issue <= 1;
    dram_stretch_ = std::max(1.0, total_.dram / bandwidth_);
    issue_stretch_ = std::max(1.0, total_.issue);
  }
  /// Speed of the client's kernels of this class relative to alone; exactly 1 without contention.
  [[nodiscard]] double rate(ClientId client, KernelClass kernel_class) const {
    const double others = std::max(0.0, total_.dram - clients_[client.index()].dram);
    const double l2 = l2_slowdown_ * others;
    if (none_ && l2 <= 0) return 1;
    const double memory = boundness_[static_cast<std::size_t>(kernel_class)];
    const double stretch = memory * dram_stretch_ + (1 - memory) * issue_stretch_;
    return 1 / (std::max(1.0, stretch) * (1 + l2));
  }

 private:
  struct Demand {
    double dram = 0;
    double issue = 0;
  };

  std::array<double, 3> boundness_;  ///< by KernelClass
  double l2_slowdown_;
  double sm_count_;
  double bandwidth_ = 1;
  std::vector<Demand> clients_;
  Demand total_;
  bool none_ = true;         ///< demands fit, L2 apart
  double dram_stretch_ = 1;
  double issue_stretch_ = 1;
};

}  // namespace bubblesim::gpu
