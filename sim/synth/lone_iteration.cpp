#include "sim/synth/lone_iteration.hpp"

#include <vector>

#include "sim/workload/lone_job.hpp"

namespace bubblesim::synth {
namespace {

// When each pass of a rank ended.
class PassClock final : public workload::RunObserver {
 public:
  void on_iteration(workload::ProgramRun& run, std::uint32_t index, SimTime now) override {
    if (index == run.program().iterations) ends.push_back(now);
  }
  std::vector<SimTime> ends;
};

}  // namespace

Result<LoneIteration> time_alone(const workload::JobProgram& job, const hardware::GpuSpec& gpu) {
  std::vector<PassClock> clocks(job.ranks.size());
  workload::LoneSetup setup;
  setup.repeat = workload::Repeat::kLoop;
  setup.passes = 2;
  workload::LoneJob lone(job, gpu, setup, workload::pointers_to(clocks));
  lone.run();
  BUBBLESIM_RETURN_IF_ERROR(lone.finished());
  LoneIteration out;
  const auto& ends = clocks.front().ends;
  out.time = scale(ends.at(1) - ends.at(0), 1.0 / job.ranks.front().iterations);
  out.events = lone.events();
  for (const program::Program& rank : job.ranks) out.kernels += rank.ops.size();
  return out;
}

}  // namespace bubblesim::synth
