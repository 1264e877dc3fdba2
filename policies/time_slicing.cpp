// time_slicing: the driver's default without MPS. Each process has its own context; contexts with
// work have the whole GPU round robin, a slice each, with a switch between them. Nothing is held.
//
// The GPU's own slicing is work-conserving: a context without work gives its slice up at once, so a
// filler beside idle training has the whole GPU. `work_conserving: false` holds each filler to its
// share, as a fixed-share scheduler does: time is cut into rounds of one slice for training and one
// slot for each admitted filler, in client order, and outside its slot a filler's context is off
// the GPU (Preemption::kContextSwitch), even if the GPU is idle; the slot of a filler that has died
// stays empty. Contexts are switched off, rather than launches held, as kernels launched ahead
// would otherwise run on. Training is never switched off: within a filler's slot it keeps its own
// slices, so while training has work a filler gets less than its slot.
//
// Parameters: see the declarations; slices and switch cost are by default the device's own. Ties:
// the GPU model's order of contexts. Source: the device files' (slices of about 2 ms and switches
// of 0.2 ms were measured where the driver programs 1024 us; configs/devices).
// Reconstructed: the fixed round (NVIDIA describes fixed shares for virtual GPUs only).
#include <memory>
#include <vector>

#include "policies/builtin.hpp"
#include "sim/policy/declare.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;
using namespace std::chrono_literals;

/// The slice in open-gpu-kernel-modules, for a device file that has none.
constexpr Duration kDriverSlice = 1024us;

class TimeSlicing final : public Policy {
 public:
  explicit TimeSlicing(const ParameterSet& given)
      : slice_(given.duration_unless_word("slice")),
        filler_slice_(given.duration_unless_word("filler_slice")),
        filler_as_device_(!filler_slice_ && given.text("filler_slice") == "device"),
        switch_cost_(given.duration_unless_word("switch_cost")),
        fixed_(!given.flag("work_conserving")) {}

  Sharing start(const GpuInfo& gpu, std::span<const ClientInfo> clients) override {
    const Duration device = gpu.time_slice > Duration{} ? gpu.time_slice : kDriverSlice;
    if (filler_as_device_) filler_slice_ = device;
    turns_ = {{ClientId{0}, slice_.value_or(device)}};
    turns_.reserve(clients.size());
    return {SharingMode::kTimeSliced, slice_, switch_cost_, false};
  }

  ClientSharing share(const ClientInfo& client) override {
    return {.slice = client.id == ClientId{0} ? std::nullopt : filler_slice_};
  }

  Admission admit(const ClientInfo& filler, Bytes used, const GpuInfo& gpu) override {
    Admission admission = Policy::admit(filler, used, gpu);
    if (!admission.admitted) return admission;
    turns_.push_back({filler.id, filler_slice_.value_or(turns_[0].length)});
    if (fixed_) turn_end_ = Instant{};
    return admission;
  }

  void on_gone(ClientId client, Instant, Actions&) override {
    for (Turn& turn : turns_) turn.gone = turn.gone || turn.client == client;
  }

  std::optional<Instant> next_tick() const override { return turn_end_; }

  void on_tick(Instant now, Actions& actions) override {
    if (!turn_end_ || now < *turn_end_) return;
    if (!began_) {
      began_ = true;
      for (std::size_t i = 1; i < turns_.size(); ++i) switch_off(turns_[i], actions);
      turn_end_ = now + turns_[0].length;
      return;
    }
    switch_off(turns_[turn_], actions);
    while (*turn_end_ <= now) {  // a wall clock may be late by more than one turn
      turn_ = (turn_ + 1) % turns_.size();
      turn_end_ = *turn_end_ + turns_[turn_].length;
    }
    const Turn& turn = turns_[turn_];
    if (turn_ > 0 && !turn.gone) actions.proceed(turn.client);
  }

 private:
  struct Turn {
    ClientId client;
    Duration length{};
    bool gone = false;
  };

  static void switch_off(const Turn& turn, Actions& actions) {
    if (turn.client == ClientId{0} || turn.gone) return;
    actions.preempt(turn.client, Preemption::kContextSwitch);
  }

  std::optional<Duration> slice_;
  std::optional<Duration> filler_slice_;
  bool filler_as_device_;
  std::optional<Duration> switch_cost_;
  bool fixed_;
  std::vector<Turn> turns_;          ///< the turns of a round
  std::size_t turn_ = 0;             ///< the present turn
  std::optional<Instant> turn_end_;  ///< only in fixed rounds
  bool began_ = false;
};

}  // namespace

PolicySpec time_slicing_spec() {
  PolicySpec spec;
  spec.name = "time_slicing";
  spec.summary = "Contexts take turns on the whole GPU, the driver's default";
  spec.source = "NVIDIA open-gpu-kernel-modules, kernel_fifo_gv100.c";
  ParameterSpec filler_slice =
      declare_device_duration("filler_slice", 1us, 1s,
                              {"", "A filler's turn, and its slot in a fixed round.",
                               "NVA06C_CTRL_CMD_SET_TIMESLICE, which the driver sets by context"});
  filler_slice.choices = {"same", "device"};
  filler_slice.fallback = std::string("same");
  spec.parameters = {
      declare_device_duration("slice", 1us, 1s,
                              {"", "A context's turn while another has work.",
                               "open-gpu-kernel-modules: 1024 us; nvidia-smi compute-policy"}),
      std::move(filler_slice),
      declare_device_duration("switch_cost", 0us, 100ms,
                              {"", "The GPU is idle so long between two contexts' turns.",
                               "XSched OSDI'25 7.3: P99 32 us; GPreempt ATC'25: below 40 us"}),
      declare_flag("work_conserving", true,
                   {"", "The GPU's time slicing is: an idle context gives its turn up. false: a "
                        "filler has turns only in its own slot of a fixed round.",
                    "true: NVIDIA's driver; false is reconstructed"}),
  };
  spec.demands = {{SystemFeature::kTimeSlicing},
                  {SystemFeature::kDriverPatch, "work_conserving", {"false"}}};
  spec.not_searched = {"switch_cost", "filler_slice"};
  spec.needs.launches = false;
  spec.make = [](const ParameterSet& given) { return std::make_unique<TimeSlicing>(given); };
  return spec;
}

}  // namespace bubblesim::policies
