#include "capture/replay/job_files.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "capture/gate/gate_client.hpp"
#include "capture/replay/job_plan.hpp"
#include "sim/base/hash.hpp"
#include "sim/base/input_file.hpp"
#include "sim/base/output_file.hpp"
#include "sim/base/result.hpp"
#include "sim/program/rules.hpp"

namespace bubblesim::capture {

// References between a plan's tables: indices, steps and operations, hand-overs, waits.

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

  // A looping thread without steps is harmless; a plan without any steps has no work and no end.
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

  // Indices of operations, edges and bubbles must be valid.
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

  // A wait for an operation that is never launched would not end.
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

std::uint64_t hash_of(std::string_view bytes) {
  std::uint64_t hash = kFnvBasis;
  for (const char byte : bytes) hash = fnv1a(hash, static_cast<unsigned char>(byte));
  return hash;
}

// A build's description of its memory layout; it differs in a build with other structs.
std::string heading(const char* what) {
  std::string out = std::string("bubblesim job ") + what + " 3";
  for (const std::size_t size :
       {sizeof(program::Op), sizeof(program::OpEdge), sizeof(program::Step),
        sizeof(program::StepDetail), sizeof(KernelForm), sizeof(CopyForm),
        sizeof(policy::MeasuredBubble), sizeof(OperationRecord), sizeof(RequestRecord)}) {
    out += " " + std::to_string(size);
  }
  return out + "\n";
}

/// Appends values to a file's bytes. BytesIn reads them: one function, called with either, defines
/// the content of a file and its order.
class BytesOut {
 public:
  explicit BytesOut(const char* what) : bytes(heading(what)) {}

  template <class T>
  void raw(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  template <class T>
  void list(const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    raw(std::uint64_t{values.size()});
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  void text(const std::string& value) { list(std::vector<char>(value.begin(), value.end())); }
  /// Writes whether the value exists; the value follows.
  template <class T>
  bool there_is(const std::optional<T>& value) {
    raw(value.has_value());
    return value.has_value();
  }
  std::string finish() && {
    raw(hash_of(bytes));
    return std::move(bytes);
  }

  std::string bytes;
};

/// Takes values from the bytes. After the last byte values keep their defaults.
class BytesIn {
 public:
  explicit BytesIn(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  void raw(T& value) {
    take(&value, sizeof(T));
  }
  template <class T>
  void list(std::vector<T>& values) {
    std::uint64_t count = 0;
    raw(count);
    is_whole = is_whole && count <= rest_.size() / sizeof(T);
    if (!is_whole || count == 0) return;
    values.resize(count);
    take(values.data(), count * sizeof(T));
  }
  void text(std::string& value) {
    std::vector<char> letters;
    list(letters);
    value.assign(letters.begin(), letters.end());
  }
  template <class T>
  bool there_is(std::optional<T>& value) {
    bool has = false;
    raw(has);
    if (has) value.emplace();
    return has;
  }

  bool is_whole = true;

 private:
  void take(void* to, std::size_t size) {
    is_whole = is_whole && size <= rest_.size();
    if (!is_whole) return;
    std::memcpy(to, rest_.data(), size);
    rest_.remove_prefix(size);
  }
  std::string_view rest_;
};

template <class Bytes, class Program>
void visit_program(Bytes& bytes, Program& program) {
  bytes.raw(program.rank);
  bytes.raw(program.stream_count);
  bytes.raw(program.iterations);
  bytes.raw(program.marked_thread);
  bytes.raw(program.start_offset);
  bytes.raw(program.own_kernels);
  bytes.list(program.ops);
  bytes.list(program.edges);
  bytes.list(program.details);
}

template <class Bytes, class Plan>
void visit_plan(Bytes& bytes, Plan& plan) {
  bytes.text(plan.name);
  bytes.raw(plan.client);
  bytes.raw(plan.role);
  visit_program(bytes, plan.program);
  bytes.list(plan.forms);
  bytes.list(plan.copies);
  bytes.list(plan.bubbles);
  if (bytes.there_is(plan.loop)) bytes.raw(*plan.loop);
  if (bytes.there_is(plan.serve)) {
    bytes.raw(plan.serve->online);
    bytes.list(plan.serve->arrivals);
    bytes.raw(plan.serve->batching);
  }
  bytes.raw(plan.memory);
  bytes.raw(plan.priority);
  bytes.raw(plan.sms);
  bytes.raw(plan.report_completions);
  bytes.raw(plan.record_operations);
  bytes.raw(plan.device_lags);
}

template <class Bytes, class Record>
void visit_record(Bytes& bytes, Record& record) {
  bytes.text(record.name);
  bytes.raw(record.rank);
  bytes.raw(record.ended);
  bytes.list(record.iterations);
  bytes.list(record.passes);
  bytes.list(record.pass_requests);
  bytes.list(record.requests);
  bytes.list(record.unfinished);
  bytes.raw(record.launches);
  bytes.raw(record.gate_time);
  bytes.raw(record.held_time);
  bytes.raw(record.gate);
  bytes.list(record.operations);
}

// Between the heading and the hash.
Result<std::string_view> payload(std::string_view bytes, const char* what,
                                 const std::string& label) {
  const std::string head = heading(what);
  std::uint64_t hash = 0;
  if (!bytes.starts_with(head)) {
    return fail(label, {}, std::string("is no file of a job's ") + what + " by this build");
  }
  if (bytes.size() < head.size() + sizeof(hash)) return fail(label, {}, "is not whole");
  const std::string_view hashed = bytes.substr(0, bytes.size() - sizeof(hash));
  std::memcpy(&hash, bytes.data() + hashed.size(), sizeof(hash));
  if (hash != hash_of(hashed)) return fail(label, {}, "is not whole, or was changed");
  return hashed.substr(head.size());
}

// Removes references to other ranks of a whole job: none of them exists here.
void leave_job(program::Program& program) {
  for (program::Op& op : program.ops) op.collective = op.result_slot = program::kNoIndex;
  for (program::StepDetail& detail : program.details) {
    detail.after_rank = program::kNoIndex;
    detail.after_passes_back = 0;
  }
}

}  // namespace

std::string job_plan_bytes(const JobPlan& plan) {
  BytesOut out("plan");
  visit_plan(out, plan);
  const program::Program& program = plan.program;
  out.raw(std::uint64_t{program.names.size()});
  for (std::uint32_t i = 0; i < program.names.size(); ++i) out.text(program.names[NameId{i}]);
  out.raw(std::uint64_t{program.threads.size()});
  for (const program::ThreadProgram& thread : program.threads) {
    out.text(thread.name);
    out.list(thread.steps);
  }
  return std::move(out).finish();
}

CheckedResult<JobPlan> parse_job_plan(std::string_view bytes, std::string label) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string_view inside, payload(bytes, "plan", label));
  BytesIn in(inside);
  JobPlan plan;
  visit_plan(in, plan);
  std::uint64_t count = 0;
  in.raw(count);
  for (std::string name; count > 0 && in.is_whole; --count) {
    in.text(name);
    plan.program.names.intern(name);
  }
  in.raw(count);
  for (; count > 0 && in.is_whole; --count) {
    program::ThreadProgram& thread = plan.program.threads.emplace_back();
    in.text(thread.name);
    in.list(thread.steps);
  }
  if (!in.is_whole) return fail(label, {}, "is not whole");
  leave_job(plan.program);
  Errors errors = PlanCheck(plan, label).run();
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return plan;
}

Result<void> write_job_plan(const std::string& path, const JobPlan& plan) {
  return write_whole_file(path, job_plan_bytes(plan));
}

CheckedResult<JobPlan> read_job_plan(const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string bytes, read_text_file(path));
  return parse_job_plan(bytes, path);
}

std::string job_record_bytes(const JobRecord& record) {
  BytesOut out("record");
  visit_record(out, record);
  for (const auto& [name, entry] : record.counters) {
    out.text(name);
    out.raw(entry.severity);
    out.text(entry.help);
    out.raw(entry.count);
  }
  out.text({});
  return std::move(out).finish();
}

Result<JobRecord> parse_job_record(std::string_view bytes, std::string label) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string_view inside, payload(bytes, "record", label));
  BytesIn in(inside);
  JobRecord record;
  visit_record(in, record);
  CounterSet::Entry entry;
  for (std::string name; in.text(name), in.is_whole && !name.empty();) {
    in.raw(entry.severity);
    in.text(entry.help);
    in.raw(entry.count);
    record.counters.add(name, entry);
  }
  if (!in.is_whole) return fail(label, {}, "is not whole");
  return record;
}

Result<void> write_job_record(const std::string& path, const JobRecord& record) {
  return write_whole_file(path, job_record_bytes(record));
}

Result<JobRecord> read_job_record(const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string bytes, read_text_file(path));
  return parse_job_record(bytes, path);
}

}  // namespace bubblesim::capture
