// xsched: preemptive scheduling of command queues at three levels (XSched, OSDI'25), under its
// policy hpf, the highest priority first. A filler may run only while training has nothing
// outstanding (training_work.hpp: what counts); all fillers have one lower priority and run
// together.
//
// Level 1, any device: at most `threshold` operations of each filler are in flight; when training
// launches, fillers launch no more, and operations in flight end. Level 2: operations in flight
// that do not run yet are withdrawn, too (Preemption::kAfterKernel). Level 3: the filler's context
// leaves the GPU at once (kContextSwitch; always time-sliced). Level 2 exists for compute
// capabilities 3.5, 7.0 and 8.6 (hal/src/arch/arch.cpp); on others fillers are refused. Level 3
// sets the context's time slice to 0 (hal/src/level3/tsg.cpp, chosen by XSCHED_CUDA_LV3_IMPL=TSG),
// which any GPU has.
// Wake rule: XSched synchronises with every `batch`-th command. A filler that has `threshold` in
// flight goes on when a whole batch has ended (`wake: batch`: in flight <= threshold - batch), or
// when one operation has (`wake: each`).
// Everything of a filler is a command: kernels, copies, memsets, collectives; a CUDA graph counts
// as its operations.
//
// Ties: fillers in client order; training's launches before fillers' of one instant if the driver
// reports them so. Source: the paper; XpuOS/xsched at bd494cb (launch_worker.cpp, async_xqueue.cpp,
// hpf). Differs: a host thread waits inside the launch (the code buffers commands for a worker
// thread); training's queue is not bounded (the artifact on a GV100: 512 commands, batches of 128;
// its filler, at level 2: 64 and 32, or 16 and 4); the threshold is a filler's, not a stream's; the
// daemon takes no time; streams are not seen, where the code lets the legacy default stream's
// commands pass (shim.h, CHECK_STREAM). Reconstructed: level 2 as "the kernel that runs ends".
#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "policies/builtin.hpp"
#include "policies/client_queues.hpp"
#include "policies/protected_client.hpp"
#include "policies/training_work.hpp"
#include "sim/policy/declare.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;
using namespace std::chrono_literals;

constexpr CounterSpec kSuspensions{"xsched_suspensions", Severity::kInfo,
                                   "times that training's launch found a filler in flight"};

class XSched final : public Policy {
 public:
  explicit XSched(const ParameterSet& given)
      : level_(given.integer("level")),
        threshold_(static_cast<std::uint64_t>(given.integer("threshold"))),
        switch_cost_(given.duration_unless_word("switch_cost")),
        spatial_(level_ < 3 && given.text("sharing") == "spatial"),
        training_(collectives_of(given)) {
    const auto batch = static_cast<std::uint64_t>(given.integer("batch"));
    const std::uint64_t freed = given.text("wake") == "each" ? 1 : std::min(batch, threshold_);
    wake_at_ = threshold_ - freed;
  }

  Sharing start(const GpuInfo&, std::span<const ClientInfo> clients) override {
    outstanding_ = OutstandingOperations(clients.size());
    full_.assign(clients.size(), false);
    off_.assign(clients.size(), false);
    if (spatial_) return {SharingMode::kMps};
    return {SharingMode::kTimeSliced, std::nullopt, switch_cost_, false};
  }

  ClientSharing share(const ClientInfo& client) override {
    return {.priority = spatial_ && client.id == kProtected ? 1 : 0};
  }

  Admission admit(const ClientInfo&, Bytes, const GpuInfo& gpu) override {
    constexpr std::array<std::uint32_t, 4> kWithdrawing{0, 35, 70, 86};  // 0: not known
    if (level_ != 2 || std::ranges::count(kWithdrawing, gpu.compute_capability) > 0) return {};
    return {false, "xsched: level 2 exists for compute capabilities 3.5, 7.0 and 8.6 only"};
  }

  Verdict on_launch(const LaunchInfo& launch, Instant, Actions& actions) override {
    if (launch.client == kProtected) {
      if (training_.launched(launch)) suspend(actions);
      return Verdict::kAdmit;
    }
    if (actions.held(launch.client) > 0 || !may_pass(launch.client)) return Verdict::kHold;
    pass(launch);
    return Verdict::kAdmit;
  }

  void on_completion(const CompletionInfo& completion, Instant, Actions& actions) override {
    if (completion.client == kProtected) {
      if (training_.ended(completion) && training_.idle()) resume(actions);
      return;
    }
    outstanding_.ended(completion.client);
    if (outstanding_.count_of(completion.client) <= wake_at_) {
      full_[completion.client.index()] = false;
    }
    release_passing(completion.client, actions);
  }

  void on_gone(ClientId client, Instant, Actions&) override {
    outstanding_.gone(client);
    full_[client.index()] = off_[client.index()] = false;
  }

  void add_counts(CounterSet& counters) const override {
    counters.add(kSuspensions, suspensions_);
  }

 private:
  [[nodiscard]] bool may_pass(ClientId filler) const {
    return training_.idle() && !full_[filler.index()];
  }

  void pass(const LaunchInfo& launch) {
    outstanding_.passed(launch);
    if (outstanding_.count_of(launch.client) >= threshold_) full_[launch.client.index()] = true;
  }

  void suspend(Actions& actions) {
    for (std::uint32_t id = 1; id < off_.size(); ++id) {
      if (outstanding_.idle(ClientId{id})) continue;
      ++suspensions_;
      if (level_ == 1) continue;
      off_[id] = true;
      actions.preempt(ClientId{id},
                      level_ == 2 ? Preemption::kAfterKernel : Preemption::kContextSwitch);
    }
  }

  void resume(Actions& actions) {
    for (std::uint32_t id = 1; id < off_.size(); ++id) {
      if (off_[id]) actions.proceed(ClientId{id});
      off_[id] = false;
      release_passing(ClientId{id}, actions);
    }
  }

  void release_passing(ClientId filler, Actions& actions) {
    while (actions.held(filler) > 0 && may_pass(filler)) {
      pass(actions.oldest_held(filler));
      actions.release(filler);
    }
  }

  std::int64_t level_;
  std::uint64_t threshold_;
  std::optional<Duration> switch_cost_;
  bool spatial_;
  std::uint64_t wake_at_ = 0;  ///< a full filler launches again at this number in flight
  TrainingWork training_;
  OutstandingOperations outstanding_;  ///< of fillers
  std::vector<std::uint8_t> full_;  ///< by client: it reached the threshold and has not been woken
  std::vector<std::uint8_t> off_;   ///< by client: its context is off the GPU
  std::uint64_t suspensions_ = 0;
};

}  // namespace

PolicySpec xsched_spec() {
  const std::string code = "XSched code, launch_worker.cpp and its defaults";
  PolicySpec spec;
  spec.name = "xsched";
  spec.summary = "Bounded in-flight launches, withdrawn at three levels when training launches";
  spec.source = "XSched, OSDI'25; code at XpuOS/xsched";
  spec.needs = {.completions = true};
  spec.parameters = {
      declare_integer("level", 1, 1, 3,
                      {"", "1: launch no more; 2: and withdraw what has not begun; 3: and take "
                           "the context off.",
                       "XSched, OSDI'25, preemption levels"}),
      declare_integer("threshold", 16, 1, 100000,
                      {"operations", "Each filler's operations in flight.",
                       code + "; the paper's measurements use 8"}),
      declare_integer("batch", 8, 1, 100000,
                      {"operations", "A full filler goes on when so many have ended; at most the "
                                     "threshold.",
                       code}),
      declare_choice("wake", {"batch", "each"},
                     {"", "A full filler goes on when a batch has ended, or one operation.",
                      code + ": batch"}),
      declare_choice("sharing", {"time_sliced", "spatial"},
                     {"", "Contexts take turns, or MPS; level 3 is always time-sliced.",
                      "XSched, OSDI'25: processes without MPS"}),
      declare_device_duration("switch_cost", 0us, 100ms,
                              {"", "The GPU is idle so long between two contexts' turns.",
                               "XSched, OSDI'25, 7.3: level 3 preempts within 32 us (P99)"}),
      collectives_parameter(),
  };
  spec.demands = {{SystemFeature::kLaunchInterception},
                  {SystemFeature::kTimeSlicing, "sharing", {"time_sliced"}},
                  {SystemFeature::kMps, "sharing", {"spatial"}},
                  {SystemFeature::kRewrittenKernels, "level", {"2"}},
                  {SystemFeature::kTimeSlicing, "level", {"3"}},
                  {SystemFeature::kDriverPatch, "level", {"3"}}};
  spec.not_searched = {"switch_cost"};
  spec.make = [](const ParameterSet& given) { return std::make_unique<XSched>(given); };
  return spec;
}

}  // namespace bubblesim::policies
