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

namespace bubblesim::capture {

namespace {

/// What a config or a trace can ask for and no process can do: more than a gate holds, and waits
/// that would not end, for operations that no step launches.
Errors faults_of(const JobPlan& plan, const std::string& label) {
  Errors errors;
  const auto fault = [&](const char* place, const std::string& message) {
    errors.push_back({label, place, message});
  };
  const program::Program& program = plan.program;
  if (plan.client.value >= kMostGateClients) fault("client", "is no client of a gate");
  if (program.threads.size() > kMostGateThreads) {
    fault("threads", "found " + std::to_string(program.threads.size()) +
                         " threads; expected at most " + std::to_string(kMostGateThreads));
  }
  std::vector<bool> launched(program.ops.size());
  std::size_t steps = 0;
  for (const program::ThreadProgram& thread : program.threads) {
    steps += thread.steps.size();
    for (const program::Step& step : thread.steps) {
      if (launches(step)) std::fill_n(launched.begin() + step.target, step.count, true);
    }
  }
  if (steps == 0) fault("threads", "no thread has a step");
  const auto never_launched = [](std::uint32_t op) {
    return " waits for operation " + std::to_string(op) + ", which no step launches";
  };
  for (std::size_t thread = 0; thread < program.threads.size(); ++thread) {
    for (const program::Step& step : program.threads[thread].steps) {
      if (step.kind != program::StepKind::kWaitOp || launched[step.target]) continue;
      fault("threads", "thread " + std::to_string(thread) + never_launched(step.target));
    }
  }
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    for (std::uint32_t i = 0; launched[op] && i < program.ops[op].edge_count; ++i) {
      const std::uint32_t before = program.edges[program.ops[op].first_edge + i].before;
      if (launched[before]) continue;
      fault("edges", "operation " + std::to_string(op) + never_launched(before));
    }
  }
  return errors;
}

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
  for (program::StepDetail& detail : program.details) detail.leave_ranks();
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
  Errors errors = faults_of(plan, label);
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
