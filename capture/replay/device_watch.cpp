#include "capture/replay/device_watch.hpp"

#include <utility>

#include "capture/replay/launch_path.hpp"

namespace bubblesim::capture {

bool DeviceWatch::is_needed(const JobPlan& plan, const GateClient* gate) {
  if (plan.record_operations) return true;
  return gate != nullptr && (plan.report_completions || !plan.bubbles.empty());
}

std::vector<OperationRecord> DeviceWatch::take_operations(const LaunchPath& path) {
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const LaunchPath::Call call = path.call(launches_[i]);
    operations_[i].called = call.start - origin_;
    operations_[i].returned = call.end - origin_;
  }
  return std::move(operations_);
}

void DeviceWatch::on_started(const OpInstance& op, HostTime) {
  if (gate_ == nullptr) return;
  if (bubbles_.op_started(plan_.program.ops[op.op].kind)) gate_->bubble_ended();
}

void DeviceWatch::on_finished(const OpInstance& op, HostTime start, HostTime end) {
  const program::WorkKind kind = plan_.program.ops[op.op].kind;
  if (plan_.record_operations) {
    // A kernel may end before its launch call has returned: the call is added at the end.
    operations_.push_back({op.op, op.pass, {}, start - origin_, end - origin_, {},
                           signals_.now() - origin_});
    launches_.push_back(op.launch);
  }
  if (progress_) progress_();
  signals_.notify(WakeEvent::kDone);
  if (gate_ == nullptr) return;
  if (plan_.report_completions) gate_->completed(kind, op.launch);
  const policy::BubbleInfo* bubble = bubbles_.op_finished(op.op, kind);
  if (bubble != nullptr) gate_->bubble_began(*bubble);
}

}  // namespace bubblesim::capture
