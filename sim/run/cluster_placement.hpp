// What is placed on which GPU of a run, and who decides it: the policy's placer, or first come,
// first served. Keeps the picture that a placer sees, and checks what it answers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/policy/placement.hpp"

namespace bubblesim::run {

class ClusterPlacement {
 public:
  /// `gpus` by id, with what training takes. No placer: a fill job goes to the GPU of the lowest
  /// number that has memory for it and no fill job; jobs that fit nowhere are passed over.
  ClusterPlacement(std::string policy, std::unique_ptr<policy::Placer> placer,
                   std::vector<policy::GpuState> gpus);

  [[nodiscard]] bool has_placer() const { return placer_ != nullptr; }
  [[nodiscard]] const std::vector<policy::GpuState>& gpus() const { return gpus_; }

  /// Memory may be oversubscribed: it is not checked.
  void allow_oversubscription() { unified_ = true; }
  /// Jobs of this kind are worked off one after another by a worker on each GPU: more of them on
  /// one GPU need no more memory.
  void add_worker_kind(std::uint32_t kind) { worker_kinds_.insert(kind); }
  /// What the policy leaves on the device of its worker's memory there; all of it where nothing is
  /// said.
  void set_worker_resident(GpuId gpu, std::uint32_t kind, Bytes resident) {
    worker_resident_[{gpu, kind}] = resident;
  }

  /// An instance that is there whatever the policy decides. It is not one of GpuState's jobs.
  void add_fixed(const policy::JobInfo& job, GpuId gpu);
  /// One that is there no more: fixed, placed and not let in, or a job that has ended.
  void remove(const policy::JobInfo& job, GpuId gpu);

  /// Asks for places on `allowed` GPUs (ascending), checks them and books what is placed. Fault: an
  /// illegal decision. Precondition: neither is empty.
  [[nodiscard]] Result<std::vector<policy::Placement>> place(
      std::span<const policy::JobInfo> waiting, std::span<const std::uint32_t> allowed,
      policy::Instant now);
  /// Whether what is booked fits every device. Fault: the placer's.
  [[nodiscard]] Result<void> check_memory(policy::Instant now) const;

  /// Device memory that workers of fill jobs hold now, and the most that they held at once.
  [[nodiscard]] Bytes workers_now(GpuId gpu) const { return workers_now_[gpu.index()]; }
  [[nodiscard]] Bytes workers_most(GpuId gpu) const { return workers_most_[gpu.index()]; }
  void add_counts(CounterSet& counters) const;

 private:
  struct Booked {
    policy::JobInfo job;
    bool placed = false;  ///< as opposed to fixed
  };

  void book(const policy::JobInfo& job, GpuId gpu, bool placed);
  void update(GpuId gpu);
  [[nodiscard]] bool fits(const policy::JobInfo& job, GpuId gpu) const;
  std::vector<policy::Placement> first_come(std::span<const policy::JobInfo> waiting,
                                            std::span<const std::uint32_t> allowed) const;
  [[nodiscard]] Result<void> check(std::span<const policy::Placement> placements,
                                   std::span<const policy::JobInfo> waiting,
                                   std::span<const std::uint32_t> allowed,
                                   policy::Instant now) const;
  [[nodiscard]] tl::unexpected<Error> illegal(policy::Instant now,
                                              const std::string& reason) const;

  std::string policy_;
  std::unique_ptr<policy::Placer> placer_;
  std::vector<policy::GpuState> gpus_;
  std::vector<Bytes> training_;               ///< by GPU
  std::vector<std::vector<Booked>> booked_;   ///< by GPU, in order
  bool unified_ = false;
  std::set<std::uint32_t> worker_kinds_;
  std::map<std::pair<GpuId, std::uint32_t>, Bytes> worker_resident_;
  std::vector<Bytes> workers_now_;            ///< by GPU
  std::vector<Bytes> workers_most_;
};

}  // namespace bubblesim::run
