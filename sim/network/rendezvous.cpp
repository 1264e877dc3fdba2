#include "sim/network/rendezvous.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/check.hpp"

namespace bubblesim::network {

Rendezvous::Rendezvous(const std::vector<std::uint32_t>& participants) {
  meetings_.reserve(participants.size());
  for (const std::uint32_t needed : participants) {
    BUBBLESIM_CHECK(needed >= 1, "a collective has at least one participant");
    meetings_.push_back({needed, 0, {}, nullptr, kNoSender, false, {}});
    meetings_.back().waiters.reserve(needed);
  }
}

Rendezvous::Rendezvous(engine::Engine& engine, const std::vector<MeetingSpec>& meetings,
                       const LinkTable& links, const std::vector<SlowLink>& slow) {
  meetings_.reserve(meetings.size());
  const bool carries = !links.empty() || std::ranges::any_of(meetings, &MeetingSpec::transfer);
  if (carries) fabric_ = std::make_unique<Fabric>(engine, links, slow);
  for (const MeetingSpec& spec : meetings) add(spec);
}

std::uint32_t Rendezvous::add(const MeetingSpec& spec) {
  BUBBLESIM_CHECK(spec.participants >= 1, "a collective has at least one participant");
  BUBBLESIM_CHECK(spec.transfer == nullptr || fabric_, "a transfer without links");
  BUBBLESIM_CHECK(spec.sender == kNoSender || (spec.participants == 2 && spec.transfer == nullptr),
                  "a buffered send has one receiver and no transfer");
  meetings_.push_back({spec.participants, 0, {}, spec.transfer, spec.sender, false, {}});
  meetings_.back().waiters.reserve(spec.participants);
  return static_cast<std::uint32_t>(meetings_.size() - 1);
}

void Rendezvous::arrive(std::uint32_t collective, Participant& participant, std::uint64_t cookie,
                        SimTime now) {
  Meeting& meeting = meetings_[collective];
  BUBBLESIM_DCHECK(meeting.waiters.size() < meeting.needed, "its last use is complete");
  meeting.waiters.push_back({&participant, cookie});
  if (meeting.sender != kNoSender) return pass_on(meeting, false, now);
  if (meeting.waiters.size() < meeting.needed) return;
  if (meeting.transfer != nullptr) {
    fabric_->start(*meeting.transfer, *this, collective, now);
  } else {
    release(meeting, now);
  }
}

void Rendezvous::send(std::uint32_t collective, Participant& participant, std::uint64_t cookie,
                      SimTime now) {
  Meeting& meeting = meetings_[collective];
  BUBBLESIM_DCHECK(meeting.waiters.size() < meeting.needed, "its last use is complete");
  meeting.waiters.push_back({&participant, cookie});
  pass_on(meeting, true, now);
}

// Whoever came last waits, a sender while the buffer is full, a receiver while it is empty.
void Rendezvous::pass_on(Meeting& meeting, bool sends, SimTime now) {
  if (sends == meeting.sent) return;
  const bool both = meeting.waiters.size() == 2;
  meeting.sent = both ? !sends : sends;
  release(meeting, now);
}

void Rendezvous::arrive_late(std::vector<Arrival>& arrivals) {
  std::ranges::stable_sort(arrivals, {}, [](const Arrival& arrival) {
    return std::pair{arrival.time, arrival.phase};
  });
  for (const Arrival& arrival : arrivals) {
    Meeting& meeting = meetings_[arrival.collective];
    BUBBLESIM_CHECK(meeting.waiters.size() + 1 < meeting.needed,
                    "a collective is complete earlier than it can be");
    meeting.waiters.push_back({arrival.participant, arrival.cookie});
  }
}

void Rendezvous::expect(std::uint32_t collective, SimTime earliest) {
  Meeting& meeting = meetings_[collective];
  if (meeting.expected++ == 0) {
    meeting.latest = earliest;
    looked_at_.push_back(collective);
  }
  meeting.latest = std::max(meeting.latest, earliest);
}

SimTime Rendezvous::next_completion() {
  SimTime next = SimTime::max();
  for (const std::uint32_t collective : looked_at_) {
    Meeting& meeting = meetings_[collective];
    const std::size_t there = meeting.waiters.size() + std::exchange(meeting.expected, 0);
    if (there >= meeting.needed) next = std::min(next, meeting.latest);
  }
  looked_at_.clear();
  return next;
}

void Rendezvous::on_flow_finished(std::uint64_t collective, SimTime now) {
  release(meetings_[collective], now);
}

void Rendezvous::release(Meeting& meeting, SimTime now) {
  // A participant that is told may arrive elsewhere, or add a collective, at once: hand over a list
  // of our own, and do not look at the meeting again.
  const bool carried = meeting.transfer != nullptr;
  std::vector<Waiter> released = std::move(released_);
  released.assign(meeting.waiters.begin(), meeting.waiters.end());
  meeting.waiters.clear();
  for (const Waiter& waiter : released) {
    if (carried) {
      waiter.participant->on_transfer_finished(waiter.cookie, now);
    } else {
      waiter.participant->on_all_arrived(waiter.cookie, now);
    }
  }
  released_ = std::move(released);
}

std::uint64_t Rendezvous::waiting() const {
  return static_cast<std::uint64_t>(
      std::count_if(meetings_.begin(), meetings_.end(),
                    [](const Meeting& meeting) { return !meeting.waiters.empty(); }));
}

}  // namespace bubblesim::network
