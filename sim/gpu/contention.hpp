// How much kernels of different clients slow each other when their blocks are resident together.
//
// Shares are fractions of the whole GPU's DRAM bandwidth and of all its issue slots. A kernel with
// memory boundness b (the fraction of its time that is bound by DRAM) runs, relative to alone, at
//
//   rate = 1 / (b * max(1, D) + (1 - b) * max(1, I)) / (1 + a * L)
//
// D, I: demand of all clients for DRAM bandwidth and issue slots; L: the other clients' demand for
// DRAM bandwidth, which stands in for their pressure on L2; a: ContentionSpec::l2_slowdown. The
// form is fluid sharing of each resource in proportion to demand; the L2 factor is that of iGniter
// (TPDS 2023). Kernels of one client never slow each other, since recorded durations of overlapping
// kernels include their contention; so one client's demand is at most 1. Clients that share a MIG
// instance share its part of the DRAM bandwidth (set_bandwidth), and D is relative to that.
//
// Alone, a kernel spreads its blocks over SMs before it stacks them. If its client may use only a
// share s of those SMs, the kernel has fewer blocks at a time, or more on an SM. These blocks run
// faster than the SMs suggest: fewer SMs than all saturate DRAM, and, if blocks are fewer, the
// clock rises while SMs are dark. The DRAM-bound part of a block takes m(s) w times as long as
// alone, and asks for 1 / (m(s) w) times the bandwidth. The rest takes 1 / c(l) times as long,
// where l is the share of all SMs that are lit:
//
//   m(s) = ((s^4 + a^4) / (1 + a^4))^(1/4)        a: PartSpec::dram_saturating_sms
//   c(l) = min(PartSpec::dark_clock_gain, l^(-1/3))
//
// m is the smooth minimum of the SMs' demand and DRAM's supply; c keeps the power of the SMs, lit
// share x clock x voltage^2, constant, with voltage in proportion to the clock. DRAM's work is the
// kernel's bytes, whatever its waves: the few blocks of a last wave have more bandwidth each. If
// the kernel takes W waves on all SMs and V on the part, w = W / (s V), so that its DRAM-bound time
// grows by m(s) / s whatever V is.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/program/kernel_profile.hpp"

namespace bubblesim::gpu {

/// The fraction of a kernel's time that DRAM bounds, by its class.
[[nodiscard]] double memory_boundness(const hardware::ContentionSpec& spec,
                                      program::KernelClass kernel_class);

/// The demand of kernels, as shares of the whole GPU.
struct Demand {
  double dram = 0;
  double issue = 0;

  Demand& operator+=(const Demand& other) {
    dram += other.dram;
    issue += other.issue;
    return *this;
  }
  /// One client's demand: at most 1, since its kernels were recorded beside each other.
  [[nodiscard]] Demand of_client() const { return {std::min(dram, 1.0), std::min(issue, 1.0)}; }
};

/// How the demand of all clients together slows each kernel.
struct Pressure {
  double dram = 0;           ///< D, of the GPU's whole bandwidth
  double dram_stretch = 1;   ///< max(1, D)
  double issue_stretch = 1;  ///< max(1, I)
  bool all_fit = true;       ///< all demands fit, ignoring L2
};

/// The part of the GPU that a kernel is confined to (formula above).
struct Confinement {
  double sms = 1;    ///< s in the formula
  double lit = 1;    ///< l in the formula
  double waves = 1;  ///< w in the formula

  [[nodiscard]] bool is_unconfined() const { return sms >= 1 && lit >= 1; }
};

/// The formula above, for one GPU.
class Contention {
 public:
  Contention(const hardware::ContentionSpec& spec, std::uint32_t sm_count,
             const hardware::PartSpec& part = {});

  /// Sets the share of the DRAM bandwidth that these clients together may use, (0, 1]; 1 at first.
  void set_bandwidth(double share) { bandwidth_ = share; }
  [[nodiscard]] double bandwidth() const { return bandwidth_; }
  /// The share of the SMs that hold a kernel whose full wave has this many blocks. If blocks are
  /// fewer than SMs, each has an SM of its own: the hardware spreads blocks before it stacks them.
  [[nodiscard]] double sm_share(std::uint64_t full_wave) const {
    const auto blocks = static_cast<double>(full_wave);
    return blocks >= sm_count_ ? 1.0 : blocks / sm_count_;
  }
  /// Demand of a kernel that has `resident` blocks resident; alone it would have `full_wave`.
  [[nodiscard]] static Demand demand(const program::KernelProfile& profile, std::uint64_t resident,
                                     std::uint64_t full_wave, double sm_share) {
    if (resident == full_wave) return {profile.dram_share, profile.issue_share * sm_share};
    const double present = static_cast<double>(resident) / static_cast<double>(full_wave);
    return {profile.dram_share * present, profile.issue_share * present * sm_share};
  }
  /// `total`: the sum over clients of their demands, each at most 1.
  [[nodiscard]] Pressure pressure(const Demand& total) const {
    const bool dram_fits = total.dram <= bandwidth_;
    const bool issue_fits = total.issue <= 1;
    return {.dram = total.dram,
            .dram_stretch = dram_fits ? 1.0 : total.dram / bandwidth_,
            .issue_stretch = issue_fits ? 1.0 : total.issue,
            .all_fit = dram_fits && issue_fits};
  }
  /// Speed relative to alone, on all SMs, of blocks of a kernel of this class, of a client with
  /// this demand for DRAM; exactly 1 without contention and confinement.
  [[nodiscard]] double rate(const Pressure& all, double own_dram,
                            program::KernelClass kernel_class,
                            const Confinement& confined = {}) const {
    if (confined.is_unconfined()) return rate_on_all_sms(all, own_dram, kernel_class);
    const double l2 = l2_slowdown_ * std::max(0.0, all.dram - own_dram);
    const double memory = boundness_[static_cast<std::size_t>(kernel_class)];
    const double stretch =
        memory * all.dram_stretch * memory_time(confined.sms) * confined.waves +
        (1 - memory) * all.issue_stretch / clock(confined.lit);
    return 1 / (std::max(0.0, stretch) * (1 + l2));
  }
  /// rate() of a kernel that is not confined.
  [[nodiscard]] double rate_on_all_sms(const Pressure& all, double own_dram,
                                       program::KernelClass kernel_class) const {
    const double l2 = l2_slowdown_ * std::max(0.0, all.dram - own_dram);
    if (all.all_fit && l2 <= 0) return 1;
    const double memory = boundness_[static_cast<std::size_t>(kernel_class)];
    const double stretch = memory * all.dram_stretch + (1 - memory) * all.issue_stretch;
    return 1 / (std::max(1.0, stretch) * (1 + l2));
  }
  /// memory_time() is m(s), clock() is c(l) of the formula at the top.
  [[nodiscard]] double memory_time(double sms) const;
  [[nodiscard]] double clock(double lit) const;

 private:
  std::array<double, 3> boundness_;  ///< by KernelClass
  double l2_slowdown_;
  hardware::PartSpec part_;
  double sm_count_;
  double bandwidth_ = 1;
};

/// Adds up demands by client: clear, add each kernel's, total. A round's cost grows with the
/// clients of nonzero demand, not with all clients. They are mostly the same as in the previous
/// round.
class DemandSum {
 public:
  void set_clients(std::size_t count) { clients_.resize(count); }
  void clear() { ++round_; }
  void add(ClientId client, const Demand& demand);
  /// Call after the last add: from then on each client's demand is at most 1. Clients are added in
  /// their order, so that a sum of doubles does not depend on the order of calls.
  [[nodiscard]] Demand total();
  /// The client's demand, at most 1; call after total().
  [[nodiscard]] const Demand& demand_of(ClientId client) const {
    return clients_[client.index()].demand;
  }

 private:
  struct Client {
    Demand demand;            ///< in the round in which it was last added to
    std::uint64_t round = 0;
    bool listed = false;      ///< in listed_
  };
  std::vector<Client> clients_;
  std::vector<std::uint32_t> listed_;  ///< clients that added demand in this round or the last one
  std::uint64_t round_ = 1;
};

}  // namespace bubblesim::gpu
