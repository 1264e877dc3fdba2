#include "sim/run/measure_pass.hpp"

#include "sim/workload/machine.hpp"

namespace bubblesim::run {
namespace {

class PassEnd final : public workload::RunObserver {
 public:
  void on_pass_finished(workload::ProgramRun&, SimTime now) override { end = now; }
  SimTime end = kSimStart;
};

}  // namespace

Duration measure_pass(const program::Program& program, const hardware::GpuSpec& device) {
  PassEnd pass;
  workload::RunSetup setup;
  setup.client.name = "filler";
  setup.repeat = workload::Repeat::kOnePass;
  setup.observer = &pass;
  workload::Machine machine(device);
  machine.add_program(machine.add_gpu(), program, setup).start_pass(kSimStart);
  machine.conductor().run_until();
  return pass.end - kSimStart;
}

}  // namespace bubblesim::run
