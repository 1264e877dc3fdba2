// specinf: fillers run in training's bubbles, speculatively, within a budget of training's
// throughput (reconstructed from what SpecInF's abstract states, arXiv 2503.02550: a Bubble
// Monitor, a scheduler that grants tokens, a Kernel Barrier, a guarantee for training).
//
// Bubble Monitor: training_watch.hpp. A bubble is a time without a computing kernel of training
// that can run; collectives do not compute. Seen by launches and by completions noticed late.
// Tokens are time: a filler's kernel costs as long as it took before (filler_work.hpp). A kernel
// passes in a bubble if what is outstanding then ends within the room: what is left of the
// bubble's length at this place of the iteration last time; where that is not known or over,
// `first` at the beginning and `growth` of the time that it has lasted, later. However long the
// room, what is outstanding does not outlast the next look by more than one kernel: more would not
// fill the bubble better, and would stand in training's way if the bubble ended early.
// Guarantee: training_budget.hpp and training_pace.hpp. What would stand in training's way passes
// only if it is worth its cost while the budget lasts. When training computes again nothing else
// passes, so what is outstanding then was bound by the room.
// Requests, by what the budget holds: three quarters of it, and the Kernel Barrier (`barrier:
// requests`) holds training's launches while a request is served; half, and training's launches
// wait beside it for outstanding kernels that take longer than `run_ahead`; some, and its kernels
// run beside training's, their blocks first; none, and it has bubbles, till it owes as much as the
// bucket holds. The barrier is for requests of which the bucket holds two and that take longer
// beside training than alone (request_times.hpp). While one may come, training's launches wait
// likewise: kernels that its host had launched far ahead would stand beside the request long after
// the barrier fell. If the GPU runs dry later, that time is charged. Offline fillers wait while a
// request is served.
// Gate: launches that may be held ask, and go on `ask` later; others tell (`tell`): training's ask
// only while the budget lets a request hold them. On a real GPU the gate takes what it takes.
// Admission: where training and what was admitted before leave enough memory, less a reserve; the
// same rule may choose the GPU (spare_memory_placer.hpp).
//
// Sharing: MPS; requests at the higher client priority, or, without online fillers, training. Only
// kernels are gated. Ties: at one instant clients in order. Parameters: see the declarations.
// Reconstructed: every rule; nothing is used that a hook in the driver library does not see.
#include <algorithm>
#include <array>
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
#include "policies/request_times.hpp"
#include "policies/spare_memory_placer.hpp"
#include "policies/training_budget.hpp"
#include "policies/training_pace.hpp"
#include "policies/training_watch.hpp"
#include "sim/policy/declare.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;
using namespace std::chrono_literals;

/// What a request may have, from what costs training least: bubbles only; training's blocks as they
/// drain; the same with little of training on the GPU; the GPU for itself.
enum class Means : std::uint8_t { kBubbles, kBeside, kClose, kBarrier };

/// Of the bucket, what must be there for it to begin, and to go on.
struct Price {
  Means means;
  double begins;
  double ends;
};
constexpr std::array kPrices{Price{Means::kBarrier, 3.0 / 4, 1.0 / 2},
                             Price{Means::kClose, 1.0 / 2, 3.0 / 8},
                             Price{Means::kBeside, 1.0 / 32, 0}};

constexpr const Price& price_of(Means means) {
  return *std::ranges::find(kPrices, means, &Price::means);
}

class SpecInf final : public Policy {
 public:
  explicit SpecInf(const ParameterSet& given)
      : first_(given.duration("first")),
        growth_(given.number("growth")),
        turn_(given.duration("turn")),
        look_(given.duration("look")),
        linger_(given.duration("linger")),
        run_ahead_(given.duration("run_ahead")),
        may_hold_training_(given.text("barrier") == "requests"),
        reserve_{static_cast<std::uint64_t>(given.integer("reserve_mib")) << 20},
        watch_(given.duration("first")),
        work_(0, given.duration("first")),
        budget_({given.number("budget"), given.duration("horizon")}),
        pace_(given.duration("reference")) {}

  Sharing start(const GpuInfo&, std::span<const ClientInfo> clients) override {
    for (const ClientInfo& client : clients) roles_.push_back(client.role);
    for (const ClientInfo& client : clients.subspan(1)) fillers_.push_back(client.id);
    std::ranges::stable_partition(fillers_, [this](ClientId id) { return is_online(id); });
    may_hold_training_ &= has_online();
    work_ = FillerWork(clients.size(), first_);
    budget_.see_ranks(clients.front().ranks);
    return {SharingMode::kMps};
  }

  ClientSharing share(const ClientInfo& client) override {
    // MPS has two levels. Requests' blocks go first, or, without requests, training's.
    const bool first = has_online() ? client.role == Role::kOnline : client.id == kProtected;
    ClientSharing sharing;
    sharing.priority = first ? 1 : 0;
    return sharing;
  }

  Admission admit(const ClientInfo& filler, Bytes used, const GpuInfo& gpu) override {
    Admission admission = admit_with_reserve(filler, used, reserve_, gpu);
    serves_ |= admission.admitted && filler.role == Role::kOnline;
    return admission;
  }

  Verdict on_launch(const LaunchInfo& launch, Instant now, Actions& actions) override {
    pass_time(now, actions);
    const Verdict verdict =
        launch.client == kProtected ? launch_training(launch, now, actions)
                                    : launch_filler(launch, now, actions);
    let_go(now, actions);
    return verdict;
  }

  void on_completion(const CompletionInfo& completion, Instant now, Actions& actions) override {
    pass_time(now, actions);
    if (completion.client == kProtected) {
      watch_.complete(completion, disturbed_, now);
      if (completion.kind == WorkKind::kKernel) disturbed_ = !work_.empty();
    } else {
      work_.complete(completion, now);
    }
    after_change(now, actions);
  }

  void on_iteration(const IterationInfo& iteration, Instant now, Actions& actions) override {
    if (iteration.client != kProtected) return;
    pass_time(now, actions);
    const bool first = pace_.mark();
    end_iteration(now);
    if (first) budget_.forgive();
    after_change(now, actions);
  }

  void on_gone(ClientId client, Instant now, Actions& actions) override {
    pass_time(now, actions);
    work_.gone(client, now);
    after_change(now, actions);
  }

  std::optional<Instant> next_tick() const override { return tick_; }

  void on_tick(Instant now, Actions& actions) override {
    pass_time(now, actions);
    watch_.look(now);
    after_change(now, actions);
  }

 private:
  [[nodiscard]] bool is_online(ClientId client) const {
    return roles_[client.index()] == Role::kOnline;
  }
  [[nodiscard]] bool has_online() const {
    return !fillers_.empty() && is_online(fillers_.front());
  }

  Verdict launch_training(const LaunchInfo& launch, Instant now, Actions& actions) {
    const bool may_wait = launch.kind == WorkKind::kKernel && launch.waits;
    if (may_wait && (holds_training(actions) || must_hold_training(now, actions))) {
      return Verdict::kHold;
    }
    pass_training(launch, now);
    return Verdict::kAdmit;
  }

  void pass_training(const LaunchInfo& launch, Instant now) {
    if (is_kernel(launch.kind) && pace_.launch(kernel_key(launch), now)) end_iteration(now);
    watch_.launch(launch, now);
    note_training();
  }

  Verdict launch_filler(const LaunchInfo& launch, Instant now, Actions& actions) {
    if (launch.kind != WorkKind::kKernel) return Verdict::kAdmit;
    if (actions.held(launch.client) > 0 || !passes(launch, now, actions)) return Verdict::kHold;
    pass_filler(launch, now);
    return Verdict::kAdmit;
  }

  void pass_filler(const LaunchInfo& launch, Instant now) {
    if (watch_.computes() && work_.empty()) budget_.pass({}, {turn_});
    turned_ |= !watch_.computes();
    work_.pass(launch, now);
    filled_ = true;
    if (is_online(launch.client)) served_ = now;
  }

  /// When training computes again, it finds a GPU that fillers had, or have.
  void note_training() {
    const bool computed = std::exchange(computed_, watch_.computes());
    if (computed || !computed_) return;
    if (turned_) budget_.pass({}, {turn_});
    turned_ = false;
    disturbed_ |= !work_.empty();
  }

  void pass_time(Instant now, Actions& actions) {
    const Duration time = now - std::exchange(last_, now);
    const bool waits = holds_training(actions);
    filled_ |= waits;
    TrainingBudget::Way way;
    if (waits && means_ != Means::kBubbles) {
      (watch_.computes() ? way.held : way.still) = time;
    } else if (waits) {
      late_ += time;
    } else if (watch_.empty()) {
      way.still = catch_up(time);
    } else if (watch_.computes() && !work_.empty()) {
      way.exposed = time;
    }
    budget_.pass(time, way);
  }

  /// Training that waits before a request, so that its host does not run ahead, loses nothing while
  /// its kernels last. What the GPU stands still later, for as long as it waited, it lost.
  Duration catch_up(Duration time) {
    const Duration lost = std::min(time, late_);
    late_ -= lost;
    return lost;
  }

  void end_iteration(Instant now) {
    watch_.begin_iteration();
    const Duration exposed = budget_.exposed();
    const std::optional<Duration> loss =
        pace_.end_iteration(filled_, {exposed, budget_.charged(), 2 * budget_.most()}, now);
    budget_.end_iteration(loss);
    budget_.see_iteration(pace_.reference().value_or(Duration{}), pace_.spread());
    filled_ = !work_.empty();
    late_ = {};
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

  /// What the budget leaves to requests. Each step begins with more than it ends.
  void look_at_budget(Instant now, const Actions& actions) {
    const Means before = std::exchange(means_, Means::kBubbles);
    if (pace_.measures(now) || !serves(now, actions)) return requests_.end(now);
    const double full = to_seconds(budget_.credit()) / to_seconds(budget_.most());
    for (const Price& price : kPrices) {
      if (price.means == Means::kBarrier && !affords_barrier()) continue;
      if (price.means >= Means::kClose && !requests_.gain_alone()) continue;
      if (full <= (before >= price.means ? price.ends : price.begins)) continue;
      means_ = price.means;
      break;
    }
    requests_.serve(share_of(means_), now);
  }

  static RequestTimes::Share share_of(Means means) {
    switch (means) {
      case Means::kBarrier: return RequestTimes::Share::kAlone;
      case Means::kClose: return RequestTimes::Share::kOther;
      case Means::kBeside: return RequestTimes::Share::kBeside;
      case Means::kBubbles: break;
    }
    return RequestTimes::Share::kNone;
  }

  /// A request's whole time is in the bucket.
  [[nodiscard]] bool affords_barrier() const {
    return may_hold_training_ && 2 * requests_.alone() < budget_.most();
  }

  /// A launch of training waits.
  [[nodiscard]] bool holds_training(const Actions& actions) const {
    return may_hold_training_ && actions.held(kProtected) > 0;
  }
  [[nodiscard]] bool must_hold_training(Instant now, const Actions& actions) {
    if (!may_hold_training_) return false;
    look_at_budget(now, actions);
    return means_ == Means::kBarrier || runs_far_ahead(now);
  }

  /// Training's host, further than is good for a request that has, or may get, the GPU for itself.
  [[nodiscard]] bool runs_far_ahead(Instant now) const {
    return serves_ && !pace_.measures(now) && keeps_close() && watch_.kernels() > 1 &&
           watch_.ahead() > run_ahead_;
  }
  [[nodiscard]] bool keeps_close() const {
    if (means_ != Means::kBubbles) return means_ >= Means::kClose;
    return affords_barrier() && requests_.gain_alone() &&
           budget_.credit() > scale(budget_.most(), price_of(Means::kClose).begins);
  }

  /// Asking delays each launch of training, so it asks only while it may be held.
  void let_training_ask(Instant now, Actions& actions) {
    if (!may_hold_training_) return;
    look_at_budget(now, actions);
    const bool asks =
        means_ >= Means::kClose || holds_training(actions) || runs_far_ahead(now);
    if (std::exchange(asks_, asks) != asks) actions.set_asking(kProtected, asks);
  }

  /// How much of fillers' work may be outstanding in this bubble.
  [[nodiscard]] Duration room(Instant now) const {
    const std::optional<Instant> end = watch_.expected_end();
    if (end && now < *end) return *end - now;
    const Duration lasted = now - (end ? *end : watch_.bubble_begin());
    return std::max(first_, scale(lasted, growth_));
  }

  [[nodiscard]] bool passes(const LaunchInfo& launch, Instant now, const Actions& actions) {
    if (pace_.measures(now)) return false;
    const bool online = is_online(launch.client);
    if (!online && serves(now, actions)) return false;
    if (online) {
      look_at_budget(now, actions);
      if (means_ != Means::kBubbles) return true;
    }
    // Requests in bubbles may owe what the bucket holds, no more: estimates may be wrong for ever.
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
    while (holds_training(actions)) {
      held = must_hold_training(now, actions);
      if (held) break;
      pass_training(actions.oldest_held(kProtected), now);
      actions.release(kProtected);
    }
    for (const ClientId filler : fillers_) held |= let_filler_go(filler, now, actions);
    let_training_ask(now, actions);
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
  Duration run_ahead_;
  bool may_hold_training_;
  Bytes reserve_;
  TrainingWatch watch_;
  FillerWork work_;
  TrainingBudget budget_;
  TrainingPace pace_;
  std::vector<Role> roles_;
  std::vector<ClientId> fillers_;  ///< online ones first
  bool serves_ = false;     ///< an online filler was admitted
  bool asks_ = true;        ///< training's launches do, as at the start
  Means means_ = Means::kBubbles;
  bool filled_ = false;     ///< fillers ran, or held training, in this iteration
  bool turned_ = false;     ///< and since training computed last
  bool computed_ = false;   ///< training, when last looked at
  bool disturbed_ = false;  ///< fillers were on the GPU since training came back
  std::optional<Instant> served_;
  RequestTimes requests_;
  Duration late_{};  ///< training's host, by what it waited for no request in this iteration
  Instant last_{};
  std::optional<Instant> tick_;
};

}  // namespace

PolicySpec specinf_spec() {
  const std::string ours = "reconstructed";
  const std::string gate = "gate_bench: medians of the fastest run; the host looks";
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
      declare_duration("horizon", 3s, 1ms, 1000s,
                       {"", "The budget of so long may be spent at once.", ours}),
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
      declare_choice("barrier", {"requests", "fillers"},
                     {"", "Whose kernels it holds; requests: training's too, for online fillers.",
                      ours}),
      declare_duration("run_ahead", 500us, 0ns, 1000s,
                       {"", "barrier requests: training's outstanding kernels beside requests, and"
                            " before one that may hold training.",
                        ours}),
      declare_duration("ask", 1100ns, 0ns, 1ms,
                       {"", "A launch that may be held goes on so much later. Simulated only.",
                        gate}),
      declare_duration("tell", 500ns, 0ns, 1ms,
                       {"", "And one that is only told: training's while nothing may hold it.",
                        "fill on an H200: 0.48 to 0.67 us (tests/validation/h200)"}),
      declare_duration("linger", 50us, 0ns, 1s,
                       {"", "A request goes on if its next launch comes within this.", ours}),
      declare_integer("reserve_mib", 1024, 0, 1 << 20,
                      {"MiB", "Memory that must stay free beside a filler.",
                       "Dilu RCKM.c and its client: spare memory of 1 GiB"}),
      declare_duration("reference", 1s, 1ms, 100000s,
                       {"", "Fillers are kept out for the first so long: iterations without them.",
                        ours}),
      spare_memory_parameter(),
  };
  spec.make_placer = make_spare_memory_placer;
  spec.demands = {{SystemFeature::kMps}, {SystemFeature::kLaunchInterception}};
  spec.not_searched = {"reserve_mib", "ask", "tell"};
  spec.settling = [](const ParameterSet& given, Duration iteration) {
    return std::max(2 * given.duration("reference"), 2 * iteration) + given.duration("horizon");
  };
  spec.make = [](const ParameterSet& given) { return std::make_unique<SpecInf>(given); };
  return spec;
}

}  // namespace bubblesim::policies
