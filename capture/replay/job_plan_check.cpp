#include "capture/replay/job_plan_check.hpp"

#include <algorithm>
#include <vector>

#include "capture/gate/gate_client.hpp"
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
  PlanCheck(const JobPlan& plan, std::string label)
      : plan_(plan), label_(std::move(label)), launched_(plan.program.ops.size()) {}

  Errors run() && {
    check_head();
    check_ops();
    if (errors_.empty()) check_steps();
    return std::move(errors_);
  }

 private:
  void check_steps() {
    for (std::size_t thread = 0; thread < plan_.program.threads.size(); ++thread) {
      const std::vector<program::Step>& steps = plan_.program.threads[thread].steps;
      for (std::size_t i = 0; i < steps.size(); ++i) check_step(thread, i, steps[i]);
    }
    check_waits();
    check_edges();
  }

  void fault(std::string place, std::string message) {
    errors_.push_back({label_, std::move(place), std::move(message)});
  }
  void fault(std::size_t thread, std::size_t step, const std::string& message) {
    fault("threads", "step " + number(step) + " of thread " + number(thread) + " " + message);
  }

  // A looping thread without steps is harmless, a plan without any has nothing to do and no end.
  void check_head() {
    const auto& threads = plan_.program.threads;
    const auto has_steps = [](const program::ThreadProgram& thread) {
      return !thread.steps.empty();
    };
    if (plan_.client.value >= kMostGateClients) fault("client", "is no client of a gate");
    if (plan_.loop.has_value() == plan_.serve.has_value()) fault("loop", "expected it or serve");
    if (plan_.serve && !std::ranges::is_sorted(plan_.serve->arrivals)) {
      fault("arrivals", "arrivals ascend");
    }
    if (threads.size() > kMostGateThreads) {
      fault("threads", "found " + number(threads.size()) + " threads; expected at most " +
                           number(kMostGateThreads));
    }
    if (plan_.program.marked_thread >= threads.size()) {
      fault("marked_thread", "found " + number(plan_.program.marked_thread) +
                                 there_are(threads.size(), "threads"));
    }
    if (std::ranges::none_of(threads, has_steps)) fault("threads", "no thread has a step");
  }

  // What indices of operations, edges and bubbles refer to is there.
  void check_ops() {
    const program::Program& program = plan_.program;
    for (std::size_t i = 0; i < program.ops.size(); ++i) {
      const program::Op& op = program.ops[i];
      const std::size_t forms = is_kernel(op.kind) ? plan_.forms.size() : plan_.copies.size();
      const std::string name = "operation " + number(i);
      if (op.stream >= program.stream_count) {
        fault("ops", name + " is on a stream that is not there");
      }
      if (op.name.index() >= program.names.size()) fault("ops", name + " has no name");
      if (op.profile != program::kNoIndex && op.profile >= forms) {
        fault("ops", name + " has a form that is not there");
      }
      if (std::uint64_t{op.first_edge} + op.edge_count > program.edges.size()) {
        fault("ops", name + " has edges that are not there");
      }
    }
    const auto is_there = [&](std::uint32_t op) { return op < program.ops.size(); };
    if (!std::ranges::all_of(program.edges, is_there, &program::OpEdge::before)) {
      fault("edges", "one is of an operation that is not there");
    }
    const auto& bubbles = plan_.bubbles;
    if (!std::ranges::all_of(bubbles, is_there, &policy::MeasuredBubble::after_op) ||
        std::ranges::adjacent_find(bubbles, std::ranges::greater_equal{},
                                   &policy::MeasuredBubble::after_op) != bubbles.end()) {
      fault("bubbles", "they follow operations that are there, in order");
    }
    for (const program::ThreadProgram& thread : program.threads) {
      const auto has_detail = [&](const program::Step& step) {
        return step.detail == program::kNoIndex || step.detail < program.details.size();
      };
      if (!std::ranges::all_of(thread.steps, has_detail)) fault("threads", "a detail is not there");
    }
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
          fault("edges", "operation " + number(op) + " waits for itself");
        } else if (launched_[op] > 0 && launched_[before] == 0) {
          fault("edges", "operation " + number(op) + " waits for operation " +
                                   number(before) + ", which no step launches");
        }
      }
    }
  }

  const JobPlan& plan_;
  std::string label_;
  std::vector<std::uint32_t> launched_;
  Errors errors_;
};

}  // namespace

Errors plan_faults(const JobPlan& plan, const std::string& label) {
  return PlanCheck(plan, label).run();
}

}  // namespace bubblesim::capture
