// reef: kernels of fillers are killed and run again, or padded into what training's kernels leave
// (REEF, OSDI'22). A filler launches only while training has nothing outstanding, and has at most
// `queue_capacity` kernels in flight, so that little is lost.
//
// When training launches after being idle, by `mode`:
//   wait   resident blocks end; what else is in flight (up to `wait_capacity` kernels, which look
//          at a flag first) withdraws until training is idle (kAfterBlocks). The baseline.
//   reset  the same, and kResetLatency later running kernels are killed and begin again (kReset)
//          when training is idle.
//   reef   reset, and dynamic kernel padding: beside the kernel of training that runs, a filler
//          goes on in the SMs that it leaves.
// Padding (reef_padding.hpp): streams are not seen, so training's oldest outstanding kernel is
// taken for the running one. Left are the SMs of neither it (a block an SM first: of 100 SMs 60
// blocks cover 60, and 250, three an SM, 84: scheduler.cpp:524,578) nor any outstanding collective
// of training. A filler goes on there, capped to them, if a wave of its next kernel (duration
// over waves; of several in flight the longest) is no longer than what remains of training's. It is
// stopped (kAfterBlocks, no work is lost) before a wave would outlast it, and when the next kernel
// of training does not admit it. One filler at a time, the first that fits. A filler's kernels
// without a known duration, grid or occupancy are never padded (counter).
//
// Ties: client order. Source: the paper; SJTU-IPADS/reef at 58dabe0 (capacity 2; baseline 1024).
// Differs: training is never held (REEF launches it after the reset); padding caps the filler's SMs
// in place of merging kernels, and training keeps all SMs; ended kernels never run again (REEF: up
// to two after a reset), stopped ones go on (REEF: begin again). Reconstructed: the latency of the
// reset, which no NVIDIA GPU has.
#include <algorithm>
#include <memory>
#include <vector>

#include "policies/builtin.hpp"
#include "policies/client_queues.hpp"
#include "policies/protected_client.hpp"
#include "policies/reef_padding.hpp"
#include "policies/training_work.hpp"
#include "sim/policy/declare.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;
using namespace std::chrono_literals;

constexpr CounterSpec kReefUnprofiled{
    "reef_unprofiled_launches", Severity::kNotice,
    "kernels of fillers without a profiled duration or occupancy; they were never padded"};
constexpr CounterSpec kResets{"reef_resets", Severity::kInfo,
                              "times that a filler's running kernels were killed"};
constexpr CounterSpec kPaddings{"reef_paddings", Severity::kInfo,
                                "times that a filler went on beside a kernel of training"};

/// From training's launch to the death of running kernels: reconstructed, as the paper says
/// microseconds.
constexpr Duration kResetLatency = 40us;

enum class Mode : std::uint8_t { kWait, kReset, kReef };

Mode mode_of(const std::string& text) {
  return text == "wait" ? Mode::kWait : text == "reset" ? Mode::kReset : Mode::kReef;
}

class Reef final : public Policy {
 public:
  explicit Reef(const ParameterSet& given)
      : mode_(mode_of(given.text("mode"))),
        capacity_(static_cast<std::size_t>(
            given.integer(mode_ == Mode::kWait ? "wait_capacity" : "queue_capacity"))),
        training_(collectives_of(given)) {}

  Sharing start(const GpuInfo& gpu, std::span<const ClientInfo> clients) override {
    sms_ = gpu.sm_count;
    tpc_sms_ = gpu.tpc_sms;
    queues_.assign(clients.size(), {});
    off_.assign(clients.size(), false);
    return {};
  }
  ClientSharing share(const ClientInfo& client) override {
    return {.priority = client.id == kProtected ? 1 : 0};
  }

  Verdict on_launch(const LaunchInfo& launch, Instant now, Actions& actions) override {
    if (launch.client == kProtected) {
      queues_[0].push(launch);
      if (training_.launched(launch)) arrive(now, actions);
      return Verdict::kAdmit;
    }
    if (launch.kind != WorkKind::kKernel) return Verdict::kAdmit;
    if (launch.profiled == Duration{} || launch.sm_blocks == 0) ++unprofiled_;
    if (actions.held(launch.client) > 0 || !may_pass(launch, now)) return Verdict::kHold;
    pass(launch);
    return Verdict::kAdmit;
  }

  void on_completion(const CompletionInfo& completion, Instant now, Actions& actions) override {
    const bool other = queues_[completion.client.index()].complete(completion.launch);
    if (completion.client != kProtected) {
      if (padded_ == completion.client) pad(now, actions);
      release_passing(completion.client, now, actions);
    } else if (training_.ended(completion) && training_.idle()) {
      leave(now, actions);
    } else if (other && !training_.idle()) {
      front_since_ = now;
      pad(now, actions);
    }
  }

  void on_gone(ClientId client, Instant, Actions&) override {
    queues_[client.index()].clear();
    off_[client.index()] = false;
    if (padded_ == client) padded_.reset();
  }

  std::optional<Instant> next_tick() const override {
    if (reset_at_) return reset_at_;
    if (padded_) return stop_at_;
    return std::nullopt;
  }

  void on_tick(Instant now, Actions& actions) override {
    if (reset_at_ && *reset_at_ <= now) {
      reset_at_.reset();
      for (std::uint32_t id = 1; id < off_.size(); ++id) {
        if (!off_[id] || queues_[id].empty()) continue;
        actions.preempt(ClientId{id}, Preemption::kReset);
        ++resets_;
      }
      pad(now, actions);
    }
    if (padded_ && stop_at_ <= now) stop_padding(actions);
  }

  void add_counts(CounterSet& counters) const override {
    if (unprofiled_ > 0 && mode_ == Mode::kReef) counters.add(kReefUnprofiled, unprofiled_);
    counters.add(kResets, resets_);
    counters.add(kPaddings, paddings_);
  }

 private:
  /// While training is idle, or, for the padded filler, if its waves end before training's kernel.
  [[nodiscard]] bool may_pass(const LaunchInfo& launch, Instant now) const {
    if (queues_[launch.client.index()].operations() >= capacity_) return false;
    if (training_.idle()) return true;
    if (padded_ != launch.client) return false;
    const auto wave = wave_length(launch.blocks, launch.sm_blocks, launch.profiled);
    return wave && now + *wave <= room_end_;
  }

  void pass(const LaunchInfo& launch) {
    queues_[launch.client.index()].push(launch);
    if (padded_ != launch.client) return;
    const auto wave = wave_length(launch.blocks, launch.sm_blocks, launch.profiled);
    if (wave) stop_at_ = std::min(stop_at_, room_end_ - *wave);
  }

  void release_passing(ClientId filler, Instant now, Actions& actions) {
    while (actions.held(filler) > 0 && may_pass(actions.oldest_held(filler), now)) {
      pass(actions.oldest_held(filler));
      actions.release(filler);
    }
  }

  /// Training has work again.
  void arrive(Instant now, Actions& actions) {
    front_since_ = now;
    for (std::uint32_t id = 1; id < off_.size(); ++id) {
      if (queues_[id].empty()) continue;
      off_[id] = true;
      actions.preempt(ClientId{id}, Preemption::kAfterBlocks);
    }
    if (mode_ != Mode::kWait) reset_at_ = now + kResetLatency;
  }

  /// Training has no work any more.
  void leave(Instant now, Actions& actions) {
    reset_at_.reset();
    if (padded_) actions.set_sm_percentage(*padded_, 100);
    padded_.reset();
    for (std::uint32_t id = 1; id < off_.size(); ++id) {
      if (off_[id]) actions.proceed(ClientId{id});
      off_[id] = false;
      release_passing(ClientId{id}, now, actions);
    }
  }

  /// Lets the first filler that fits, and no other, go on beside training's present kernel.
  void pad(Instant now, Actions& actions) {
    if (mode_ != Mode::kReef || reset_at_) return;
    const auto room = padding_room(queues_[0], front_since_, sms_);
    for (std::uint32_t id = 1; room.sms >= tpc_sms_ && id < off_.size(); ++id) {
      const auto wave = next_wave(ClientId{id}, actions);
      if (!wave || now + *wave > room.end) continue;
      if (padded_ && *padded_ != ClientId{id}) stop_padding(actions);
      stop_at_ = room.end - *wave;
      return begin_padding(ClientId{id}, room, now, actions);
    }
    if (padded_) stop_padding(actions);
  }

  /// The longest wave of the filler's kernels in flight, else of its next kernel.
  [[nodiscard]] std::optional<Duration> next_wave(ClientId filler, const Actions& actions) const {
    const LaunchQueue& queue = queues_[filler.index()];
    std::optional<Duration> longest;
    for (std::size_t i = 0; i < queue.size(); ++i) {
      const QueuedLaunch& kernel = queue[i];
      if (kernel.operations == 0) continue;
      const auto wave = wave_length(kernel.blocks, kernel.sm_blocks, kernel.profiled);
      if (!wave) return std::nullopt;
      longest = std::max(longest.value_or(*wave), *wave);
    }
    if (longest || actions.held(filler) == 0) return longest;
    const LaunchInfo& held = actions.oldest_held(filler);
    return wave_length(held.blocks, held.sm_blocks, held.profiled);
  }

  void begin_padding(ClientId filler, const PaddingRoom& room, Instant now, Actions& actions) {
    const std::uint32_t percentage = std::max(1u, room.sms * 100 / sms_);
    if (padded_ != filler || percentage != percentage_) {
      actions.set_sm_percentage(filler, percentage);
    }
    if (off_[filler.index()]) actions.proceed(filler);
    if (padded_ != filler) ++paddings_;
    off_[filler.index()] = false;
    percentage_ = percentage;
    padded_ = filler;
    room_end_ = room.end;
    release_passing(filler, now, actions);
  }

  void stop_padding(Actions& actions) {
    const ClientId filler = *padded_;
    padded_.reset();
    actions.set_sm_percentage(filler, 100);
    if (queues_[filler.index()].empty()) return;
    off_[filler.index()] = true;
    actions.preempt(filler, Preemption::kAfterBlocks);
  }

  Mode mode_;
  std::size_t capacity_;
  std::uint32_t sms_ = 0;
  std::uint32_t tpc_sms_ = 0;
  TrainingWork training_;
  std::vector<LaunchQueue> queues_;  ///< by client; fillers': kernels only
  std::vector<std::uint8_t> off_;    ///< by client: driven off the GPU
  Instant front_since_{};            ///< when training's oldest outstanding launch became the
                                     ///< oldest
  std::optional<Instant> reset_at_;
  std::optional<ClientId> padded_;  ///< goes on beside training until stop_at_
  Instant stop_at_{};
  Instant room_end_{};  ///< expected end of the padding: that of training's kernel
  std::uint32_t percentage_ = 100;
  std::uint64_t unprofiled_ = 0;
  std::uint64_t resets_ = 0;
  std::uint64_t paddings_ = 0;
};

}  // namespace

PolicySpec reef_spec() {
  const std::string code = "REEF code, scheduler.cpp";
  PolicySpec spec;
  spec.name = "reef";
  spec.summary = "Fillers' kernels are killed when training launches, or padded beside its own";
  spec.source = "REEF, OSDI'22; code at SJTU-IPADS/reef";
  spec.needs = {.kernel_durations = true, .completions = true};
  spec.parameters = {
      declare_choice("mode", {"reef", "reset", "wait"},
                     {"", "Reset and padding, reset alone, or the baseline that waits.", code}),
      declare_integer("queue_capacity", 2, 1, 100000,
                      {"kernels", "A filler's kernels in flight, unless it waits.", code}),
      declare_integer("wait_capacity", 1024, 1, 100000,
                      {"kernels", "A filler's kernels in flight under mode wait.",
                       code + ": the baseline WaitPreempt"}),
      collectives_parameter(),
  };
  spec.demands = {{SystemFeature::kLaunchInterception},
                  {SystemFeature::kRewrittenKernels},
                  {SystemFeature::kDriverPatch, "mode", {"reef", "reset"}}};
  spec.make = [](const ParameterSet& given) { return std::make_unique<Reef>(given); };
  return spec;
}

}  // namespace bubblesim::policies
