// pipefill: fills measured bubbles with fill-job kernels that are known to fit (PipeFill,
// MLSys'25). The training engine announces each bubble, its measured length and its free memory:
// the bubble instruction. A filler's launch, copies too, is admitted only inside a bubble and only
// if the execution plan has a place for it (fill_plan.hpp: fill fraction, context switch, memory,
// moves over the host link with `offload`). A launch that does not fit ends the filling of its
// bubble for its filler, for the order within a filler is kept. Fill jobs are placed by
// pipefill_scheduler.hpp. A launch too long for the fill fraction of every bubble runs alone in the
// longest bubble, if it fits the whole (pipefill_launches_alone); else its filler stops for good
// (pipefill_stuck_fillers). The paper partitions the fill job's graph so that this cannot happen.
// The instruction stops the main job before it receives (`main_job: stopped`): the fillers' slice
// lasts as long as the bubble, and training's waiting receive does not spin every other slice.
// Training's sends go out in its slice at the bubble's start, which runs to its end. By default
// only waits for pipeline peers are bubbles; `bubbles: all` adds communication stalls.
//
// Sharing: time slices, as a context switch is part of the rule. With `offload` a filler is
// admitted that the device could hold alone; else it must fit beside training's peak. Ties: client
// order.
// Source: arXiv 2410.07192 (abstract and summaries; no public code). Reconstructed: 0.68 as the
// fill fraction (recalled, unchecked), min_bubble, how the main job stops, kernels in place of
// layers, the longest bubble's launch, what moves when, time slices. Online fillers and training
// jobs are treated as offline fillers. Differs: an announcement is instant and free (an engine pays
// 60 to 260 us on an H200); the plan runs one kernel at a time, has one switch a bubble where a GPU
// takes two, and learns nothing from kernels that ran longer than profiled.
#include <algorithm>
#include <memory>

#include "policies/builtin.hpp"
#include "policies/fill_plan.hpp"
#include "policies/pipefill_scheduler.hpp"
#include "sim/policy/declare.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;
using namespace std::chrono_literals;

constexpr CounterSpec kStuckFillers{
    "pipefill_stuck_fillers", Severity::kNotice,
    "fillers held at the end by a launch that is longer than every bubble so far"};
constexpr CounterSpec kStarvedFillers{
    "pipefill_starved_fillers", Severity::kNotice,
    "fillers held at the end that no bubble had memory for, or time to move it"};
constexpr CounterSpec kAlone{
    "pipefill_launches_alone", Severity::kInfo,
    "launches beyond the fill fraction that had a longest bubble to themselves"};
constexpr CounterSpec kPipeFillUnprofiled{
    "pipefill_unprofiled_launches", Severity::kNotice,
    "launches of fillers without a profiled duration; they were planned as taking no time"};

Offload offload_of(const ParameterSet& given) {
  return given.flag("offload") ? Offload::kWhatDoesNotFit : Offload::kNever;
}

class PipeFill final : public Policy {
 public:
  explicit PipeFill(const ParameterSet& given)
      : min_bubble_(given.duration("min_bubble")),
        all_bubbles_(given.text("bubbles") == "all"),
        mode_(given.text("sharing") == "spatial" ? SharingMode::kMps
                                                 : SharingMode::kTimeSliced),
        given_switch_cost_(given.duration_unless_word("switch_cost")),
        stops_main_job_(mode_ == SharingMode::kTimeSliced &&
                        given.text("main_job") == "stopped"),
        constants_{.fraction = given.number("fill_fraction"), .offload = offload_of(given)},
        plan_(constants_, {}) {}

  Sharing start(const GpuInfo& gpu, std::span<const ClientInfo> clients) override {
    constants_.switch_cost = given_switch_cost_.value_or(gpu.context_switch);
    constants_.host_link = gpu.host_bandwidth;
    const Bytes training = clients.front().memory;
    if (clients.front().memory_known && gpu.memory > training) {
      constants_.beside_training = Bytes{gpu.memory.value - training.value};
    }
    std::vector<Bytes> memory;
    for (const ClientInfo& client : clients) memory.push_back(client.memory);
    plan_ = FillPlan(constants_, std::move(memory));
    held_.assign(clients.size(), {});
    slice_ = gpu.time_slice;
    return {mode_, std::nullopt, given_switch_cost_, offloads(), stops_main_job_};
  }

  /// Memory is moved as a whole: a running filler has all its memory on the device.
  ClientSharing share(const ClientInfo& client) override {
    ClientSharing share;
    if (offloads()) share.resident = client.memory;
    return share;
  }

  Admission admit(const ClientInfo& filler, Bytes used, const GpuInfo& gpu) override {
    return Policy::admit(filler, offloads() ? Bytes{} : used, gpu);
  }

  Verdict on_launch(const LaunchInfo& launch, Instant now, Actions& actions) override {
    if (launch.client == ClientId{0}) return Verdict::kAdmit;
    if (launch.profiled == Duration{}) ++unprofiled_;
    Held& held = held_[launch.client.index()];
    if (actions.held(launch.client) == 0) {
      if (plan_.take(launch.client, launch.profiled, now)) return Verdict::kAdmit;
      held.oldest = launch.profiled;
      wait_for_memory(launch.client, now);
    }
    ++held.count;
    return Verdict::kHold;
  }

  void on_bubble_begin(const BubbleInfo& bubble, Instant now, Actions& actions) override {
    end_bubble(actions);
    if (bubble.expected < min_bubble_ || (!bubble.pipeline && !all_bubbles_)) return;
    plan_.begin_bubble(bubble.expected, bubble.free_memory, now);
    if (stops_main_job_) {
      filling_ = true;
      set_turns(std::max(slice_, bubble.expected), actions);
    }
    release_all(now, actions);
  }

  void on_bubble_end(Instant, Actions& actions) override { end_bubble(actions); }

  void on_iteration(const IterationInfo& iteration, Instant, Actions&) override {
    if (iteration.client == ClientId{0}) plan_.end_iteration();
  }

  void on_gone(ClientId client, Instant, Actions&) override {
    held_[client.index()] = {.is_gone = true};
  }

  std::optional<Instant> next_tick() const override { return memory_there_; }

  void on_tick(Instant now, Actions& actions) override {
    if (!memory_there_ || now < *memory_there_) return;
    memory_there_.reset();
    release_all(now, actions);
  }

  void add_counts(CounterSet& counters) const override {
    std::uint64_t stuck = 0;
    std::uint64_t starved = 0;
    for (std::uint32_t id = 1; id < held_.size(); ++id) {
      if (held_[id].count == 0) continue;
      stuck += plan_.has_place(held_[id].oldest) ? 0U : 1U;
      starved += plan_.lacks_memory(ClientId{id}) ? 1U : 0U;
    }
    counters.add(kStuckFillers, stuck);
    counters.add(kStarvedFillers, starved);
    counters.add(kAlone, plan_.alone());
    counters.add(kPipeFillUnprofiled, unprofiled_);
  }

 private:
  struct Held {
    std::size_t count = 0;
    Duration oldest{};  ///< profiled duration of the oldest held launch
    bool is_gone = false;
  };

  [[nodiscard]] bool offloads() const { return constants_.offload != Offload::kNever; }

  void end_bubble(Actions& actions) {
    plan_.end_bubble();
    memory_there_.reset();
    if (!filling_) return;
    filling_ = false;
    set_turns(slice_, actions);
  }

  void set_turns(Duration turn, Actions& actions) {
    for (std::uint32_t id = 1; id < held_.size(); ++id) {
      if (!held_[id].is_gone) actions.set_time_slice(ClientId{id}, turn);
    }
  }

  /// A launch that waits only for its filler's memory goes when the memory is on the device.
  void wait_for_memory(ClientId client, Instant now) {
    const auto ready = plan_.ready(client);
    if (!ready || *ready <= now) return;
    memory_there_ = std::min(memory_there_.value_or(*ready), *ready);
  }

  void release_all(Instant now, Actions& actions) {
    for (std::uint32_t id = 1; id < held_.size(); ++id) release_fitting(ClientId{id}, now, actions);
  }

  void release_fitting(ClientId client, Instant now, Actions& actions) {
    Held& held = held_[client.index()];
    while (actions.held(client) > 0) {
      held.oldest = actions.oldest_held(client).profiled;
      if (!plan_.take(client, held.oldest, now)) return wait_for_memory(client, now);
      actions.release(client);
      --held.count;
    }
  }

  Duration min_bubble_;
  bool all_bubbles_;
  SharingMode mode_;
  std::optional<Duration> given_switch_cost_;
  bool stops_main_job_;
  Duration slice_{};
  bool filling_ = false;  ///< the fillers' slice lasts as long as the bubble's filling
  FillConstants constants_;
  FillPlan plan_;
  std::vector<Held> held_;
  std::optional<Instant> memory_there_;  ///< the filler whose memory arrives next
  std::uint64_t unprofiled_ = 0;
};

std::unique_ptr<Placer> make_scheduler(const ParameterSet& given) {
  const std::string& rule = given.text("schedule");
  FillScheduling scheduling;
  scheduling.rule = rule == "shortest_job" ? FillRule::kShortestJob
                    : rule == "makespan"   ? FillRule::kMakespan
                    : rule == "deadline"   ? FillRule::kDeadline
                                           : FillRule::kFirstCome;
  scheduling.fraction = given.number("fill_fraction");
  scheduling.offload = offload_of(given);
  scheduling.pipeline_only = given.text("bubbles") != "all";
  return std::make_unique<FillScheduler>(scheduling);
}

}  // namespace

PolicySpec pipefill_spec() {
  const std::string paper = "PipeFill, MLSys'25, arXiv 2410.07192";
  PolicySpec spec;
  spec.name = "pipefill";
  spec.summary = "Launches of known duration that fit into the measured bubble";
  spec.source = paper;
  spec.needs = {.kernel_durations = true, .bubbles = true, .iterations = true};
  spec.parameters = {
      declare_number("fill_fraction", 0.68, 0.01, 1,
                     {"", "The part of a bubble's measured length that may be filled.",
                      "reconstructed: recalled from the paper, unchecked"}),
      declare_duration("min_bubble", 0ns, 0ns, 1000s,
                       {"", "Shorter bubbles are left alone.", "reconstructed"}),
      declare_choice("bubbles", {"pipeline", "all"},
                     {"", "Waits for pipeline peers only, or any idle time of training.",
                      paper + ": the pipeline engine's bubble instruction"}),
      declare_device_duration("switch_cost", 0us, 1s,
                              {"", "Kept free at a bubble's end, and a context switch's cost.",
                               paper + ": part of the packing rule"}),
      declare_choice("sharing", {"time_sliced", "spatial"},
                     {"", "Contexts take turns, or MPS.", "reconstructed"}),
      declare_choice("main_job", {"stopped", "takes_turns"},
                     {"",
                      "Time-sliced: while a bubble is filled training's context has no turn, or "
                      "takes turns while it waits, as it must where slices are the driver's.",
                      paper + ": the bubble instruction; its place before the receive: "
                              "reconstructed"}),
      declare_flag("offload", false,
                   {"", "What does not fit a bubble's memory is moved over the host link.",
                    paper + ": offloading named in summaries; what is moved is reconstructed"}),
      declare_choice("schedule", {"first_come", "shortest_job", "makespan", "deadline"},
                     {"", "Which fill job begins next.",
                      paper + ": policies named in summaries; rules as in pipefill_scheduler.hpp"}),
  };
  spec.demands = {{SystemFeature::kTimeSlicing, "sharing", {"time_sliced"}},
                  {SystemFeature::kMps, "sharing", {"spatial"}}, {SystemFeature::kFrameworkHook}};
  spec.not_searched = {"switch_cost"};
  spec.make = [](const ParameterSet& given) { return std::make_unique<PipeFill>(given); };
  spec.make_placer = make_scheduler;
  return spec;
}

}  // namespace bubblesim::policies
