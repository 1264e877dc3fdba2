// orion: operators of fillers beside the protected client's, if they do not get in its way (Orion,
// EuroSys'24). The protected client's stream has the highest priority. A filler's oldest launch
// goes if
//   - it is a copy or memset; or the protected client has nothing launched of its current iteration
//     or request, or is silent for 1 s (stopped), or (collectives: idle) waits for peers alone;
//   - or the client is training, its kernel number `update_start` (1: launch_jobs.py:135; `seen`
//     counts kernels only, utils_sched.cpp) has completed, and the launch fits the SM threshold;
//   - or it fits the SM threshold together with the other fillers' launches of this instant, and is
//     not known to be bound (compute, memory) like the client's kernel launched last;
// and only while the fillers' launched durations do not exceed max_duration; beyond it, all of them
// must complete first (orion_rules.hpp). Rules are asked at launches, completions and marks, not
// polled.
// Training's host waits at its iteration's end until the GPU has ended the iteration
// (train_imagenet.py:156, block()); until its next kernel all fillers' kernels go
// (scheduler_eval.cpp:333). What it launches before that end goes on as long after it as it was
// called after the mark. With `barrier: fillers` (and `update_start: 0`) the host runs ahead, and
// the iteration has nothing launched only while nothing of the last one is outstanding. Training's
// launches wait for the scheduler in both settings (intercept_temp.cpp:446).
// Needs profiled durations, classes, marks of iterations. Sharing: one process, so spatial. Ties:
// fillers in turn after the last one that launched.
// Source: eth-easl/orion at aded65d, busy_wait_profile of scheduler_eval.cpp. Differs: an
// iteration's length is the shortest so far, unless given (the code is told it; before the first,
// max_duration is 1 ns, the code's default); no warm-up of 10 iterations; collectives are kernels
// of unknown class; a convolution's kernels are not merged; launches are held, not queued: a host
// thread waits.
#include <algorithm>
#include <memory>

#include "policies/builtin.hpp"
#include "policies/front_queue.hpp"
#include "policies/orion_rules.hpp"
#include "policies/protected_client.hpp"
#include "policies/training_work.hpp"
#include "sim/policy/declare.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;
using namespace std::chrono_literals;

constexpr CounterSpec kOrionUnprofiled{
    "orion_unprofiled_launches", Severity::kNotice,
    "kernels of fillers without a profiled duration; they counted as taking no time"};
constexpr CounterSpec kUnknownOccupancy{
    "orion_unknown_occupancy", Severity::kNotice,
    "kernels of fillers whose occupancy is not known; a block counted as needing an SM"};

class Orion final : public Policy {
 public:
  explicit Orion(const ParameterSet& given)
      : max_duration_(given.duration("max_duration")),
        duration_share_(given.number("duration_share")),
        latency_(given.duration("latency")),
        slowdown_limit_(given.number("slowdown_limit")),
        update_start_(static_cast<std::uint64_t>(given.integer("update_start"))),
        measures_latency_(latency_ == Duration{}),
        waits_(given.text("barrier") == "both"),
        threshold_(given.integer("search_iterations")),
        training_(collectives_of(given)) {}

  Sharing start(const GpuInfo& gpu, std::span<const ClientInfo> clients) override {
    sm_count_ = gpu.sm_count;
    is_training_ = clients[0].role == Role::kTraining;
    fillers_.assign(clients.size(), {});
    set_most();
    return {};
  }

  ClientSharing share(const ClientInfo& client) override {
    return {.priority = client.id == kProtected ? 1 : 0};
  }

  Verdict on_launch(const LaunchInfo& launch, Instant now, Actions& actions) override {
    if (launch.client == kProtected) {
      if (mark_) {
        due_.push_back(now);
        return Verdict::kHold;
      }
      see_protected(launch, now);
      poll(actions);
      return Verdict::kAdmit;
    }
    const std::uint64_t sms = see_filler(launch);
    Filler& filler = fillers_[launch.client.index()];
    size_ = 0;
    if (filler.held == 0 && may_go(launch, sms)) {
      go(launch, sms);
      return Verdict::kAdmit;
    }
    ++filler.held;
    ++held_;
    return Verdict::kHold;
  }

  void on_completion(const CompletionInfo& completion, Instant now, Actions& actions) override {
    if (completion.client == kProtected) {
      last_protected_ = now;
      (void)training_.ended(completion);
      if (completion.launch == update_launch_) update_done_ = true;
      if (mark_ && !is_busy()) return end_iteration(now, actions);
    } else {
      Filler& filler = fillers_[completion.client.index()];
      if (filler.outstanding > 0) --filler.outstanding;
      drain_.complete(1);
    }
    poll(actions);
  }

  void on_iteration(const IterationInfo& iteration, Instant now, Actions& actions) override {
    if (iteration.client != kProtected) return;
    if (measures_latency_ && (latency_ == Duration{} || iteration.length < latency_)) {
      latency_ = iteration.length;
      set_most();
    }
    if (is_training_) threshold_.end_iteration(iteration.length, scale(latency_, slowdown_limit_));
    if (waits_) mark_ = mark_.value_or(now);
    if (!waits_ || !is_busy()) end_iteration(now, actions);
  }

  void on_gone(ClientId client, Instant, Actions& actions) override {
    Filler& gone = fillers_[client.index()];
    drain_.complete(gone.outstanding);
    held_ -= gone.held;
    gone = {};
    poll(actions);
  }

  std::optional<Instant> next_tick() const override {
    if (!mark_ && !due_.empty()) return due_.front();
    if (held_ == 0 || has_stopped_ || is_busy()) return std::nullopt;
    return last_protected_ + kStoppedAfter;
  }

  void on_tick(Instant now, Actions& actions) override {
    let_protected_go(now, actions);
    if (is_busy() || now < last_protected_ + kStoppedAfter) return;
    has_stopped_ = true;
    poll(actions);
  }

  void add_counts(CounterSet& counters) const override {
    counters.add(kOrionUnprofiled, unprofiled_);
    counters.add(kUnknownOccupancy, unknown_occupancy_);
  }

 private:
  struct Filler {
    std::size_t held = 0;
    std::uint64_t outstanding = 0;  ///< operations
  };

  void see_protected(const LaunchInfo& launch, Instant now) {
    last_protected_ = now;
    has_stopped_ = false;
    (void)training_.launched(launch);
    if (!is_kernel(launch.kind)) return;
    if (training_.counts(launch)) bound_ = launch.bound;
    if (++seen_ == update_start_ && is_training_) update_launch_ = launch.launch;
  }

  /// Fillers are tried before the protected host goes on.
  void end_iteration(Instant now, Actions& actions) {
    seen_ = update_launch_ = 0;
    update_done_ = false;
    for (Instant& called : due_) called += now - *mark_;
    mark_.reset();
    poll(actions);
    let_protected_go(now, actions);
  }

  void let_protected_go(Instant now, Actions& actions) {
    while (!mark_ && !due_.empty() && due_.front() <= now) {
      due_.pop_front();
      see_protected(actions.oldest_held(kProtected), now);
      actions.release(kProtected);
      poll(actions);
    }
  }

  std::uint64_t see_filler(const LaunchInfo& launch) {
    if (!is_kernel(launch.kind)) return 0;
    if (launch.profiled == Duration{}) ++unprofiled_;
    if (launch.sm_blocks == 0 && launch.blocks > 0) ++unknown_occupancy_;
    const std::uint64_t sms = sms_needed(launch, sm_count_);
    threshold_.see(sms);
    return sms;
  }

  /// Whether an operation of the protected client is outstanding.
  [[nodiscard]] bool is_busy() const { return !training_.idle() || training_.waits_for_peers(); }

  bool may_go(const LaunchInfo& launch, std::uint64_t sms) {
    return beside_protected(launch, sms) && drain_.lets_go();
  }

  [[nodiscard]] bool beside_protected(const LaunchInfo& launch, std::uint64_t sms) const {
    if (!is_kernel(launch.kind) || has_stopped_ || training_.waits_for_peers()) return true;
    if (seen_ == 0 && (waits_ || training_.idle())) return true;
    const std::uint64_t most = is_training_ ? threshold_.value() : sm_count_;
    if (update_done_ && sms <= most) return true;
    return size_ + sms <= most && (launch.bound == KernelClass::kUnknown ||
                                   bound_ == KernelClass::kUnknown || launch.bound != bound_);
  }

  void go(const LaunchInfo& launch, std::uint64_t sms) {
    size_ += sms;
    fillers_[launch.client.index()].outstanding += launch.operations;
    drain_.launch(is_kernel(launch.kind) ? launch.profiled : Duration{}, launch.operations, most_);
    last_filler_ = launch.client.index();
  }

  /// Goes round the fillers until none may launch.
  void poll(Actions& actions) {
    bool again = held_ > 0;
    while (again) {
      again = false;
      size_ = 0;
      const std::size_t count = fillers_.size() - 1;
      const std::size_t first = last_filler_ % count;  // the filler after the last one that
                                                       // launched, from 0
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t index = 1 + (first + i) % count;
        again = release_oldest(ClientId{static_cast<std::uint32_t>(index)}, actions) || again;
      }
    }
  }

  bool release_oldest(ClientId client, Actions& actions) {
    Filler& filler = fillers_[client.index()];
    if (filler.held == 0) return false;
    const LaunchInfo& launch = actions.oldest_held(client);
    const std::uint64_t sms = is_kernel(launch.kind) ? sms_needed(launch, sm_count_) : 0;
    if (!may_go(launch, sms)) return false;
    go(launch, sms);
    --filler.held;
    --held_;
    actions.release(client);
    return true;
  }

  void set_most() {
    most_ = max_duration_ > Duration{} ? max_duration_ : scale(latency_, duration_share_);
    most_ = std::max(most_, Duration{1});
  }

  Duration max_duration_;
  double duration_share_;
  Duration latency_;  ///< of an iteration or a request; 0: not known yet
  double slowdown_limit_;
  std::uint64_t update_start_;
  bool measures_latency_;
  bool waits_;  ///< the protected host waits at the end of each iteration
  bool is_training_ = true;
  std::uint32_t sm_count_ = 0;
  SmThreshold threshold_;
  DrainRule drain_;
  Duration most_{};         ///< limit on the fillers' outstanding durations
  std::uint64_t size_ = 0;  ///< SMs of the fillers' launches at this instant
  std::vector<Filler> fillers_;
  std::size_t held_ = 0;  ///< of all fillers
  std::size_t last_filler_ = 0;
  // The protected client:
  std::optional<Instant> mark_;                ///< since then it waits for the end of its iteration
  FrontQueue<Instant> due_;                    ///< its held launches: when they go; while it waits:
                                               ///< when they were called
  std::uint64_t seen_ = 0;                     ///< kernels of this iteration or request
  TrainingWork training_;
  KernelClass bound_ = KernelClass::kUnknown;  ///< class of its latest kernel
  std::uint64_t update_launch_ = 0;            ///< the launch that begins the update; 0: not yet
  bool update_done_ = false;
  Instant last_protected_{};
  bool has_stopped_ = false;
  std::uint64_t unprofiled_ = 0;
  std::uint64_t unknown_occupancy_ = 0;
};

std::vector<ParameterSpec> orion_parameters() {
  const std::string code = "Orion scheduler_eval.cpp";
  return {
      declare_number("duration_share", 0.025, 0, 100,
                     {"",
                      "Fillers' outstanding durations, as a share of the protected client's "
                      "iteration or request.",
                      "Orion, EuroSys'24: 2.5 %; its artifact's 160 us beside ResNet50's 6.5 ms"}),
      declare_duration(
          "max_duration", 0ns, 0ns, 1000s,
          {"", "The same as a span; 0: by the share.", code + ": orion_max_be_duration"}),
      declare_duration("latency", 0ns, 0ns, 1000s,
                       {"",
                        "An iteration or a request of the protected client alone; 0: the shortest "
                        "so far.",
                        "reconstructed: the code's thresholds are given as spans"}),
      declare_number("slowdown_limit", 1.1, 1, 1000,
                     {"",
                      "Beside training, the SM threshold is the largest that keeps the mean "
                      "iteration within this factor.",
                      "reconstructed: the code's hp_limit is a span without default"}),
      declare_integer("search_iterations", 10, 1, 100000,
                      {"iterations", "The SM threshold's search makes a step so often.", code}),
      declare_integer("update_start", 1, 0, 1'000'000'000,
                      {"kernels",
                       "From the end of this kernel of training's iteration on, size alone decides "
                       "on fillers' kernels; 0: never.",
                       "Orion launch_jobs.py: orion_start_update"}),
      declare_choice("barrier", {"both", "fillers"},
                     {"", "both: training's host waits for the end of each iteration; fillers: it "
                          "runs ahead.",
                      "Orion train_imagenet.py: block"}),
      collectives_parameter(),
  };
}

}  // namespace

PolicySpec orion_spec() {
  PolicySpec spec;
  spec.name = "orion";
  spec.summary = "Small kernels of fillers beside kernels that are bound by something else";
  spec.source = "Orion, EuroSys'24; github.com/eth-easl/orion at aded65d";
  spec.needs = {
      .kernel_durations = true, .completions = true, .kernel_classes = true, .iterations = true};
  spec.parameters = orion_parameters();
  spec.demands = {{SystemFeature::kOneProcess}, {SystemFeature::kLaunchInterception}};
  spec.training_gate = [](const ParameterSet&) { return TrainingGate::kAsks; };
  spec.not_searched = {"latency", "update_start"};
  spec.settling = [](const ParameterSet& given, Duration iteration) {  // the time of a bisection of
                                                                       // the SMs
    constexpr std::int64_t kHalvings = 8;
    return kHalvings * given.integer("search_iterations") * iteration;
  };
  spec.make = [](const ParameterSet& given) { return std::make_unique<Orion>(given); };
  return spec;
}

}  // namespace bubblesim::policies
