// gpreempt: preemption by time slices of very different length (GPreempt, ATC'25). Training's
// context has a slice of 1 s; the context of all fillers' streams together (g_ctx[1] of
// gpreemptclient.cpp:49, :169) has 1 us. While training has work the fillers' slice ends at once.
// The GPU is work-conserving, so fillers run on while training is idle. Nothing is held, and
// kernels are neither changed nor required to be idempotent.
//
// `collectives: idle` (training_work.hpp; reconstructed): while training only waits for its peers,
// all contexts have the device's own slices. The running slice ends when this wait begins, and the
// fillers' slice when training computes again: the driver ends slices when it gets a new runlist.
//
// Parameters: see the declarations. Ties: the GPU model's order of contexts. Each round of slices,
// 1 us and 1 s, pays a switch. Source: thustorage/GPreempt at 249ee3e (slices of 1,000,000 us and 1
// us). Differs: its hint 100 us ahead of need, a kernel that pulls the switch into the preparation
// of data, is left out, so the first kernel after idle time waits for a switch.
#include <memory>
#include <vector>

#include "policies/builtin.hpp"
#include "policies/protected_client.hpp"
#include "policies/training_work.hpp"
#include "sim/policy/declare.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;
using namespace std::chrono_literals;

/// The delay after which a context whose slice was ended asks for its next slice.
constexpr Duration kRunlist = 1us;

class GPreempt final : public Policy {
 public:
  explicit GPreempt(const ParameterSet& given)
      : training_slice_(given.duration("training_slice")),
        filler_slice_(given.duration("filler_slice")),
        switch_cost_(given.duration_unless_word("switch_cost")),
        training_(collectives_of(given)) {}

  Sharing start(const GpuInfo& gpu, std::span<const ClientInfo>) override {
    device_slice_ = gpu.time_slice;
    return {.mode = SharingMode::kTimeSliced,
            .slice = training_slice_,
            .switch_cost = switch_cost_,
            .fillers_share = true};
  }
  ClientSharing share(const ClientInfo& client) override {
    if (client.id != kProtected) fillers_.push_back(client.id);
    return {.slice = client.id == kProtected ? training_slice_ : filler_slice_};
  }

  Verdict on_launch(const LaunchInfo& launch, Instant now, Actions& actions) override {
    if (launch.client != kProtected) return Verdict::kAdmit;
    (void)training_.launched(launch);
    follow(now, actions);
    return Verdict::kAdmit;
  }
  void on_completion(const CompletionInfo& completion, Instant now, Actions& actions) override {
    if (completion.client != kProtected) return;
    (void)training_.ended(completion);
    follow(now, actions);
  }
  void on_gone(ClientId gone, Instant, Actions&) override {
    std::erase(fillers_, gone);
    std::erase(off_, gone);
  }

  std::optional<Instant> next_tick() const override { return on_at_; }
  void on_tick(Instant now, Actions& actions) override {
    if (!on_at_ || now < *on_at_) return;
    on_at_.reset();
    for (const ClientId client : off_) actions.proceed(client);
    off_.clear();
  }

 private:
  /// While training only waits for its peers, slices are the device's own; else the policy's.
  void follow(Instant now, Actions& actions) {
    if (even_ == training_.waits_for_peers()) return;
    even_ = !even_;
    actions.set_time_slice(kProtected, even_ ? device_slice_ : training_slice_);
    if (even_) end_turn(kProtected, now, actions);
    for (const ClientId filler : fillers_) {
      actions.set_time_slice(filler, even_ ? device_slice_ : filler_slice_);
      if (!even_) end_turn(filler, now, actions);
    }
  }

  /// The next context gets the GPU, as after an expired slice.
  void end_turn(ClientId client, Instant now, Actions& actions) {
    actions.preempt(client, Preemption::kContextSwitch);
    off_.push_back(client);
    on_at_ = now + kRunlist;
  }

  Duration training_slice_;
  Duration filler_slice_;
  std::optional<Duration> switch_cost_;
  TrainingWork training_;
  Duration device_slice_{};
  std::vector<ClientId> fillers_;  ///< the living fillers
  std::vector<ClientId> off_;      ///< fillers whose slice was ended, until on_at_
  std::optional<Instant> on_at_;
  bool even_ = false;              ///< all slices are the device's own
};

}  // namespace

PolicySpec gpreempt_spec() {
  const std::string code = "GPreempt code, gpreempt.cpp";
  PolicySpec spec;
  spec.name = "gpreempt";
  spec.summary = "Turns of a microsecond for fillers, of a second for training";
  spec.source = "GPreempt, ATC'25; code at thustorage/GPreempt";
  spec.needs = {.completions = true};
  spec.parameters = {
      declare_duration("training_slice", 1s, 1us, 10s, {"", "Turn of training's context.", code}),
      declare_duration("filler_slice", 1us, 1us, 10s, {"", "Turn of the fillers' context.", code}),
      declare_device_duration("switch_cost", 0us, 100ms,
                              {"", "The GPU is idle so long between two contexts' turns.",
                               "GPreempt, ATC'25: below 40 us; its code allows for 100 us"}),
      collectives_parameter(),
  };
  spec.demands = {{SystemFeature::kTimeSlicing}, {SystemFeature::kDriverPatch}};
  spec.not_searched = {"switch_cost"};
  spec.make = [](const ParameterSet& given) { return std::make_unique<GPreempt>(given); };
  return spec;
}

}  // namespace bubblesim::policies
