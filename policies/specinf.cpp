// specinf: fillers run in training's bubbles, speculatively, within a budget of training's
// throughput. SpecInF's algorithm is not public (arXiv 2503.02550): never present results as
// SpecInF's own. Stated: a Bubble Monitor; a kernel scheduler with tokens; a Kernel Barrier; idle
// compute and memory are used; training's throughput is guaranteed under DP, MP and PP; collectives
// leave idle time too. Reconstructed: every rule, on what a hook in the driver library sees
// (launches, late completions).
// Bubble (training_watch.hpp): no computing kernel of training can run; collectives do not compute.
// Tokens are time: a filler's kernel costs what it took before (filler_work.hpp). It passes in a
// bubble if what is outstanding then ends within the room: the rest of the bubble's learned length;
// else `first`, later `growth` of the time that it has lasted. Outstanding is at most the work to
// the next look and one kernel: peers that lost time end bubbles early.
// Guarantee (training_budget.hpp, training_pace.hpp): work in training's way passes only if it is
// worth its cost while the bucket lasts; what gains little passes only while it is full.
// Requests run beside training: after it, equal or before it by priority, on all SMs or, while it
// computes, on half. Each of the six ways is tried; by what it costs and gives some make a ladder
// (request_ways.hpp). Its foot is the fastest that the budget pays for all requests. What is left
// goes to old requests (request_ages.hpp): half of the age and the bucket's fill say how far up; in
// debt the foot, in deep debt bubbles only, beyond a bucket nothing. Training is never held.
// Offline fillers wait for requests.
// Gate: launches that may be held `ask`; training's, and those of requests beside it, `tell`.
// Memory: fillers have what training's peak leaves; what it frees in bubbles is not used.
// Placement: spare_memory_placer.hpp. Sharing: MPS, or streams of one process. Priorities change
// while a client runs (hardware: streams); `priority: fixed` keeps requests after, as `fill`.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "policies/builtin.hpp"
#include "policies/filler_work.hpp"
#include "policies/launch_polls.hpp"
#include "policies/protected_client.hpp"
#include "policies/request_ages.hpp"
#include "policies/request_ways.hpp"
#include "policies/spare_memory_placer.hpp"
#include "policies/training_budget.hpp"
#include "policies/training_pace.hpp"
#include "policies/training_watch.hpp"
#include "sim/policy/declare.hpp"
#include "sim/policy/gate_terms.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;
using namespace std::chrono_literals;

constexpr std::int32_t kTrainingsPriority = 1;
constexpr std::int32_t kAfter = -1;  ///< less training's

/// The ways of requests, to be tried in this order: a bucket may be empty before all are known, so
/// those that may cost least come first.
constexpr RequestWay kWays[] = {{kAfter, 50}, {kAfter, 100}, {0, 50}, {0, 100}, {1, 50}, {1, 100}};
constexpr RequestWay kFixedWay{kAfter, 100};  ///< where priorities cannot change

/// Of a bucket, what new requests may owe and run beside training, and how much more for each usual
/// age. Beyond, they have bubbles only.
constexpr double kOwed = 0.3;
constexpr double kOwedByAge = 0.4;

class SpecInf final : public Policy {
 public:
  explicit SpecInf(const ParameterSet& given)
      : first_(given.duration("first")),
        growth_(given.number("growth")),
        turn_(given.duration("turn")),
        look_(given.duration("look")),
        linger_(given.duration("linger")),
        changes_(given.text("priority") == "changes"),
        one_process_(given.text("sharing") == "one_process"),
        reserve_{static_cast<std::uint64_t>(given.integer("reserve_mib")) << 20},
        watch_(given.duration("first")),
        work_(0, given.duration("first")),
        budget_({given.number("budget"), given.duration("horizon")}),
        pace_(given.duration("reference")),
        ways_(given.number("budget")) {}

  Sharing start(const GpuInfo& gpu, std::span<const ClientInfo> clients) override {
    for (const ClientInfo& client : clients) roles_.push_back(client.role);
    for (const ClientInfo& client : clients.subspan(1)) fillers_.push_back(client.id);
    std::ranges::stable_partition(fillers_, [this](ClientId id) { return is_online(id); });
    const bool changes = changes_ && gpu.priority_changes;
    for (const RequestWay way : changes ? std::span(kWays) : std::span(&kFixedWay, 1)) {
      ways_.add(way);
    }
    work_ = FillerWork(clients.size(), first_);
    budget_.see_ranks(clients.front().ranks);
    return {one_process_ ? SharingMode::kSpatial : SharingMode::kMps};
  }

  ClientSharing share(const ClientInfo& client) override {
    ClientSharing sharing;
    if (client.id == kProtected) sharing.priority = kTrainingsPriority;
    return sharing;
  }

  Admission admit(const ClientInfo& filler, Bytes used, const GpuInfo& gpu) override {
    Admission admission = admit_with_reserve(filler, used, reserve_, gpu);
    if (admission.admitted && filler.role == Role::kOnline && !std::exchange(serves_, true)) {
      budget_.serve_requests();
    }
    return admission;
  }

  Verdict on_launch(const LaunchInfo& launch, Instant now, Actions& actions) override {
    pass_time(now);
    Verdict verdict = Verdict::kAdmit;
    if (launch.client == kProtected) {
      pass_training(launch, now);
    } else {
      verdict = launch_filler(launch, now, actions);
    }
    let_go(now, actions);
    if (verdict == Verdict::kHold) plan_tick(true, now);  // it is not counted as held yet
    return verdict;
  }

  void on_completion(const CompletionInfo& completion, Instant now, Actions& actions) override {
    pass_time(now);
    if (completion.client == kProtected) {
      watch_.complete(completion, disturbed_, now);
      if (completion.kind == WorkKind::kKernel) {
        see_delay();
        disturbed_ = !work_.empty();
      }
    } else {
      const Duration work = work_.complete(completion, now);
      if (is_online(completion.client)) ways_.end_kernel(blamed_, work, watch_.computes());
    }
    after_change(now, actions);
  }

  void on_iteration(const IterationInfo& iteration, Instant now, Actions& actions) override {
    if (iteration.client != kProtected) return;
    pass_time(now);
    const bool first = pace_.mark();
    end_iteration(now);
    if (first) budget_.forgive();
    after_change(now, actions);
  }

  void on_gone(ClientId client, Instant now, Actions& actions) override {
    pass_time(now);
    work_.gone(client, now);
    after_change(now, actions);
  }

  std::optional<Instant> next_tick() const override { return tick_; }

  void on_tick(Instant now, Actions& actions) override {
    pass_time(now);
    watch_.look(now);
    after_change(now, actions);
  }

 private:
  [[nodiscard]] bool is_online(ClientId client) const {
    return roles_[client.index()] == Role::kOnline;
  }

  void pass_training(const LaunchInfo& launch, Instant now) {
    if (is_kernel(launch.kind) && pace_.launch(kernel_key(launch), now)) end_iteration(now);
    watch_.launch(launch, now);
    note_training();
  }

  Verdict launch_filler(const LaunchInfo& launch, Instant now, Actions& actions) {
    if (launch.kind != WorkKind::kKernel) return Verdict::kAdmit;
    const bool goes = actions.held(launch.client) == 0 && passes(launch, now, actions);
    if (!goes && launch.waits) return Verdict::kHold;
    pass_filler(launch, now);
    return Verdict::kAdmit;
  }

  void pass_filler(const LaunchInfo& launch, Instant now) {
    if (watch_.computes() && work_.empty()) budget_.pass({}, turn_);
    turned_ |= !watch_.computes();
    disturbed_ |= is_online(launch.client) && watch_.computes();
    if (is_online(launch.client)) blamed_ = way_;
    work_.pass(launch, now);
    filled_ = true;
    if (is_online(launch.client)) served_ = now;
  }

  /// When training computes again, it finds a GPU that fillers had, or have.
  void note_training() {
    const bool computed = std::exchange(computed_, watch_.computes());
    if (computed || !computed_) return;
    if (turned_) budget_.pass({}, turn_);
    turned_ = false;
    disturbed_ |= !work_.empty();
  }

  /// A kernel of training ended: beside requests, its delay tells what they cost.
  void see_delay() {
    std::optional<Duration> cost;
    if (disturbed_ && watch_.delay()) cost = ways_.delay(blamed_, *watch_.delay());
    if (serves_) budget_.see_cost(cost);
  }

  void pass_time(Instant now) {
    const Duration time = now - std::exchange(last_, now);
    if (serves_ && !pace_.measures(now)) ways_.elapse(time);
    budget_.pass(time, watch_.computes() && !work_.empty() ? time : Duration{});
  }

  void end_iteration(Instant now) {
    watch_.begin_iteration();
    const Duration exposed = budget_.exposed();
    const std::optional<Duration> loss =
        pace_.end_iteration(filled_, {exposed, budget_.charged(), 2 * budget_.most()}, now);
    budget_.end_iteration(loss);
    if (serves_) ways_.end_iteration(loss);
    budget_.see_iteration(pace_.reference().value_or(Duration{}), pace_.spread());
    filled_ = !work_.empty();
  }

  /// A request is being served, or was until just now.
  [[nodiscard]] bool serves(Instant now, const Actions& actions) const {
    if (!serves_) return false;
    for (const ClientId filler : fillers_) {
      if (!is_online(filler)) break;
      if (work_.launches_of(filler) > 0 || actions.held(filler) > 0) return true;
    }
    return served_ && now < *served_ + linger_;
  }

  /// What requests have from now on, and whether their launches must ask for it.
  void look_at_budget(Instant now, Actions& actions) {
    if (!serves_) return;
    note_requests(!pace_.measures(now) && serves(now, actions), now);
    way_ = way_for(now);
    if (!work_.empty()) blamed_ = way_;
    beside_ = watch_.computes();
    const bool asks = !way_ || pace_.measures(now);
    const RequestWay has{way_ ? ways_[*way_].priority : kAfter,
                         way_ && watch_.computes() ? ways_[*way_].percentage : 100};
    for (const ClientId filler : fillers_) {
      if (!is_online(filler)) break;
      if (has.priority != has_.priority) {
        actions.set_priority(filler, kTrainingsPriority + has.priority);
      }
      if (has.percentage != has_.percentage) actions.set_sm_percentage(filler, has.percentage);
      if (asks != asks_) actions.set_asking(filler, asks);
    }
    has_ = has;
    asks_ = asks;
  }

  void note_requests(bool are_there, Instant now) {
    if (ages_.is_there() && beside_ && way_) ways_.pass(*way_, now - looked_);
    looked_ = now;
    ages_.note(are_there, now);
  }

  /// The fuller the bucket, the younger are requests that get the dearer ways: the oldest first.
  /// Nothing: bubbles only.
  [[nodiscard]] std::optional<std::size_t> way_for(Instant now) {
    const double fill = budget_.fill();
    const double may_owe = kOwed + kOwedByAge * ages_.of(now);
    if (budget_.is_overdrawn() || fill < -may_owe) return std::nullopt;
    if (fill <= 0) return ways_.at(0);
    if (const auto way = ages_.is_there() ? ways_.to_try() : std::nullopt) return way;
    return ways_.at(std::min(1.0, ages_.of(now) / 2 + fill));
  }

  /// How much of fillers' work may be outstanding in this bubble.
  [[nodiscard]] Duration room(Instant now) const {
    const std::optional<Instant> end = watch_.expected_end();
    if (end && now < *end) return *end - now;
    const Duration lasted = now - (end ? *end : watch_.bubble_begin());
    return std::max(first_, scale(lasted, growth_));
  }

  [[nodiscard]] bool passes(const LaunchInfo& launch, Instant now, Actions& actions) {
    if (pace_.measures(now)) return false;
    const bool online = is_online(launch.client);
    if (!online && serves(now, actions)) return false;
    if (online) {
      look_at_budget(now, actions);
      if (way_) return true;
    }
    // Requests in bubbles may owe a bucket, no more: estimates may be wrong for ever.
    if (online && budget_.is_overdrawn()) return false;
    const Duration gain = work_.estimate(launch);
    const Duration work = work_.left(now) + gain;
    const Duration turn = turned_ || !work_.empty() ? Duration{} : turn_;
    if (watch_.computes()) return !online && budget_.is_worth(gain, work + turn);
    if (work_.left(now) > look_) return false;
    const Duration room = this->room(now);
    if (work > room) return budget_.is_worth(gain, work - room + turn);
    return turned_ || online || budget_.is_worth(room, turn_);
  }

  void after_change(Instant now, Actions& actions) {
    note_training();
    let_go(now, actions);
  }

  void let_go(Instant now, Actions& actions) {
    bool held = false;
    look_at_budget(now, actions);
    for (const ClientId filler : fillers_) held |= let_filler_go(filler, now, actions);
    plan_tick(held, now);
  }

  /// Whether a launch is held still.
  [[nodiscard]] bool let_filler_go(ClientId filler, Instant now, Actions& actions) {
    while (actions.held(filler) > 0) {
      if (!passes(actions.oldest_held(filler), now, actions)) return true;
      pass_filler(actions.oldest_held(filler), now);
      actions.release(filler);
    }
    return false;
  }

  /// While something is held: budget and room grow with time.
  void plan_tick(bool held, Instant now) {
    tick_.reset();
    if (!held) return;
    tick_ = now + look_;
    if (pace_.measures(now)) tick_ = std::max(*tick_, pace_.deadline());
    if (watch_.overdue_at()) tick_ = std::min(*tick_, std::max(now + 1us, *watch_.overdue_at()));
  }

  Duration first_;
  double growth_;
  Duration turn_;
  Duration look_;
  Duration linger_;
  bool changes_;
  bool one_process_;
  Bytes reserve_;
  TrainingWatch watch_;
  FillerWork work_;
  TrainingBudget budget_;
  TrainingPace pace_;
  RequestWays ways_;
  std::vector<Role> roles_;
  std::vector<ClientId> fillers_;  ///< online ones first
  bool serves_ = false;     ///< an online filler was admitted
  bool asks_ = true;        ///< launches of online fillers do, as at the start
  RequestWay has_{kAfter, 100};
  std::optional<std::size_t> way_;     ///< of requests, now; nothing: bubbles only
  std::optional<std::size_t> blamed_;  ///< while their work was on the GPU last
  bool beside_ = false;                ///< training computed when last looked
  RequestAges ages_;
  Instant looked_{};
  bool filled_ = false;     ///< fillers ran, or held training, in this iteration
  bool turned_ = false;     ///< and since training computed last
  bool computed_ = false;   ///< training, when last looked at
  bool disturbed_ = false;  ///< fillers were on the GPU since training came back
  std::optional<Instant> served_;
  Instant last_{};
  std::optional<Instant> tick_;
};

}  // namespace

PolicySpec specinf_spec() {
  const std::string ours = "reconstructed";
  PolicySpec spec;
  spec.name = "specinf";
  spec.summary = "Speculative filling of bubbles within a budget of training (reconstructed)";
  spec.source = "reconstructed: SpecInF, arXiv 2503.02550 (abstract and summaries)";
  spec.reconstruction = "its algorithm is not public: rules made for what its abstract states";
  spec.needs = {.completions = true, .iterations = true};
  spec.parameters = {
      declare_number("budget", 0.02, 0.0001, 0.9,
                     {"", "Of training's throughput, that fillers may cost.",
                      "reconstructed: the abstract says guaranteed"}),
      declare_duration("horizon", 10s, 1ms, 1000s,
                       {"", "The budget of so long may be spent at once; beside requests of half.",
                        ours}),
      declare_duration("first", 100us, 1us, 1s,
                       {"", "Fillers' work outstanding when a bubble of unknown length begins.",
                        ours}),
      declare_number("growth", 0.5, 0, 100,
                     {"", "And, later, this part of the time that it has lasted.", ours}),
      declare_duration("turn", 20us, 0ns, 100ms,
                       {"", "What training loses when it comes back to a GPU that fillers had.",
                        "client_switch of configs/devices/a100-40gb.json, fitted"}),
      declare_duration("look", 100us, 1us, 1s,
                       {"", "A held launch looks again at least so often; in bubbles, fillers have"
                            " so much work outstanding, and the kernel behind it.",
                        ours}),
      declare_choice("priority", {"changes", "fixed"},
                     {"", "Of requests: as the budget allows, by what each was seen to cost; below"
                          " training's.",
                      ours}),
      declare_choice("sharing", {"mps", "one_process"},
                     {"", "Fillers are processes of their own, or streams of training's.", ours}),
      declare_duration("ask", kMeasuredGate.ask, 0ns, 1ms,
                       {"", "A launch that may be held goes on so much later. Simulated only.",
                        "fill on an H200: the median decision (tests/validation/h200)"}),
      declare_duration("tell", kMeasuredGate.tell, 0ns, 1ms,
                       {"", "And one that is only told: training's while nothing may hold it.",
                        "fill on an H200: 0.48 to 0.67 us (tests/validation/h200)"}),
      declare_duration("linger", 50us, 0ns, 1s,
                       {"", "A request goes on if its next launch comes within this.", ours}),
      declare_integer("reserve_mib", 1024, 0, 1 << 20,
                      {"MiB", "Memory that must stay free beside a filler.",
                       "Dilu RCKM.c and its client: spare memory of 1 GiB"}),
      declare_duration("reference", 5s, 1ms, 100000s,
                       {"", "Fillers are kept out for the first so long: iterations without them.",
                        ours}),
      spare_memory_parameter(),
  };
  spec.make_placer = make_spare_memory_placer;
  spec.demands = {{SystemFeature::kMps, "sharing", {"mps"}},
                  {SystemFeature::kOneProcess, "sharing", {"one_process"}},
                  {SystemFeature::kLaunchInterception},
                  {SystemFeature::kChangingPriority, "priority", {"changes"}}};
  spec.training_gate = [](const ParameterSet&) { return TrainingGate::kTells; };
  spec.not_searched = {"reserve_mib", "ask", "tell"};
  // What the bucket got while fillers were kept out is spent slowly: on the sample in nine times
  // as long.
  spec.settling = [](const ParameterSet& given, Duration iteration) {
    return 10 * std::max(given.duration("reference"), iteration) + given.duration("horizon");
  };
  spec.make = [](const ParameterSet& given) { return std::make_unique<SpecInf>(given); };
  return spec;
}

}  // namespace bubblesim::policies
