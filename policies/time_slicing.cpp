// time_slicing: the driver's default without MPS. Each process has its own context; contexts with
// work take turns on the whole GPU, a slice each, with a switch between them. Nothing is held.
//
// Parameters: slice and switch_cost, by default the device's own. Ties: the GPU model's order of
// contexts. Source: NVIDIA open-gpu-kernel-modules (time slice of 1024 us); XSched, OSDI'25,
// section 7.3, and GPreempt, ATC'25 (a switch of 30 to 100 us). Reconstructed: nothing here; the
// slice length is disputed between sources (about 1 ms to 2.3 ms), so measure it.
#include <memory>

#include "policies/builtin.hpp"
#include "sim/policy/declare.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;
using namespace std::chrono_literals;

class TimeSlicing final : public Policy {
 public:
  explicit TimeSlicing(const ParameterSet& given)
      : slice_(given.duration_unless_word("slice")),
        switch_cost_(given.duration_unless_word("switch_cost")) {}

  Sharing start(const GpuInfo&, std::span<const ClientInfo>) override {
    return {Sharing::Mode::kTimeSliced, slice_, switch_cost_, false};
  }

 private:
  std::optional<Duration> slice_;
  std::optional<Duration> switch_cost_;
};

}  // namespace

PolicySpec time_slicing_spec() {
  PolicySpec spec;
  spec.name = "time_slicing";
  spec.summary = "Contexts take turns on the whole GPU, the driver's default";
  spec.source = "NVIDIA open-gpu-kernel-modules, kernel_fifo_gv100.c";
  spec.parameters = {
      declare_device_duration("slice", 1us, 1s,
                              {"", "A context's turn while another has work.",
                               "open-gpu-kernel-modules: 1024 us; nvidia-smi compute-policy"}),
      declare_device_duration("switch_cost", 0us, 100ms,
                              {"", "The GPU is idle so long between two contexts' turns.",
                               "XSched OSDI'25 7.3: P99 32 us; GPreempt ATC'25: below 40 us"}),
  };
  spec.make = [](const ParameterSet& given) { return std::make_unique<TimeSlicing>(given); };
  return spec;
}

}  // namespace bubblesim::policies
