// antman: a filler's framework inserts idle time, whose amount a coordinator sets (AntMan,
// OSDI'20). One percentage p, 0 to 100, holds for all fillers. Each filler's throttle turns p into
// sleep after a mini-batch or between the operations of the next one (antman_throttle.hpp). At p =
// 0 a filler is suspended when its mini-batch ends; at 100 nothing is inserted. The coordinator
// lowers p when the protected job's iterations get longer than alone, else raises it
// (antman_coordinator.hpp). `control: fixed` keeps p as given. A mini-batch ends at a mark of an
// iteration or a pass. Its operations are the filler's launches of every kind. A filler without
// marks is only suspended, never slowed (counter antman_fillers_without_batches). A filler's
// launches keep their order over its host threads.
//
// Memory: what does not fit beside the protected job is in host memory, as AntMan's allocator
// overflows to pinned memory (resident_memory.hpp). When a filler ends, the others take its room at
// the end of their mini-batch. Host memory is never full. Which tensors overflow is not chosen.
// Sharing: time slices, or MPS; the only public runs (TGS's artifact, scripts/test_antman.sh) start
// no MPS. Ties: at one instant fillers go in client order.
// Source: OSDI'20; for the throttle gpu_resource_management.cc of
// alibaba/GPU-scheduler-for-deep-learning at 2069b38 (its fixed cost is 50 us; suspended jobs look
// every 100 us).
// Reconstructed: the coordinator's law (additive increase, multiplicative decrease) and every
// number in it; its reference, the median of the first iterations, which run without fillers; a job
// that is silent for a second has stopped, and p is 100; the last filler's memory overflows first.
// Differs: sleep in a mini-batch is spread evenly over all launches (executor.cc:1503-1541: only
// AsyncOpKernels wait, such as receives and collectives, each for the n-th part of what is left); a
// mini-batch that ends suspended leaves no sleep to the next one (the code keeps the one before's).
#include <algorithm>
#include <memory>

#include "policies/antman_coordinator.hpp"
#include "policies/antman_throttle.hpp"
#include "policies/builtin.hpp"
#include "policies/protected_client.hpp"
#include "policies/resident_memory.hpp"
#include "sim/policy/declare.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;
using namespace std::chrono_literals;

constexpr CounterSpec kNoReference{
    "antman_no_reference", Severity::kNotice,
    "the protected job ended no iteration in 60 s: fillers ran at the percentage"};
constexpr CounterSpec kNoBatches{
    "antman_fillers_without_batches", Severity::kNotice,
    "fillers that launched but ended no mini-batch: their throttle had nothing to go by"};

AntManCoordinatorConstants coordinator_constants(const ParameterSet& given) {
  return {.tolerance = given.number("tolerance"),
          .first = given.integer("first_percentage"),
          .increase = given.integer("increase"),
          .decrease = given.number("decrease")};
}

class AntMan final : public Policy {
 public:
  explicit AntMan(const ParameterSet& given)
      : is_fixed_(given.text("control") == "fixed"),
        percentage_(given.integer("percentage")),
        poll_(given.duration("suspend_poll")),
        fixed_cost_(given.duration("fixed_cost")),
        mode_(given.text("sharing") == "spatial" ? SharingMode::kMps
                                                 : SharingMode::kTimeSliced),
        reserve_{static_cast<std::uint64_t>(given.integer("reserve_mib")) << 20},
        coordinator_(coordinator_constants(given), reference_constants(given)) {}

  Sharing start(const GpuInfo& gpu, std::span<const ClientInfo> clients) override {
    fillers_.assign(clients.size(), Filler(fixed_cost_));
    memory_.start(gpu, clients, reserve_);
    return {mode_, std::nullopt, std::nullopt, true};
  }

  ClientSharing share(const ClientInfo& client) override {
    fillers_[client.id.index()].resident = memory_.resident_of(client.id);
    return {.resident = memory_.resident_of(client.id)};
  }

  /// Memory beyond the device's overflows to host memory.
  Admission admit(const ClientInfo&, Bytes, const GpuInfo&) override { return {}; }

  Verdict on_launch(const LaunchInfo& launch, Instant now, Actions&) override {
    if (launch.client == kProtected) {
      last_protected_ = now;
      has_stopped_ = false;
      return Verdict::kAdmit;
    }
    Filler& filler = fillers_[launch.client.index()];
    if (filler.held++ > 0) return Verdict::kHold;
    filler.wakes = earliest(filler, now);
    if (!filler.wakes || *filler.wakes > now) return Verdict::kHold;
    filler.held = 0;
    filler.wakes.reset();
    return Verdict::kAdmit;
  }

  void on_iteration(const IterationInfo& iteration, Instant now, Actions& actions) override {
    if (iteration.client != kProtected) {
      return end_batch(iteration.client, now, actions);
    }
    if (is_fixed_) return;
    coordinator_.end_iteration(iteration.length, now);
    resume_suspended(now);
  }

  void on_gone(ClientId client, Instant, Actions&) override {
    Filler& gone = fillers_[client.index()];
    gone.held = 0;
    gone.wakes.reset();
    memory_.remove(client);
  }

  std::optional<Instant> next_tick() const override {
    std::optional<Instant> next;
    const auto earlier = [&next](Instant at) { next = next ? std::min(*next, at) : at; };
    bool suspended = false;
    for (const Filler& filler : fillers_) {
      if (filler.held == 0) continue;
      suspended = suspended || !filler.wakes;
      if (filler.wakes) earlier(*filler.wakes);
    }
    if (!suspended || has_stopped_) return next;
    earlier(last_protected_ + kStoppedAfter);
    if (!is_fixed_ && !no_reference_ && !coordinator_.reference().value()) {
      earlier(std::max(coordinator_.reference().deadline(), last_protected_));
    }
    return next;
  }

  void on_tick(Instant now, Actions& actions) override {
    if (now >= last_protected_ + kStoppedAfter) has_stopped_ = true;
    if (!is_fixed_ && !coordinator_.is_measuring(now) && !coordinator_.reference().value()) {
      no_reference_ = true;
    }
    resume_suspended(now);
    for (std::size_t id = 1; id < fillers_.size(); ++id) {
      wake(ClientId{static_cast<std::uint32_t>(id)}, now, actions);
    }
  }

  void add_counts(CounterSet& counters) const override {
    if (no_reference_) counters.add(kNoReference);
    const auto endless = std::ranges::count_if(
        fillers_, [](const Filler& filler) { return filler.launched && !filler.has_batches; });
    counters.add(kNoBatches, static_cast<std::uint64_t>(endless));
  }

 private:
  struct Filler {
    explicit Filler(Duration fixed_cost) : throttle(fixed_cost) {}
    AntManThrottle throttle;
    std::size_t held = 0;
    std::optional<Instant> wakes;  ///< when its oldest held launch goes; nothing: suspended, or
                                   ///< none is held
    Instant held_since{};
    Instant sleeps_until{};  ///< end of the sleep after a mini-batch
    Instant batch_begin{};
    bool in_batch = false;
    bool launched = false;
    bool has_batches = false;
    std::optional<Bytes> resident;
  };

  [[nodiscard]] std::int64_t percentage() const {
    if (has_stopped_) return 100;
    return is_fixed_ || no_reference_ ? percentage_ : coordinator_.percentage();
  }

  /// When the filler's next operation may go; nothing: it is suspended. Called once an operation,
  /// when no earlier operation is held.
  std::optional<Instant> earliest(Filler& filler, Instant now) {
    filler.launched = true;
    Instant at = now;
    if (!filler.in_batch) {
      if (percentage() == 0) {
        filler.held_since = now;
        return std::nullopt;
      }
      at = std::max(now, filler.sleeps_until);
      filler.in_batch = true;
      filler.batch_begin = at;
    }
    return at + filler.throttle.begin_operation();
  }

  void wake(ClientId id, Instant now, Actions& actions) {
    Filler& filler = fillers_[id.index()];
    while (filler.held > 0 && filler.wakes && *filler.wakes <= now) {
      actions.release(id);
      --filler.held;
      filler.wakes.reset();
      if (filler.held > 0) filler.wakes = earliest(filler, now);
    }
  }

  /// A suspended job looks every poll period from its suspension on.
  void resume_suspended(Instant now) {
    if (percentage() == 0) return;
    for (Filler& filler : fillers_) {
      if (filler.held == 0 || filler.wakes) continue;
      const Duration waited = now - filler.held_since;
      const Instant looks = filler.held_since + (waited + poll_ - Duration{1}) / poll_ * poll_;
      filler.wakes = earliest(filler, looks);
    }
  }

  void end_batch(ClientId id, Instant now, Actions& actions) {
    Filler& filler = fillers_[id.index()];
    filler.has_batches = true;
    if (filler.in_batch) {
      const std::int64_t share = percentage();
      const Duration length = std::max(Duration{}, now - filler.batch_begin);
      const Duration sleep = filler.throttle.end_batch(length, share == 0 ? 100 : share);
      filler.sleeps_until = now + sleep;
      filler.in_batch = false;
    }
    const auto resident = memory_.resident_of(id);
    if (!resident || resident == filler.resident) return;
    filler.resident = resident;
    actions.set_resident_memory(id, *resident);
  }

  bool is_fixed_;
  std::int64_t percentage_;
  Duration poll_;
  Duration fixed_cost_;
  SharingMode mode_;
  Bytes reserve_;
  AntManCoordinator coordinator_;
  ResidentMemory memory_;
  std::vector<Filler> fillers_;  ///< [0] is not used
  Instant last_protected_{};
  bool has_stopped_ = false;
  bool no_reference_ = false;
};

std::vector<ParameterSpec> antman_parameters() {
  const std::string code = "AntMan re-implementation, gpu_resource_management.cc";
  const std::string ours = "reconstructed: the coordinator is not public";
  return {
      declare_choice("control", {"feedback", "fixed"},
                     {"", "The coordinator sets the percentage, or it is `percentage` for ever.",
                      "OSDI'20; fixed in the artifact of TGS"}),
      declare_integer("percentage", 70, 0, 100,
                      {"%", "The fixed percentage; also where no reference is found.",
                       "TGS artifact, config/test_antman"}),
      declare_integer("first_percentage", 10, 0, 100,
                      {"%", "The coordinator's first one, once the reference is known.", ours}),
      declare_integer("increase", 10, 0, 100,
                      {"%", "Added after an iteration that was not slowed down.", ours}),
      declare_number("decrease", 0.5, 0, 1,
                     {"", "The percentage's factor after one that was.", ours}),
      declare_number("tolerance", 0.03, 0, 10,
                     {"", "An iteration longer by more than this part was slowed down.", ours}),
      declare_duration("fixed_cost", 50us, 0ns, 1s,
                       {"", "Taken off the sleep after a mini-batch.", code}),
      declare_duration("suspend_poll", 100us, 1ns, 10s,
                       {"", "A suspended job looks again so often.", code}),
      declare_choice(
          "sharing", {"time_sliced", "spatial"},
          {"", "How kernels of the jobs share the GPU.", "TGS artifact, test_antman.sh: no MPS"}),
      declare_integer("reserve_mib", 1024, 0, 1 << 20,
                      {"MiB", "Device memory that is kept free.", "reconstructed: as TGS's"}),
  };
}

}  // namespace

PolicySpec antman_spec() {
  PolicySpec spec;
  spec.name = "antman";
  spec.summary = "Idle time inside fillers by feedback from training's iterations (reconstructed)";
  spec.source = "AntMan, OSDI'20; github.com/alibaba/GPU-scheduler-for-deep-learning at 2069b38";
  spec.reconstruction = "its coordinator is not public: additive increase stands for it";
  spec.needs = {.iterations = true};
  spec.parameters = antman_parameters();
  for (ParameterSpec& parameter : reference_parameters()) {
    spec.parameters.push_back(std::move(parameter));
  }
  spec.demands = {{SystemFeature::kMps, "sharing", {"spatial"}},
                  {SystemFeature::kTimeSlicing, "sharing", {"time_sliced"}},
                  {SystemFeature::kFrameworkHook}};
  spec.not_searched = {"reserve_mib"};
  spec.settling = [](const ParameterSet& given, Duration iteration) {
    const std::int64_t steps = 100 / std::max<std::int64_t>(1, given.integer("increase"));
    return (given.integer("reference_iterations") + steps) * iteration;
  };
  spec.make = [](const ParameterSet& given) { return std::make_unique<AntMan>(given); };
  return spec;
}

}  // namespace bubblesim::policies
