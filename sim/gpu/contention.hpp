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
  void clear();
  /// A kernel that has `resident` of the `full_wave` blocks that it has alone.
  void add(ClientId client, const KernelProfile& profile, std::uint64_t resident,
           std::uint64_t full_wave);
  /// After the last add.
  void total();
  /// Speed of the client's kernels of this class relative to alone; exactly 1 without contention.
  [[nodiscard]] double rate(ClientId client, KernelClass kernel_class) const;

 private:
  struct Demand {
    double dram = 0;
    double issue = 0;
  };

  [[nodiscard]] double boundness(KernelClass kernel_class) const;

  hardware::ContentionSpec spec_;
  double sm_count_;
  double bandwidth_ = 1;
  std::vector<Demand> clients_;
  Demand total_;
};

}  // namespace bubblesim::gpu
