#include "sim/schedule/bubble_table.hpp"

#include <algorithm>

#include "sim/workload/lone_job.hpp"

namespace bubblesim::schedule {
namespace {

using workload::kNoIndex;

/// Watches one rank: a bubble opens when its last running operation ends.
class BubbleWatch final : public workload::RunObserver {
 public:
  BubbleWatch(const workload::JobProgram& job, engine::Engine& engine, std::uint32_t& unfinished)
      : job_(job), engine_(engine), unfinished_(unfinished) {}

  void on_op_started(workload::ProgramRun& run, std::uint32_t index, SimTime now) override {
    const workload::Op& op = run.program().ops[index];
    if (op.kind == gpu::WorkKind::kCollective) {
      if (is_point_to_point(op)) ++transfers_;
      pipeline_ = pipeline_ || transfers_ > 0;
      return;
    }
    if (running_++ == 0) close(now);
  }

  void on_op_finished(const workload::OpRecord& record) override {
    const workload::Op& op = record.run->program().ops[record.op];
    if (op.kind == gpu::WorkKind::kCollective) {
      if (is_point_to_point(op)) --transfers_;
      return;
    }
    if (--running_ > 0) return;
    last_op_ = record.op;
    idle_since_ = record.end;
    pipeline_ = transfers_ > 0;
  }

  void on_iteration(workload::ProgramRun& run, std::uint32_t index, SimTime) override {
    if (index != run.program().iterations) return;
    if (++passes_ == 2 && --unfinished_ == 0) engine_.stop();
  }

  BubbleTable take() {
    std::stable_sort(table_.begin(), table_.end(),
                     [](const Bubble& a, const Bubble& b) { return a.after_op < b.after_op; });
    return std::move(table_);
  }

 private:
  [[nodiscard]] bool is_point_to_point(const workload::Op& op) const {
    return op.collective != kNoIndex && job_.collectives[op.collective].point_to_point;
  }

  void close(SimTime now) {
    if (last_op_ == kNoIndex || passes_ != 1 || now - idle_since_ < kShortestBubble) return;
    table_.push_back({last_op_, now - idle_since_, pipeline_});
  }

  const workload::JobProgram& job_;
  engine::Engine& engine_;
  std::uint32_t& unfinished_;
  std::uint32_t running_ = 0;
  std::uint32_t transfers_ = 0;
  std::uint32_t passes_ = 0;
  std::uint32_t last_op_ = kNoIndex;
  SimTime idle_since_{};
  bool pipeline_ = false;
  BubbleTable table_;
};

}  // namespace

Result<std::vector<BubbleTable>> measure_bubbles(const workload::JobProgram& job,
                                                 const hardware::GpuSpec& spec) {
  engine::Engine engine;
  auto unfinished = static_cast<std::uint32_t>(job.ranks.size());
  std::vector<BubbleWatch> watches(job.ranks.size(), BubbleWatch(job, engine, unfinished));
  std::vector<workload::RunObserver*> observers;
  for (BubbleWatch& watch : watches) observers.push_back(&watch);
  workload::LoneJob lone(engine, job, spec, {workload::Repeat::kLoop, 0, {}}, observers);
  lone.run();
  if (unfinished > 0) {
    return fail("the training job stops when it runs alone: a dependency is never met");
  }
  std::vector<BubbleTable> tables;
  for (BubbleWatch& watch : watches) tables.push_back(watch.take());
  return tables;
}

}  // namespace bubblesim::schedule
