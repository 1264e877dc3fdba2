// Programs made by hand, without a recording. Times are whole microseconds.
#pragma once

#include <cstdint>

#include "tests/unit/sim/workload/program_recorder.hpp"

namespace bubblesim::workload {

/// One host thread (more with thread()); each call adds a step to the current one.
class ProgramMaker {
 public:
  explicit ProgramMaker(std::uint16_t streams = 1) {
    program_.stream_count = streams;
    program_.threads.emplace_back();
    program_.profiles.push_back(gpu::blocks_of_warps(1, 1));
  }

  /// Thinks, then launches a kernel; the call costs nothing.
  ProgramMaker& kernel(std::int64_t think, std::int64_t duration, std::uint16_t stream = 0) {
    program::Op op;
    op.duration = us(duration);
    op.profile = 0;
    op.stream = stream;
    return launch(think, op);
  }
  ProgramMaker& collective(std::int64_t think, std::int64_t duration, std::uint32_t joined,
                           std::uint16_t stream = 0) {
    program::Op op;
    op.duration = us(duration);
    op.profile = 0;
    op.stream = stream;
    op.kind = program::WorkKind::kCollective;
    op.collective = joined;
    return launch(think, op);
  }
  ProgramMaker& copy_and_wait(std::int64_t think, std::int64_t duration, std::int64_t lag) {
    program::Op op;
    op.duration = us(duration);
    op.kind = program::WorkKind::kCopy;
    launch(think, op);
    last_step().kind = program::StepKind::kLaunchAndWait;
    return returning(lag);
  }
  ProgramMaker& wait_stream(std::int64_t think, std::int64_t lag, std::uint32_t stream = 0) {
    step(program::StepKind::kWaitStream, think, stream);
    return returning(lag);
  }
  ProgramMaker& wait_device(std::int64_t think, std::int64_t lag) {
    step(program::StepKind::kWaitDevice, think, 0);
    return returning(lag);
  }
  ProgramMaker& iteration(std::uint32_t number) {
    return step(program::StepKind::kIteration, 0, number);
  }
  ProgramMaker& end(std::int64_t think = 0) {
    return step(program::StepKind::kEnd, think, program_.iterations);
  }
  /// Sets the cost of the last step.
  ProgramMaker& cost(std::int64_t span) {
    last_step().cost = short_us(span);
    return *this;
  }
  /// Sets the gap of the last operation.
  ProgramMaker& gap(std::int64_t span) {
    program_.ops.back().gap = short_us(span);
    return *this;
  }
  ProgramMaker& launch_lag(std::int64_t span) {
    program_.ops.back().launch_lag = short_us(span);
    return *this;
  }
  /// The last operation may start `lag` after operation `before` has ended. Call it before the next
  /// operation is added.
  ProgramMaker& after(std::uint32_t before, std::int64_t lag) {
    program::Op& op = program_.ops.back();
    if (op.edge_count++ == 0) op.first_edge = static_cast<std::uint32_t>(program_.edges.size());
    program_.edges.push_back({before, short_us(lag)});
    need_result(before);
    return *this;
  }
  ProgramMaker& wait_op(std::int64_t think, std::uint32_t op, std::int64_t lag) {
    need_result(op);
    step(program::StepKind::kWaitOp, think, op);
    return returning(lag);
  }
  ProgramMaker& thread() {
    program_.threads.emplace_back();
    return *this;
  }
  ProgramMaker& iterations(std::uint32_t count) {
    program_.iterations = count;
    return *this;
  }
  ProgramMaker& rank(std::uint32_t number) {
    program_.rank = number;
    return *this;
  }
  /// The last launch step launches one more operation, as a CUDA graph does.
  ProgramMaker& and_kernel(std::int64_t duration, std::uint16_t stream) {
    program::Op op;
    op.duration = us(duration);
    op.profile = 0;
    op.stream = stream;
    program_.ops.push_back(op);
    ++last_step().count;
    return *this;
  }

  [[nodiscard]] const program::Program& program() const { return program_; }

 private:
  program::Step& last_step() { return program_.threads.back().steps.back(); }
  ProgramMaker& launch(std::int64_t think, const program::Op& op) {
    step(program::StepKind::kLaunch, think, static_cast<std::uint32_t>(program_.ops.size()));
    last_step().count = 1;
    program_.ops.push_back(op);
    return *this;
  }
  ProgramMaker& step(program::StepKind kind, std::int64_t think, std::uint32_t target) {
    program::Step made;
    made.kind = kind;
    made.think = short_us(think);
    made.target = target;
    program_.threads.back().steps.push_back(made);
    return *this;
  }
  ProgramMaker& returning(std::int64_t lag) {
    last_step().detail = static_cast<std::uint32_t>(program_.details.size());
    program_.details.push_back({short_us(lag), program::kNoIndex, 0});
    return *this;
  }
  void need_result(std::uint32_t op) {
    if (program_.ops[op].result_slot == program::kNoIndex) {
      program_.ops[op].result_slot = program_.result_slots++;
    }
  }

  program::Program program_;
};

/// One rank on one GPU, with a recorder.
class OneRun {
 public:
  explicit OneRun(const program::Program& program, RunSetup setup = {},
                  const hardware::GpuSpec& spec = plain_gpu())
      : program_(program), gpu(engine, spec, gpu::SharingSetup{}) {
    setup.observer = &recorder;
    run = std::make_unique<ProgramRun>(engine, gpu, program_, setup);
  }
  void start(SimTime until = SimTime::max()) {
    run->start_pass(kSimStart);
    engine.run_until(until);
  }

 private:
  program::Program program_;

 public:
  engine::Engine engine;
  gpu::Gpu gpu;
  RunRecorder recorder;
  std::unique_ptr<ProgramRun> run;
};

}  // namespace bubblesim::workload
