// tgs: transparent GPU sharing (NSDI'23). Training is never held; its hook counts launched blocks
// and reports them once a report period. The filler's hook counts its own blocks, sets the count to
// zero every window (50 ms), and holds a kernel while the count is above the limit; a held thread
// looks again every poll period (10 ms). The test comes before the count, so one kernel a window
// passes even at limit 0. tgs_limit.hpp makes the limit: a profile, slow start, then additive
// increase and multiplicative decrease. With the defaults the profile takes 25 s and slow start
// another minute: shorter runs measure the leak alone. Simulate five minutes and leave out 90 s, or
// scale `report_period` and say so. `additive_share` presumes 100 windows a report.
//
// Sharing: time slices (TGS starts no MPS). Only kernels launched one by one are counted and held:
// the hook lets a CUDA graph pass (cuda_originals.c:1619). So a server that decodes by graphs
// escapes the limit, and training that launches graphs looks idle, which lifts the limit. Memory is
// unified: training's is all on the device (its preferred location); fillers, in client order, have
// what training and the reserve (1 GiB) leave, and reach the rest through the host link
// (resident_memory.hpp) until another filler ends. Pages do not move with their use. Ties: at one
// instant a window ends first, then the report arrives, then held threads look, in the order in
// which they were held. Source: pkusys/TGS at e1c6a31 (hijack/src), Apache-2.0, behaviour
// re-implemented. Differs: all fillers of a GPU share one count and limit (the code knows one
// opportunistic process); both sides connect at instant 0, with no rate known; a report holds the
// period that just ended (the code's two timers race); training's end shows as idle reports, not as
// a closed socket, and brings no pages of a filler back.
#include <algorithm>
#include <cmath>
#include <memory>

#include "policies/builtin.hpp"
#include "policies/launch_polls.hpp"
#include "policies/resident_memory.hpp"
#include "policies/tgs_limit.hpp"
#include "sim/policy/declare.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;
using namespace std::chrono_literals;

class Tgs final : public Policy {
 public:
  explicit Tgs(const ParameterSet& given)
      : window_(given.duration("window")),
        report_period_(given.duration("report_period")),
        reserve_{static_cast<std::uint64_t>(given.integer("reserve_mib")) << 20},
        limit_(tgs_constants(given)),
        polls_(given.duration("poll")),
        next_report_(report_period_) {}

  Sharing start(const GpuInfo& gpu, std::span<const ClientInfo> clients) override {
    memory_.start(gpu, clients, reserve_);
    resident_.assign(clients.size(), std::nullopt);
    return {SharingMode::kTimeSliced, std::nullopt, std::nullopt, true};
  }

  ClientSharing share(const ClientInfo& client) override {
    resident_[client.id.index()] = memory_.resident_of(client.id);
    return {.resident = memory_.resident_of(client.id)};
  }

  /// For the filler the GPU seems empty except for the reserve.
  Admission admit(const ClientInfo& filler, Bytes, const GpuInfo& gpu) override {
    return admit_with_reserve(filler, Bytes{}, reserve_, gpu);
  }

  Verdict on_launch(const LaunchInfo& launch, Instant now, Actions&) override {
    if (!is_kernel(launch.kind) || launch.operations > 1) return Verdict::kAdmit;
    turn_report(now);
    if (launch.client == ClientId{0}) {
      training_blocks_ += launch.blocks;
      return Verdict::kAdmit;
    }
    turn_window(now);
    if (passes(launch)) return Verdict::kAdmit;
    polls_.hold(launch.client, now);
    return Verdict::kHold;
  }

  void on_gone(ClientId gone, Instant, Actions& actions) override {
    memory_.remove(gone);
    resident_[gone.index()].reset();
    for (std::uint32_t id = 1; id < resident_.size(); ++id) {
      const auto resident = memory_.resident_of(ClientId{id});
      if (!resident_[id] || resident_[id] == resident) continue;
      resident_[id] = resident;
      actions.set_resident_memory(ClientId{id}, *resident);
    }
  }

  std::optional<Instant> next_tick() const override {
    return polls_.next() ? std::min(next_report_, *polls_.next()) : next_report_;
  }

  void on_tick(Instant now, Actions& actions) override {
    turn_report(now);
    turn_window(now);
    polls_.wake(now, actions, [this](const LaunchInfo& launch) { return passes(launch); });
  }

 private:
  /// Tests before adding: a kernel may exceed the limit by its whole size.
  bool passes(const LaunchInfo& launch) {
    if (count_ > limit_.limit()) return false;
    count_ += static_cast<std::int64_t>(launch.blocks);
    return true;
  }

  /// A launch or report at the instant of a period's end counts in the next period.
  void turn_report(Instant now) {
    if (now < next_report_) return;
    turn_window(now);
    limit_.report(training_blocks_, last_window_);
    training_blocks_ = 0;
    next_report_ = next_multiple(now, report_period_);
  }

  void turn_window(Instant now) {
    const std::int64_t window = now / window_;
    if (window == window_index_) return;
    last_window_ = window == window_index_ + 1 ? count_ : 0;
    count_ = 0;
    window_index_ = window;
  }

  Duration window_;
  Duration report_period_;
  Bytes reserve_;
  ResidentMemory memory_;
  std::vector<std::optional<Bytes>> resident_;  ///< by client, while it lives
  TgsLimit limit_;
  LaunchPolls polls_;
  Instant next_report_;
  std::uint64_t training_blocks_ = 0;
  std::int64_t count_ = 0;        ///< the fillers' blocks in this window
  std::int64_t last_window_ = 0;  ///< the same of the window before
  std::int64_t window_index_ = 0;
};

/// The time of the profile, a first report, and a slow start that multiplies the limit by a
/// hundred.
Duration settling_of(const ParameterSet& given, Duration) {
  const double growth = std::max(1.1, given.number("growth"));
  const std::int64_t grown = std::llround(std::ceil(std::log(100) / std::log(growth)));
  return given.duration("report_period") * (given.integer("profile_longest") + 1 + grown);
}

}  // namespace

PolicySpec tgs_spec() {
  PolicySpec spec;
  spec.name = "tgs";
  spec.summary = "Time slicing with the filler's launch rate held down by feedback from training";
  spec.source = "TGS, NSDI'23; github.com/pkusys/TGS at e1c6a31";
  spec.parameters = {
      declare_duration("window", 50ms, 1us, 100s,
                       {"", "The filler's count of blocks returns to zero so often.",
                        "TGS code, low priority rate_watcher"}),
      declare_duration("poll", 10ms, 1us, 10s,
                       {"", "A held launch looks again so often.", "TGS code, TIME_TICK"}),
      declare_duration(
          "report_period", 5s, 1ms, 1000s,
          {"", "Training reports its blocks so often.", "TGS code, high priority rate_watcher"}),
      declare_integer(
          "reserve_mib", 1024, 0, 1 << 20,
          {"MiB", "Memory that the hooks hide from a filler.", "TGS code, g_spare_memory"}),
  };
  for (ParameterSpec& parameter : tgs_limit_parameters()) {
    spec.parameters.push_back(std::move(parameter));
  }
  spec.demands = {{SystemFeature::kTimeSlicing}, {SystemFeature::kLaunchInterception},
                  {SystemFeature::kUnifiedMemory}};
  spec.not_searched = {"reserve_mib"};
  spec.settling = settling_of;
  spec.make = [](const ParameterSet& given) { return std::make_unique<Tgs>(given); };
  return spec;
}

}  // namespace bubblesim::policies
