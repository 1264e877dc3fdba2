// gpreempt: preemption by time slices of very different length (GPreempt, ATC'25). Training's
// context has a slice of 1 s, each filler's one of 1 us. While training has work the filler's turn
// is over at once; when training is idle the GPU, which is work-conserving, leaves the filler
// running. Nothing is held, no kernel is changed, and none needs to be idempotent.
//
// Parameters: see the declarations. Ties: the GPU model's order of contexts. Source: GPreempt's
// code (slices of 1,000,000 us and 1 us). Not modelled: its hint 100 us ahead of need, a kernel
// that pulls the switch into the preparation of data; training's launches come as they come.
// Reconstructed: nothing. A switch is paid in each round of turns, 1 us and 1 s.
#include <memory>

#include "policies/builtin.hpp"
#include "sim/policy/declare.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;
using namespace std::chrono_literals;

class GPreempt final : public Policy {
 public:
  explicit GPreempt(const ParameterSet& given)
      : training_slice_(given.duration("training_slice")),
        filler_slice_(given.duration("filler_slice")),
        switch_cost_(given.duration_unless_word("switch_cost")) {}

  Sharing start(const GpuInfo&, std::span<const ClientInfo>) override {
    return {SharingMode::kTimeSliced, training_slice_, switch_cost_, false};
  }
  ClientSharing share(const ClientInfo& client) override {
    ClientSharing sharing;
    sharing.slice = client.id == ClientId{0} ? training_slice_ : filler_slice_;
    return sharing;
  }

 private:
  Duration training_slice_;
  Duration filler_slice_;
  std::optional<Duration> switch_cost_;
};

}  // namespace

PolicySpec gpreempt_spec() {
  const std::string code = "GPreempt code, gpreempt.cpp";
  PolicySpec spec;
  spec.name = "gpreempt";
  spec.summary = "Turns of a microsecond for fillers, of a second for training";
  spec.source = "GPreempt, ATC'25; code at thustorage/GPreempt";
  spec.parameters = {
      declare_duration("training_slice", 1s, 1us, 10s, {"", "Turn of training's context.", code}),
      declare_duration("filler_slice", 1us, 1us, 10s, {"", "Turn of a filler's context.", code}),
      declare_device_duration("switch_cost", 0us, 100ms,
                              {"", "The GPU is idle so long between two contexts' turns.",
                               "GPreempt, ATC'25: below 40 us; its code allows for 100 us"}),
  };
  spec.make = [](const ParameterSet& given) { return std::make_unique<GPreempt>(given); };
  return spec;
}

}  // namespace bubblesim::policies
