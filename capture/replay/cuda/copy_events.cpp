#include "capture/replay/cuda/copy_events.hpp"

#include "capture/replay/cuda/graph_set.hpp"

namespace bubblesim::capture::cuda {

Result<void> CopyEvents::make(const JobPlan& plan, const GraphSet& graphs) {
  place_.assign(plan.program.ops.size(), kNone);
  if (plan.record_operations) return {};
  for (std::uint32_t op = 0; op < place_.size(); ++op) {
    if (is_kernel(plan.program.ops[op].kind) || graphs.holding(op) != nullptr) continue;
    place_[op] = static_cast<std::uint32_t>(events_.size());
    events_.emplace_back();
    for (EventHandle& event : events_.back())
      BUBBLESIM_CUDA(driver_, event_create, &event, kEventDisableTiming);
  }
  return {};
}

CopyEvents::~CopyEvents() {
  for (const auto& of_operation : events_)
    for (EventHandle event : of_operation)
      if (event != nullptr) (void)driver_.event_destroy(event);
}

Result<void> CopyEvents::record(std::uint32_t op, std::uint64_t n, StreamHandle stream) const {
  BUBBLESIM_CUDA(driver_, event_record, event(op, n), stream);
  return {};
}

bool CopyEvents::ended(std::uint32_t op, std::uint64_t n) const {
  (void)driver_.set_current(context_);
  return driver_.event_query(event(op, n)) == Status::kSuccess;
}

}  // namespace bubblesim::capture::cuda
