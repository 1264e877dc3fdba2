#include "sim/workload/meeting_table.hpp"

#include <algorithm>
#include <utility>

namespace bubblesim::workload {
namespace {

class Builder {
 public:
  explicit Builder(const program::Program& program)
      : program_(program), thread_of_(program.stream_count, program::kNoIndex),
        shared_(program.stream_count), through_(program.ops.size()) {
    table_.streams.resize(program.stream_count);
  }

  MeetingTable build() {
    each_launch([this](std::uint32_t thread, std::uint32_t op, Duration) { count(thread, op); });
    each_launch([this](std::uint32_t thread, std::uint32_t op, Duration host) {
      note(thread, op, host);
    });
    for (const program::ThreadProgram& thread : program_.threads) {
      table_.host_passes.push_back(host_time(thread));
    }
    for (std::uint32_t i = 0; i < table_.streams.size(); ++i) {
      if (table_.streams[i].meetings.empty()) continue;
      table_.with_meetings.push_back(i);
      table_.known = table_.known && !shared_[i];
    }
    return std::move(table_);
  }

 private:
  static Duration host_time(const program::ThreadProgram& thread) {
    Duration all{};
    for (const program::Step& step : thread.steps)
      all += step.think.duration() + step.cost.duration();
    return all;
  }

  // Each thread's in the order in which it makes them, with its host time up to the call.
  template <class Visit>
  void each_launch(const Visit& visit) const {
    for (std::uint32_t thread = 0; thread < program_.threads.size(); ++thread) {
      Duration host{};
      for (const program::Step& step : program_.threads[thread].steps) {
        host += step.think.duration();
        if (step.kind == program::StepKind::kLaunch ||
            step.kind == program::StepKind::kLaunchAndWait) {
          for (std::uint32_t i = 0; i < step.count; ++i) visit(thread, step.target + i, host);
        }
        host += step.cost.duration();
      }
    }
  }

  void count(std::uint32_t thread, std::uint32_t index) {
    const program::Op& op = program_.ops[index];
    if (thread_of_[op.stream] == program::kNoIndex) thread_of_[op.stream] = thread;
    if (thread_of_[op.stream] != thread) shared_[op.stream] = true;
    through_[index] = table_.streams[op.stream].pass += op.duration;
  }

  void note(std::uint32_t thread, std::uint32_t index, Duration host) {
    const program::Op& op = program_.ops[index];
    if (op.collective == program::kNoIndex) return;
    Meeting meeting{through_[index] - op.duration, host, op.collective, thread,
                    static_cast<std::uint32_t>(table_.edges.size()), 0};
    for (std::uint32_t i = 0; i < op.edge_count; ++i) {
      const auto& [before, lag, passes_back] = program_.edges[op.first_edge + i];
      const std::uint32_t stream = program_.ops[before].stream;
      if (stream == op.stream || shared_[stream] || passes_back > 0) continue;
      table_.edges.push_back({stream, through_[before]});
      ++meeting.edge_count;
    }
    table_.streams[op.stream].meetings.push_back(meeting);
  }

  const program::Program& program_;
  std::vector<std::uint32_t> thread_of_;  ///< by stream: who launches on it
  std::vector<bool> shared_;              ///< by stream: several threads do
  std::vector<Duration> through_;         ///< by operation: its stream's work with it
  MeetingTable table_;
};

}  // namespace

MeetingTable meeting_table(const program::Program& program) { return Builder(program).build(); }

Duration least_iteration(const program::Program& program) {
  if (program.threads.empty()) return Duration{};
  std::vector<Duration> lengths;  // from one end of an iteration to the next; the first, cut, last
  Duration length{};
  for (const program::Step& step : program.threads[program.marked_thread].steps) {
    length += step.think.duration();
    const bool mark =
        step.kind == program::StepKind::kIteration || step.kind == program::StepKind::kEnd;
    if (mark && step.target > 0) lengths.push_back(std::exchange(length, Duration{}));
    length += step.cost.duration();
  }
  if (lengths.empty()) return Duration{};
  lengths.front() += length;
  return *std::min_element(lengths.begin(), lengths.end());
}

}  // namespace bubblesim::workload
