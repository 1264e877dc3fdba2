// What one rank does in the first passes of a run, by operation and by step. Internal to
// record_trace.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/workload/launch.hpp"

namespace bubblesim::synth {

/// Begin and end of an operation or of a call.
struct RecordedSpan {
  SimTime start{};
  SimTime end{};
};

/// A step of kind kIteration or kEnd was passed.
struct RecordedMark {
  std::uint32_t index = 0;  ///< of the iteration within its pass; Program::iterations: kEnd
  SimTime at{};
};

class RankRecording final : public workload::RunObserver {
 public:
  RankRecording(const program::Program& program, std::uint64_t passes)
      : passes_(passes), ended_(program.ops.size()), ops_(program.ops.size() * passes),
        calls_(program.threads.size()) {}

  void on_op_finished(const workload::OpRecord& record) override {
    const std::uint64_t pass = ended_[record.op]++;
    if (pass < passes_) ops_[pass * ended_.size() + record.op] = {record.start, record.end};
  }
  void on_host_call(const workload::HostCallRecord& record) override {
    calls_[record.thread].push_back({record.start, record.end});
  }
  void on_iteration(workload::ProgramRun&, std::uint32_t index, SimTime now) override {
    marks_.push_back({index, now});
  }

  [[nodiscard]] std::uint64_t passes() const { return passes_; }
  [[nodiscard]] const RecordedSpan& op(std::uint64_t pass, std::uint32_t index) const {
    return ops_[pass * ended_.size() + index];
  }
  /// Every step of the thread, pass after pass.
  [[nodiscard]] const std::vector<RecordedSpan>& calls(std::size_t thread) const {
    return calls_[thread];
  }
  [[nodiscard]] const std::vector<RecordedMark>& marks() const { return marks_; }

 private:
  std::uint64_t passes_;
  std::vector<std::uint64_t> ended_;  ///< by operation
  std::vector<RecordedSpan> ops_;
  std::vector<std::vector<RecordedSpan>> calls_;
  std::vector<RecordedMark> marks_;
};

}  // namespace bubblesim::synth
