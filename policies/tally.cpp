// tally: one kernel of a filler at a time, in a form that can be stopped, and only after training
// was idle for a while (Tally, ASPLOS'25).
//
// Training's launches pass at once, in their own form. A filler's kernel is launched when training
// has had no kernel outstanding for `min_wait` and no kernel of any filler is in flight. Training's
// collectives, copies and memsets count as idle time: they pass Tally's scheduler by (server.cpp;
// priority.cpp:767-784). The form of a filler's kernel follows from its profiled duration and grid
// and from `turnaround` (the benchmarks' 0.0316 ms; the code's is 0.1 ms; tally_config.hpp):
// original, slices, or persistent workers. When training launches, the kernel retreats: resident
// blocks end, the rest of the grid waits (Preemption::kAfterBlocks) and goes on, none lost, after
// another `min_wait`. An original form runs to its end. After training has been idle for
// `original_after` (100 ms) all kernels are original and training is not guarded: with the
// benchmark's service at load 0.5 that is most of the time.
//
// Libraries: calls of cuBLAS and cuDNN (taken for them: kernels of class compute) have no other
// form and cannot be stopped (server.cpp:1077-1088, priority.cpp:985; the host's wait for its queue
// is not charged): `libraries: original`. By default CUTLASS replaces cuBLAS in all clients and
// cuDNN is off, as in the benchmarks (tally-project/tally-bench, bench.py, train.py); kernels take
// `library_slowdown` times as long (not published).
//
// Fillers' copies, memsets and collectives pass. Source: the paper; tally-project/tally at 86feb12
// (priority.cpp, cuda_launch.cpp, env.cpp). Differs: fillers go round robin (Tally: by priority,
// then id); a CUDA graph is one launch in its original form, whose unbegun kernels wait on retreat,
// and sends and reduce-scatters run (Tally throws on all three); forms' durations are estimated
// (Tally measures each); server and messages take no time. Reconstructed: slowdowns of forms.
#include <compare>
#include <map>
#include <memory>
#include <vector>

#include "policies/builtin.hpp"
#include "policies/protected_client.hpp"
#include "policies/tally_config.hpp"
#include "policies/training_work.hpp"
#include "sim/policy/declare.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;
using namespace std::chrono_literals;

constexpr CounterSpec kTallyUnprofiled{
    "tally_unprofiled_launches", Severity::kNotice,
    "kernels of fillers without a profiled duration; they ran in their original form"};
constexpr CounterSpec kRetreats{"tally_retreats", Severity::kInfo,
                                "times that a filler's kernel retreated from training"};
constexpr CounterSpec kOriginals{
    "tally_original_launches", Severity::kInfo,
    "kernels of fillers that were launched in their original form and could not retreat"};

/// A function and its grid: forms are chosen and remembered for these.
struct FormKey {
  std::uint32_t client = 0;
  std::uint32_t threads = 0;
  std::uint64_t kernel = 0;
  std::uint64_t blocks = 0;
  friend auto operator<=>(const FormKey&, const FormKey&) = default;
};

/// The filler's launch that is on the GPU.
struct Flight {
  ClientId client;
  std::uint64_t launch = 0;
  std::uint32_t operations = 0;
  bool preemptible = false;
  Preemption retreat = Preemption::kAfterBlocks;
  bool retreated = false;
};

class Tally final : public Policy {
 public:
  explicit Tally(const ParameterSet& given)
      : min_wait_(given.duration("min_wait")),
        original_after_(given.duration("original_after")),
        training_(collectives_of(given), Copies::kIdle) {
    limits_.turnaround = given.duration("turnaround");
    limits_.persistent_slowdown = given.number("persistent_slowdown");
    limits_.slice_overhead = given.duration("slice_overhead");
    limits_.threads_per_sm = static_cast<std::uint32_t>(given.integer("threads_per_sm"));
    limits_.least_blocks = static_cast<std::uint32_t>(given.integer("least_blocks"));
    limits_.lowest_speed = given.number("lowest_speed");
    limits_.short_speed = given.number("short_speed");
    limits_.busy_threads = static_cast<std::uint32_t>(given.integer("busy_threads"));
    limits_.dram_share = given.number("dram_share");
    replaces_ = given.text("libraries") == "replaced";
    library_slowdown_ = replaces_ ? given.number("library_slowdown") : 1;
  }

  Sharing start(const GpuInfo& gpu, std::span<const ClientInfo> clients) override {
    limits_.sms = gpu.sm_count;
    waiting_.assign(clients.size(), 0);
    return {};
  }
  ClientSharing share(const ClientInfo& client) override {
    return {.priority = client.id == kProtected ? 1 : 0};
  }

  Verdict on_launch(const LaunchInfo& launch, Instant now, Actions& actions) override {
    if (launch.client == kProtected) {
      if (training_.launched(launch)) retreat(actions);
      if (slowdown_of(launch) > 1) actions.reshape(kProtected, {.slowdown = library_slowdown_});
      return Verdict::kAdmit;
    }
    if (launch.kind != WorkKind::kKernel) return Verdict::kAdmit;
    if (launch.profiled == Duration{}) ++unprofiled_;
    if (!flight_ && all_waiting_ == 0 && quiet(now)) {
      take_off(launch, now, actions);
      return Verdict::kAdmit;
    }
    ++waiting_[launch.client.index()];
    ++all_waiting_;
    return Verdict::kHold;
  }

  void on_completion(const CompletionInfo& completion, Instant now, Actions& actions) override {
    if (completion.client == kProtected) {
      if (training_.ended(completion)) idle_since_ = now;  // used only while training is idle
      return;
    }
    if (!flight_ || flight_->client != completion.client ||
        flight_->launch != completion.launch || --flight_->operations > 0) {
      return;
    }
    land(actions);
    if (quiet(now)) launch_next(now, actions);
  }

  void on_gone(ClientId client, Instant now, Actions& actions) override {
    all_waiting_ -= waiting_[client.index()];
    waiting_[client.index()] = 0;
    if (flight_ && flight_->client == client) flight_.reset();
    if (quiet(now)) launch_next(now, actions);
  }

  std::optional<Instant> next_tick() const override {
    const bool wants = flight_ ? flight_->retreated : all_waiting_ > 0;
    if (!wants || !training_.idle()) return std::nullopt;
    return idle_since_ + min_wait_;
  }

  void on_tick(Instant now, Actions& actions) override {
    if (!quiet(now)) return;
    if (flight_ && flight_->retreated) {
      flight_->retreated = false;
      actions.proceed(flight_->client);
    }
    launch_next(now, actions);
  }

  void add_counts(CounterSet& counters) const override {
    counters.add(kTallyUnprofiled, unprofiled_);
    counters.add(kRetreats, retreats_);
    counters.add(kOriginals, originals_);
  }

 private:
  [[nodiscard]] bool quiet(Instant now) const {
    return training_.idle() && now >= idle_since_ + min_wait_;
  }

  [[nodiscard]] bool is_long_quiet(Instant now) const {
    return original_after_ > Duration{} && now >= idle_since_ + original_after_;
  }

  static bool is_library_call(const LaunchInfo& launch) {
    return launch.operations == 1 && launch.bound == KernelClass::kCompute;
  }
  [[nodiscard]] double slowdown_of(const LaunchInfo& launch) const {
    return is_library_call(launch) ? library_slowdown_ : 1;
  }

  void retreat(Actions& actions) {
    if (!flight_ || !flight_->preemptible || flight_->retreated) return;
    flight_->retreated = true;
    ++retreats_;
    actions.preempt(flight_->client, flight_->retreat);
  }

  /// The flight has ended; if it ended while retreating, its client may run again.
  void land(Actions& actions) {
    if (flight_->retreated) actions.proceed(flight_->client);
    flight_.reset();
  }

  void launch_next(Instant now, Actions& actions) {
    if (flight_ || all_waiting_ == 0) return;
    const auto clients = static_cast<std::uint32_t>(waiting_.size());
    for (std::uint32_t step = 1; step <= clients; ++step) {
      const ClientId id{(last_ + step) % clients};
      if (waiting_[id.index()] == 0 || actions.held(id) == 0) continue;
      --waiting_[id.index()];
      --all_waiting_;
      take_off(actions.oldest_held(id), now, actions);
      actions.release(id);
      return;
    }
  }

  void take_off(const LaunchInfo& launch, Instant now, Actions& actions) {
    last_ = launch.client.value;
    if (launch.operations == 0) return;
    const bool graph = launch.operations > 1;
    const bool fixed = graph || is_long_quiet(now) || (!replaces_ && is_library_call(launch));
    const TallyForm form = fixed ? TallyForm{} : form_of(launch);
    const double slowdown = form.slowdown * slowdown_of(launch);
    const bool original = form.kind == TallyForm::Kind::kOriginal;
    flight_ = Flight{launch.client, launch.launch, launch.operations, graph || !original,
                     graph ? Preemption::kAfterKernel : Preemption::kAfterBlocks, false};
    if (original) ++originals_;
    if (!original || slowdown > 1) actions.reshape(launch.client, {form.most_blocks, slowdown});
  }

  const TallyForm& form_of(const LaunchInfo& launch) {
    const FormKey key{launch.client.value, launch.threads_per_block, launch.kernel, launch.blocks};
    const auto [place, is_new] = forms_.try_emplace(key);
    if (is_new) {
      place->second = choose_form({launch.profiled, launch.blocks, launch.threads_per_block,
                                   launch.sm_blocks, launch.bound},
                                  limits_);
    }
    return place->second;
  }

  Duration min_wait_;
  Duration original_after_;
  TallyLimits limits_;
  bool replaces_;  ///< kernels of CUTLASS replace those of cuBLAS and cuDNN
  double library_slowdown_;
  TrainingWork training_;
  Instant idle_since_{};               ///< start of training's idle time, while it is idle
  std::optional<Flight> flight_;
  std::vector<std::uint64_t> waiting_;  ///< held launches, by client
  std::uint64_t all_waiting_ = 0;
  std::uint32_t last_ = 0;  ///< the client that launched last
  std::map<FormKey, TallyForm> forms_;
  std::uint64_t unprofiled_ = 0;
  std::uint64_t retreats_ = 0;
  std::uint64_t originals_ = 0;
};

}  // namespace

PolicySpec tally_spec() {
  const std::string code = "Tally code, env.cpp";
  const TallyLimits limits;
  PolicySpec spec;
  spec.name = "tally";
  spec.summary = "One filler kernel at a time, cut so that it can retreat from training";
  spec.source = "Tally, ASPLOS'25; code at tally-project/tally";
  spec.needs = {.kernel_durations = true, .completions = true, .kernel_classes = true};
  spec.parameters = {
      declare_duration("turnaround", 31600ns, 1us, 1s,
                       {"", "A filler's kernel should be off the GPU in so long.",
                        "Tally's benchmarks, tally_config.py: 0.0316 ms; " + code + ": 0.1 ms"}),
      declare_duration("min_wait", 100us, 0ns, 10s,
                       {"", "Training must have been idle so long.", code + ": MIN_WAIT_TIME"}),
      declare_number("persistent_slowdown", 1.2, 1, 100,
                     {"", "Duration of a kernel as persistent workers, over its own.",
                      "reconstructed: forms run at 0.7 to 0.95 of the kernel's speed"}),
      declare_duration("slice_overhead", 5us, 0ns, 1ms,
                       {"", "Each further slice of a grid takes so much longer.",
                        "reconstructed: a kernel launch"}),
      declare_duration("original_after", 100ms, 0ns, 1000s,
                       {"", "After training has been idle so long, kernels keep their form; 0: "
                            "never.",
                        code + ": WAIT_TIME_MS_TO_USE_ORIGINAL_CONFIGS"}),
      declare_integer("threads_per_sm", limits.threads_per_sm, 32, 2048,
                      {"threads", "Workers are packed no denser.",
                       "Tally code, cuda_util.cpp: 1536 where an SM holds 2048"}),
      declare_integer("least_blocks", limits.least_blocks, 1, 100000,
                      {"blocks", "No fewer workers, and no smaller slices.",
                       code + ": MIN_WORKER_BLOCKS"}),
      declare_number("lowest_speed", limits.lowest_speed, 0.01, 1,
                     {"", "Forms of a block an SM or more are no slower than this part of the "
                          "kernel's speed.",
                      code + ": the threshold falls to 0.1"}),
      declare_number("short_speed", limits.short_speed, 0.01, 1,
                     {"", "Nor slower than this for kernels that end within the turnaround.",
                      code + ": FALL_BACK_TO_ORIGINAL_THRESHOLD_FOR_SHORT_KERNEL"}),
      declare_integer("busy_threads", limits.busy_threads, 32, 2048,
                      {"threads", "So many keep an SM's units busy.",
                       "Elvinger et al., SoCC'25: 4 warps of independent instructions"}),
      declare_number("dram_share", limits.dram_share, 0.01, 1,
                     {"", "Of the blocks that fit: so many keep DRAM busy.",
                      "MuxServe's profile of an A100: decode keeps its speed on 45 % of the SMs"}),
      declare_choice("libraries", {"replaced", "original"},
                     {"", "Kernels of cuBLAS and cuDNN: replaced by CUTLASS's in all clients, or "
                          "theirs, which cannot be stopped.",
                      "Tally's benchmarks, bench.py: replaced; its code's default: original"}),
      declare_number("library_slowdown", 1, 1, 100,
                     {"", "Duration of a replaced kernel, over its own.",
                      "reconstructed: not published"}),
      collectives_parameter(Collectives::kIdle),
  };
  spec.demands = {{SystemFeature::kLaunchInterception}, {SystemFeature::kRewrittenKernels}};
  spec.not_searched = {"persistent_slowdown", "slice_overhead", "threads_per_sm", "busy_threads",
                       "dram_share", "libraries", "library_slowdown"};
  spec.make = [](const ParameterSet& given) { return std::make_unique<Tally>(given); };
  return spec;
}

}  // namespace bubblesim::policies
