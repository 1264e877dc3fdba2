#include "capture/replay/iteration_log.hpp"

#include <utility>

namespace bubblesim::capture {

void IterationLog::tell(Duration length) {
  if (gate_ != nullptr) gate_->iteration_ended(length);
  if (told_) told_();
}

bool IterationLog::mark(const program::Step& step, HostTime now) {
  const bool ends_pass = step.kind == program::StepKind::kEnd;
  if (!plan_.loop || (!ends_pass && step.target == 0)) return false;
  iterations_.push_back(now - origin_);
  if (ends_pass) passes_.push_back(now - origin_);
  tell(now - std::exchange(last_, now));
  return plan_.loop->iterations > 0 && iterations_.size() >= plan_.loop->iterations;
}

void IterationLog::pass(HostTime start, HostTime end, std::uint64_t requests) {
  passes_.push_back(end - origin_);
  pass_requests_.push_back(requests);
  tell(end - start);
}

void IterationLog::move_into(JobRecord& record) {
  record.iterations = std::move(iterations_);
  record.passes = std::move(passes_);
  record.pass_requests = std::move(pass_requests_);
}

}  // namespace bubblesim::capture
