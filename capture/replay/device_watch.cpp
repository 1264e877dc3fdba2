#include "capture/replay/device_watch.hpp"

#include <algorithm>
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
  if (plan_.program.ops[op.op].kind != program::WorkKind::kKernel) return;
  ++running_;
  if (!bubble_open_) return;
  bubble_open_ = false;
  gate_->bubble_ended();
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
  if (gate_ != nullptr && plan_.report_completions) gate_->completed(kind, op.launch);
  if (kind != program::WorkKind::kKernel) return;
  if (running_ > 0) --running_;
  if (gate_ != nullptr && running_ == 0) begin_bubble(op.op);
}

void DeviceWatch::begin_bubble(std::uint32_t op) {
  const auto place = std::lower_bound(
      plan_.bubbles.begin(), plan_.bubbles.end(), op,
      [](const PlanBubble& bubble, std::uint32_t wanted) { return bubble.after_op < wanted; });
  if (place == plan_.bubbles.end() || place->after_op != op) return;
  bubble_open_ = true;
  gate_->bubble_began(place->info);
}

}  // namespace bubblesim::capture
