#include "capture/replay/job_plan_check.hpp"

#include <string>
#include <vector>

#include "sim/program/rules.hpp"

namespace bubblesim::capture {
namespace {

std::string number(std::uint64_t value) { return std::to_string(value); }

std::string there_are(std::size_t count, const char* what) {
  return "; there are " + number(count) + " " + what;
}

/// The checks of one plan; `launched` counts by operation.
class PlanCheck {
 public:
  PlanCheck(ObjectReader& root, const JobPlan& plan)
      : root_(root), plan_(plan), launched_(plan.program.ops.size()) {}

  void run() {
    for (std::size_t thread = 0; thread < plan_.program.threads.size(); ++thread) {
      const std::vector<program::Step>& steps = plan_.program.threads[thread].steps;
      for (std::size_t i = 0; i < steps.size(); ++i) check_step(thread, i, steps[i]);
    }
    check_waits();
    check_edges();
  }

 private:
  void fault(std::size_t thread, std::size_t step, const std::string& message) {
    root_.fault("threads", "step " + number(step) + " of thread " + number(thread) + " " + message);
  }

  void check_step(std::size_t thread, std::size_t index, const program::Step& step) {
    check_target(thread, index, step);
    const program::StepDetail* after = program::hand_over(plan_.program, step);
    if (after == nullptr) return;
    const auto& threads = plan_.program.threads;
    if (after->after_thread >= threads.size()) {
      fault(thread, index, "waits for thread " + number(after->after_thread) +
                               there_are(threads.size(), "threads"));
    } else if (after->after_thread == thread) {
      fault(thread, index, "waits for a hand-over of its own thread");
    } else if (after->after_step >= threads[after->after_thread].steps.size()) {
      fault(thread, index,
            "waits for step " + number(after->after_step) + " of thread " +
                number(after->after_thread) +
                there_are(threads[after->after_thread].steps.size(), "steps"));
    }
  }

  void check_target(std::size_t thread, std::size_t index, const program::Step& step) {
    switch (step.kind) {
      case program::StepKind::kPause:
      case program::StepKind::kWaitDevice: return;
      case program::StepKind::kLaunch:
      case program::StepKind::kLaunchAndWait: check_launch(thread, index, step); return;
      case program::StepKind::kWaitStream:
        if (step.target < plan_.program.stream_count) return;
        fault(thread, index, "waits for stream " + number(step.target) +
                                 there_are(plan_.program.stream_count, "streams"));
        return;
      case program::StepKind::kWaitOp:
        if (step.target < plan_.program.ops.size()) return;
        fault(thread, index, "waits for operation " + number(step.target) +
                                 there_are(plan_.program.ops.size(), "operations"));
        return;
      case program::StepKind::kIteration:
        if (step.target >= plan_.program.iterations) {
          fault(thread, index, "begins iteration " + number(step.target) +
                                   there_are(plan_.program.iterations, "iterations a pass"));
        }
        [[fallthrough]];
      case program::StepKind::kEnd:
        if (thread != plan_.program.marked_thread) {
          fault(thread, index, "marks an iteration; the marked thread is " +
                                   number(plan_.program.marked_thread));
        }
        return;
    }
  }

  void check_launch(std::size_t thread, std::size_t index, const program::Step& step) {
    const std::uint64_t end = std::uint64_t{step.target} + step.count;
    if (step.count == 0) {
      fault(thread, index, "launches no operation");
    } else if (end > plan_.program.ops.size()) {
      fault(thread, index, "launches operations up to " + number(end - 1) +
                               there_are(plan_.program.ops.size(), "operations"));
    } else {
      for (std::uint64_t op = step.target; op < end; ++op) {
        if (++launched_[op] == 2) {
          fault(thread, index, "launches operation " + number(op) + " a second time in a pass");
        }
      }
    }
  }

  // Who waits for what is never launched waits for ever.
  void check_waits() {
    for (std::size_t thread = 0; thread < plan_.program.threads.size(); ++thread) {
      const std::vector<program::Step>& steps = plan_.program.threads[thread].steps;
      for (std::size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].kind != program::StepKind::kWaitOp || steps[i].target >= launched_.size())
          continue;
        if (launched_[steps[i].target] > 0) continue;
        fault(thread, i, "waits for operation " + number(steps[i].target) +
                             ", which no step launches");
      }
    }
  }

  void check_edges() {
    for (std::size_t op = 0; op < plan_.program.ops.size(); ++op) {
      for (std::uint32_t i = 0; i < plan_.program.ops[op].edge_count; ++i) {
        const std::uint32_t before =
            plan_.program.edges[plan_.program.ops[op].first_edge + i].before;
        if (before == op) {
          root_.fault("edges", "operation " + number(op) + " waits for itself");
        } else if (launched_[op] > 0 && launched_[before] == 0) {
          root_.fault("edges", "operation " + number(op) + " waits for operation " +
                                   number(before) + ", which no step launches");
        }
      }
    }
  }

  ObjectReader& root_;
  const JobPlan& plan_;
  std::vector<std::uint32_t> launched_;
};

}  // namespace

void check_plan_steps(ObjectReader& root, const JobPlan& plan) { PlanCheck(root, plan).run(); }

}  // namespace bubblesim::capture
