// vcuda: a limit for each process, in percent of the GPU, kept by tokens (Tencent's
// vcuda-controller, hard limits; HAMi-core is its successor). A launch hook in each process takes a
// token a thread block and holds a kernel while their number is negative; a held thread looks again
// every poll period. Every refill period the hook reads how much of the GPU its process used, and
// adds a share of tokens that grows below the limit and shrinks above it (vcuda_tokens.hpp). The
// step grows with the square of the SMs: at 132 SMs a limit of 20 % lets 67 % pass of blocks of 100
// us, as HAMi-core's users report (issue 274).
//
// No process is protected: with a `training_limit` below 100 the policy holds training's launches
// as it holds all others. Copies and CUDA graphs are not gated. Launched kernels run to their end.
//
// Sharing: time slices. Ties: at one instant utilisation is sampled first, then buckets are filled
// in client order, then held threads look, in the order of being held. Source:
// tkestack/vcuda-controller at 72e0115, src/hijack_call.c and include/hijack.h, behaviour
// re-implemented. Limits: XSched's artifact (OSDI'25), cuda/fig11/scripts/cotrain_vcuda.sh, which
// gives training 80 %; here 100, without a hook. Differs: no elastic mode and no memory limit.
// Utilisation is NVML's in the code, of the last sample; here the time in which several processes
// have work on the GPU counts in equal parts for each, and samples begin at instant 0 (inferred:
// slices have one length; NVML documents periods of 1/6 s to 1 s).
#include <algorithm>
#include <memory>
#include <vector>

#include "policies/builtin.hpp"
#include "policies/client_queues.hpp"
#include "policies/launch_polls.hpp"
#include "policies/protected_client.hpp"
#include "policies/vcuda_tokens.hpp"
#include "sim/policy/declare.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;
using namespace std::chrono_literals;

/// Percent; a process with this limit is not limited.
constexpr std::int64_t kWhole = 100;

/// The share of the GPU that each process used in the last whole sample.
class UtilizationSamples {
 public:
  explicit UtilizationSamples(Duration period) : period_(period) {}

  void start(std::size_t clients) {
    busy_.assign(clients, Duration{});
    last_.assign(clients, 0);
  }

  /// The time up to `now` passed with this work outstanding. Closes the samples that ended.
  void advance(Instant now, const OutstandingOperations& outstanding) {
    while (now_ < now) {
      const Instant until = std::min(now, next_multiple(now_, period_));
      count(until - now_, outstanding);
      now_ = until;
      if (now_ % period_ == Duration{}) take();
    }
  }

  [[nodiscard]] std::int64_t percent(ClientId client) const { return last_[client.index()]; }

 private:
  void count(Duration span, const OutstandingOperations& outstanding) {
    std::int64_t sharing = 0;
    for (std::uint32_t id = 0; id < busy_.size(); ++id) {
      sharing += outstanding.idle(ClientId{id}) ? 0 : 1;
    }
    for (std::uint32_t id = 0; id < busy_.size(); ++id) {
      if (!outstanding.idle(ClientId{id})) busy_[id] += span / sharing;
    }
  }

  void take() {
    for (std::size_t id = 0; id < busy_.size(); ++id) {
      last_[id] = busy_[id] * kWhole / period_;
      busy_[id] = Duration{};
    }
  }

  Duration period_;
  Instant now_{};
  std::vector<Duration> busy_;      ///< busy time in the present sample, by client
  std::vector<std::int64_t> last_;  ///< percent, by client
};

class Vcuda final : public Policy {
 public:
  explicit Vcuda(const ParameterSet& given)
      : training_limit_(given.integer("training_limit")),
        filler_limit_(given.integer("filler_limit")),
        refill_(given.duration("refill")),
        constants_{.threads_per_sm = given.integer("threads_per_sm")},
        samples_(given.duration("sample")),
        polls_(given.duration("poll")),
        next_refill_(refill_) {}

  Sharing start(const GpuInfo& gpu, std::span<const ClientInfo> clients) override {
    constants_.sms = gpu.sm_count;
    outstanding_ = OutstandingOperations(clients.size());
    samples_.start(clients.size());
    runs_.assign(clients.size(), 1);
    for (const ClientInfo& client : clients) {
      buckets_.emplace_back(constants_, client.id == kProtected ? training_limit_ : filler_limit_);
    }
    return {SharingMode::kTimeSliced};
  }

  Admission admit(const ClientInfo& filler, Bytes used, const GpuInfo& gpu) override {
    Admission admission = Policy::admit(filler, used, gpu);
    runs_[filler.id.index()] = admission.admitted ? 1 : 0;
    return admission;
  }

  Verdict on_launch(const LaunchInfo& launch, Instant now, Actions&) override {
    turn(now);
    if (passes(launch)) return Verdict::kAdmit;
    polls_.hold(launch.client, now);
    return Verdict::kHold;
  }

  void on_completion(const CompletionInfo& completion, Instant now, Actions&) override {
    turn(now);
    outstanding_.ended(completion.client);
  }

  void on_gone(ClientId client, Instant now, Actions&) override {
    turn(now);
    outstanding_.gone(client);
    runs_[client.index()] = 0;
  }

  std::optional<Instant> next_tick() const override {
    return polls_.next() ? std::min(next_refill_, *polls_.next()) : next_refill_;
  }

  void on_tick(Instant now, Actions& actions) override {
    turn(now);
    polls_.wake(now, actions, [this](const LaunchInfo& launch) { return passes(launch); });
  }

 private:
  bool passes(const LaunchInfo& launch) {
    const bool limited = launch.client != kProtected || training_limit_ < kWhole;
    const bool hooked = limited && is_kernel(launch.kind) && launch.operations == 1;
    if (hooked && !buckets_[launch.client.index()].passes(launch.blocks)) return false;
    outstanding_.passed(launch);
    return true;
  }

  void turn(Instant now) {
    samples_.advance(now, outstanding_);
    if (now < next_refill_) return;
    const bool alone = std::ranges::count(runs_, 1) == 1;
    for (std::uint32_t id = 0; id < buckets_.size(); ++id) {
      buckets_[id].refill(samples_.percent(ClientId{id}), alone);
    }
    next_refill_ = next_multiple(now, refill_);
  }

  std::int64_t training_limit_;
  std::int64_t filler_limit_;
  Duration refill_;
  VcudaConstants constants_;
  UtilizationSamples samples_;
  LaunchPolls polls_;
  Instant next_refill_;
  OutstandingOperations outstanding_;
  std::vector<VcudaTokens> buckets_;  ///< by client
  std::vector<std::uint8_t> runs_;    ///< by client: its process is running
};

}  // namespace

PolicySpec vcuda_spec() {
  const std::string hook = "vcuda-controller, hijack_call.c";
  const std::string shares = "XSched's artifact, cotrain_vcuda.sh";
  PolicySpec spec;
  spec.name = "vcuda";
  spec.summary = "A limit for each process, kept by tokens that its measured use refills";
  spec.source = "github.com/tkestack/vcuda-controller; GaiaGPU, ISPA'18";
  spec.needs = {.completions = true};
  spec.parameters = {
      declare_integer("training_limit", kWhole, 1, kWhole,
                      {"%", "Of the GPU, for training's process; 100: it is not held.",
                       "inferred: whole GPUs have no hook; 80 in " + shares}),
      declare_integer("filler_limit", 20, 1, kWhole,
                      {"%", "Of the GPU, for each filler's process.", shares}),
      declare_duration("refill", 120ms, 1us, 100s,
                       {"", "Use is read and tokens are added so often.", hook + ": g_wait"}),
      declare_duration("poll", 10ms, 1us, 10s,
                       {"", "A held launch looks again so often.", hook + ": g_cycle"}),
      declare_duration("sample", 167ms, 1us, 100s,
                       {"", "Use is that of the last whole span of this length.",
                        "NVML: 1/6 s to 1 s by product; the shortest"}),
      declare_integer("threads_per_sm", VcudaConstants{}.threads_per_sm, 256, 4096,
                      {"threads", "Resident ones: of V100, A100, H100.",
                       "CUDA C Programming Guide, compute capabilities"}),
  };
  spec.demands = {{SystemFeature::kTimeSlicing}, {SystemFeature::kLaunchInterception}};
  spec.training_gate = [](const ParameterSet& given) {  // its use of the GPU is read from NVML
    const bool hooked = given.integer("training_limit") < kWhole;
    return hooked ? TrainingGate::kAsks : TrainingGate::kNone;
  };
  spec.not_searched = {"refill", "poll", "sample", "threads_per_sm"};
  spec.settling = [](const ParameterSet& given, Duration) {  // shares vary for the first refills
    return given.duration("refill") * 20;
  };
  spec.make = [](const ParameterSet& given) { return std::make_unique<Vcuda>(given); };
  return spec;
}

}  // namespace bubblesim::policies
