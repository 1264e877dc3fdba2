// pipefill: fills measured bubbles with fill-job kernels that are known to fit (PipeFill,
// MLSys'25). The training engine announces each bubble with its measured length L and its free
// memory. A filler's launch is admitted only inside a bubble, and only if the time that all
// admitted launches are planned to take, this one included, and the switch back to training end
// within the fill fraction f of the bubble:
//     max(now, end of the plan) + duration + switch_cost <= begin + f * L.
// Started at the bubble's begin that is the paper's rule, sum(t) + switch <= f * L. Everything of
// a filler is held outside bubbles, copies too. The order within a filler is kept, so a launch
// that does not fit ends the filling of its bubble for this filler.
//
// A launch that is longer than f * L of every bubble is never admitted: its filler stops there for
// good, and the run says so (pipefill_stuck_fillers). The paper partitions the fill job so that
// this cannot happen; here the job's kernels are what they are.
//
// Sharing: time slices by default, as a context switch is part of the rule. Memory: a filler gets
// no bubble whose free memory is known to be less than the fillers up to it need together.
// Parameters: see the declarations. Ties: fillers in client order; the first one fills first.
// Source: PipeFill, arXiv 2410.07192 (mechanism from its abstract and summaries; no public code).
// Reconstructed: 0.68 as the fill fraction (recalled, not checked in the paper), min_bubble,
// kernels in place of layers, and time slices. Online fillers are treated like offline ones.
#include <algorithm>
#include <memory>

#include "policies/builtin.hpp"
#include "sim/policy/declare.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;
using namespace std::chrono_literals;

constexpr CounterSpec kStuckFillers{
    "pipefill_stuck_fillers", Severity::kNotice,
    "fillers held at the end by a launch that is longer than every bubble's usable part so far"};
constexpr CounterSpec kUnprofiled{
    "pipefill_unprofiled_launches", Severity::kNotice,
    "launches of fillers without a profiled duration; they were planned as taking no time"};

class PipeFill final : public Policy {
 public:
  explicit PipeFill(const ParameterSet& given)
      : fraction_(given.number("fill_fraction")),
        min_bubble_(given.duration("min_bubble")),
        all_bubbles_(given.text("bubbles") == "all"),
        mode_(given.text("sharing") == "spatial" ? Sharing::Mode::kSpatial
                                                 : Sharing::Mode::kTimeSliced),
        given_switch_cost_(given.duration_unless_word("switch_cost")) {}

  Sharing start(const GpuInfo& gpu, std::span<const ClientInfo> clients) override {
    switch_cost_ = given_switch_cost_.value_or(gpu.context_switch);
    needed_memory_.assign(clients.size(), Bytes{});
    held_.assign(clients.size(), {});
    return {mode_, std::nullopt, given_switch_cost_, false};
  }

  Admission admit(const ClientInfo& filler, Bytes used, const GpuInfo& gpu) override {
    Admission admission = Policy::admit(filler, used, gpu);
    if (admission.admitted && filler.memory_known)
      fillers_memory_ = fillers_memory_ + filler.memory;
    needed_memory_[filler.id.index()] = fillers_memory_;
    return admission;
  }

  Verdict on_launch(const LaunchInfo& launch, Instant now, Actions& actions) override {
    if (launch.client == ClientId{0}) return Verdict::kAdmit;
    if (launch.profiled == Duration{}) ++unprofiled_;
    Held& held = held_[launch.client.index()];
    if (actions.held(launch.client) == 0) {
      if (admit_launch(launch, now)) return Verdict::kAdmit;
      held.oldest = launch.profiled;
    }
    ++held.count;
    return Verdict::kHold;
  }

  void on_bubble_begin(const BubbleInfo& bubble, Instant now, Actions& actions) override {
    fill_end_.reset();
    if (bubble.expected < min_bubble_ || (!bubble.pipeline && !all_bubbles_)) return;
    free_memory_ = bubble.free_memory;
    const Duration usable = scale(bubble.expected, fraction_) - switch_cost_;
    longest_usable_ = std::max(longest_usable_, usable);
    fill_end_ = now + usable;
    for (std::uint32_t id = 1; id < held_.size(); ++id) release_fitting(ClientId{id}, now, actions);
  }

  void on_bubble_end(Instant, Actions&) override { fill_end_.reset(); }

  void add_counts(CounterSet& counters) const override {
    const auto stuck = std::ranges::count_if(held_, [this](const Held& held) {
      return held.count > 0 && held.oldest > longest_usable_;
    });
    if (stuck > 0) counters.add(kStuckFillers, static_cast<std::uint64_t>(stuck));
    if (unprofiled_ > 0) counters.add(kUnprofiled, unprofiled_);
  }

 private:
  struct Held {
    std::size_t count = 0;
    Duration oldest{};  ///< profiled duration of the oldest held launch
  };

  /// If the launch fits into the present bubble, plans it.
  bool admit_launch(const LaunchInfo& launch, Instant now) {
    if (!fill_end_) return false;
    const Bytes needed = needed_memory_[launch.client.index()];
    if (free_memory_ != Bytes{} && needed > free_memory_) return false;
    const Instant end = std::max(now, plan_end_) + launch.profiled;
    if (end > *fill_end_) return false;
    plan_end_ = end;
    return true;
  }

  void release_fitting(ClientId client, Instant now, Actions& actions) {
    Held& held = held_[client.index()];
    while (actions.held(client) > 0) {
      const LaunchInfo& oldest = actions.oldest_held(client);
      held.oldest = oldest.profiled;
      if (!admit_launch(oldest, now)) return;
      actions.release(client);
      --held.count;
    }
  }

  double fraction_;
  Duration min_bubble_;
  bool all_bubbles_;
  Sharing::Mode mode_;
  std::optional<Duration> given_switch_cost_;
  Duration switch_cost_{};
  std::vector<Bytes> needed_memory_;  ///< of each filler and the admitted ones before it
  Bytes fillers_memory_;
  Bytes free_memory_;
  std::vector<Held> held_;
  std::optional<Instant> fill_end_;  ///< in a bubble: no admitted launch is planned beyond it
  Instant plan_end_{};               ///< all admitted launches one after the other
  Duration longest_usable_{};
  std::uint64_t unprofiled_ = 0;
};

}  // namespace

PolicySpec pipefill_spec() {
  const std::string paper = "PipeFill, MLSys'25, arXiv 2410.07192";
  PolicySpec spec;
  spec.name = "pipefill";
  spec.summary = "Launches of known duration that fit into the measured bubble";
  spec.source = paper;
  spec.needs = {.kernel_durations = true, .bubbles = true};
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
  };
  spec.make = [](const ParameterSet& given) { return std::make_unique<PipeFill>(given); };
  return spec;
}

}  // namespace bubblesim::policies
