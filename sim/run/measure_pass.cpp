#include "sim/run/measure_pass.hpp"

#include "sim/engine/engine.hpp"
#include "sim/gpu/gpu.hpp"
#include "sim/workload/program_run.hpp"

namespace bubblesim::run {
namespace {

class PassEnd final : public workload::RunObserver {
 public:
  void on_pass_finished(workload::ProgramRun&, SimTime now) override { end = now; }
  SimTime end = kSimStart;
};

}  // namespace

Duration measure_pass(const program::Program& program, const hardware::GpuSpec& device) {
  engine::Engine engine;
  gpu::Gpu gpu(engine, device, gpu::SharingSetup{});
  PassEnd pass;
  workload::RunSetup setup;
  setup.client.name = "filler";
  setup.repeat = workload::Repeat::kOnePass;
  setup.observer = &pass;
  workload::ProgramRun run(engine, gpu, program, setup);
  run.start_pass(kSimStart);
  engine.run_until();
  return pass.end - kSimStart;
}

}  // namespace bubblesim::run
