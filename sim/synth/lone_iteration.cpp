#include "sim/synth/lone_iteration.hpp"

#include <algorithm>
#include <vector>

#include "sim/synth/rank_emitter.hpp"
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

// Whether an exchange between regions ends while the pass after its own runs, or before.
class ExchangeWatch final : public workload::RunObserver {
 public:
  void on_iteration(workload::ProgramRun& run, std::uint32_t index, SimTime) override {
    if (index == run.program().iterations) ++passes_;
  }
  void on_op_finished(const workload::OpRecord& record) override {
    if (record.run->program().ops[record.op].stream != kWideAreaStream) return;
    exchanges_ = true;
    in_time_ = in_time_ || passes_ < 2;
  }
  [[nodiscard]] bool is_late() const { return exchanges_ && !in_time_; }

 private:
  std::uint32_t passes_ = 0;
  bool exchanges_ = false;
  bool in_time_ = false;
};

}  // namespace

std::uint64_t late_exchanges(const workload::JobProgram& job, const hardware::GpuSpec& gpu) {
  std::vector<ExchangeWatch> watches(job.ranks.size());
  workload::LoneSetup setup;
  setup.repeat = workload::Repeat::kLoop;
  setup.passes = 2;
  workload::LoneJob lone(job, gpu, setup, workload::pointers_to(watches));
  lone.run();
  return static_cast<std::uint64_t>(std::count_if(
      watches.begin(), watches.end(), [](const ExchangeWatch& watch) { return watch.is_late(); }));
}

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
