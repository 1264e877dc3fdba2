#include "sim/run/job_meetings.hpp"

#include <algorithm>

namespace bubblesim::run {

SimTime JobMeetings::next_completion(SimTime now) {
  next_.clear();
  for (const auto& node : nodes_) {
    if (node->training) node->runs.front()->next_meetings(now, next_);
  }
  SimTime anywhere = SimTime::max();
  for (const workload::NextMeeting& next : next_) {
    if (next.collective == program::kNoIndex) {
      anywhere = std::min(anywhere, next.earliest);
    } else {
      rendezvous_.expect(next.collective, next.earliest);
    }
  }
  return std::min(anywhere, rendezvous_.next_completion());
}

void JobMeetings::after_window() {
  arrivals_.clear();
  for (const auto& node : nodes_) {
    if (node->training) node->runs.front()->take_arrivals(arrivals_);
  }
  rendezvous_.arrive_late(arrivals_);
}

}  // namespace bubblesim::run
