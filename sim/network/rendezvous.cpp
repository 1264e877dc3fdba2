#include "sim/network/rendezvous.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/check.hpp"

namespace bubblesim::network {
namespace {

// What a channel of NCCL moves without its peer: 4 MiB of buffers (NCCL_BUFFSIZE), at some 20 GB/s.
constexpr Duration kBuffered = std::chrono::microseconds(200);

}  // namespace

Rendezvous::Rendezvous(const std::vector<std::uint32_t>& participants) {
  meetings_.reserve(participants.size());
  for (const std::uint32_t needed : participants) {
    BUBBLESIM_CHECK(needed >= 1, "a collective has at least one participant");
    meetings_.push_back({needed, 0, {}, nullptr, kNoSender, false, {}});
    meetings_.back().waiters.reserve(needed);
  }
}

Rendezvous::Rendezvous(engine::Engine& engine, const std::vector<MeetingSpec>& meetings,
                       const LinkTable& links, const std::vector<SlowLink>& slow)
    : engine_(&engine), entity_(engine.add_entity(*this, engine::Phase::kCompletion)) {
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
  if (meeting.sender != kNoSender) return pass_on(collective, false, now);
  if (meeting.waiters.size() == meeting.needed) complete(collective, now);
}

// A participant that stands still as the last one comes has begun before, and holds up the others.
void Rendezvous::complete(std::uint32_t collective, SimTime now) {
  Meeting& meeting = meetings_[collective];
  if (watches_) note_group(meeting);
  meeting.told = false;
  meeting.buffered_until = {};
  if (meeting.standing == 0) begin(collective, now);
}

void Rendezvous::begin(std::uint32_t collective, SimTime now) {
  Meeting& meeting = meetings_[collective];
  if (meeting.transfer == nullptr) return release(collective, now);
  meeting.flow = fabric_->start(*meeting.transfer, *this, collective, now);
}

void Rendezvous::note_group(Meeting& meeting) {
  meeting.group.insert(meeting.group.end(), meeting.waiters.begin(), meeting.waiters.end());
  under_way_ += meeting.waiters.size();
  meeting.standing += static_cast<std::uint32_t>(
      std::ranges::count_if(meeting.waiters, [](const Waiter& waiter) {
        return waiter.participant->stands_still(waiter.cookie);
      }));
}

void Rendezvous::send(std::uint32_t collective, Participant& participant, std::uint64_t cookie,
                      SimTime now) {
  Meeting& meeting = meetings_[collective];
  BUBBLESIM_DCHECK(meeting.waiters.size() < meeting.needed, "its last use is complete");
  meeting.waiters.push_back({&participant, cookie});
  pass_on(collective, true, now);
}

// A sender waits while the buffer is full, a receiver while it is empty.
void Rendezvous::pass_on(std::uint32_t collective, bool sends, SimTime now) {
  Meeting& meeting = meetings_[collective];
  if (sends == meeting.sent) return;
  const bool both = meeting.waiters.size() == 2;
  meeting.sent = both ? !sends : sends;
  if (watches_) note_group(meeting);
  release(collective, now);
}

void Rendezvous::stop(std::uint32_t collective, Participant& who, std::uint64_t cookie,
                      SimTime now) {
  Meeting& meeting = meetings_[collective];
  if (find(meeting.group, who, cookie) == meeting.group.end()) return;
  if (meeting.standing++ == 0 && meeting.buffered_until <= now) hold(collective, now);
}

void Rendezvous::go_on(std::uint32_t collective, Participant& who, std::uint64_t cookie,
                       SimTime now) {
  Meeting& meeting = meetings_[collective];
  const auto waiter = find(meeting.group, who, cookie);
  if (waiter == meeting.group.end()) return;
  waiter->had_turn = true;
  --meeting.standing;
  if (meeting.buffered_until > now) return;
  if (meeting.standing == 0) return advance(collective, now);
  const bool all_had_turns = std::ranges::all_of(meeting.group, [](const Waiter& each) {
    return each.had_turn || !each.participant->stands_still(each.cookie);
  });
  if (all_had_turns && engine_ != nullptr) advance_buffered(collective, now);
}

void Rendezvous::end(std::uint32_t collective, Participant& who, std::uint64_t cookie) {
  std::vector<Waiter>& group = meetings_[collective].group;
  const auto waiter = find(group, who, cookie);
  if (waiter == group.end()) return;
  group.erase(waiter);
  --under_way_;
}

std::vector<Rendezvous::Waiter>::iterator Rendezvous::find(std::vector<Waiter>& group,
                                                           const Participant& who,
                                                           std::uint64_t cookie) {
  return std::ranges::find_if(group, [&](const Waiter& waiter) {
    return waiter.participant == &who && waiter.cookie == cookie;
  });
}

void Rendezvous::hold(std::uint32_t collective, SimTime now) {
  Meeting& meeting = meetings_[collective];
  for (Waiter& waiter : meeting.group) waiter.had_turn = false;
  if (meeting.told) return tell(copy_of(meeting.group), &Participant::on_held, now);
  if (meeting.flow) fabric_->hold(*meeting.flow, now);
}

void Rendezvous::advance(std::uint32_t collective, SimTime now) {
  Meeting& meeting = meetings_[collective];
  if (meeting.told) return tell(copy_of(meeting.group), &Participant::on_released, now);
  if (meeting.flow) return fabric_->go_on(*meeting.flow, now);
  begin(collective, now);
}

void Rendezvous::advance_buffered(std::uint32_t collective, SimTime now) {
  buffered_.push_back({collective, now + kBuffered});
  meetings_[collective].buffered_until = now + kBuffered;
  if (buffered_.size() == 1) engine_->schedule(entity_, now + kBuffered);
  advance(collective, now);
}

void Rendezvous::on_event(SimTime now) {
  while (!buffered_.empty() && buffered_.front().until <= now) {
    const Buffered over = buffered_.front();
    buffered_.erase(buffered_.begin());
    const Meeting& meeting = meetings_[over.collective];
    if (meeting.buffered_until == over.until && meeting.standing > 0) hold(over.collective, now);
  }
  if (!buffered_.empty()) engine_->schedule(entity_, buffered_.front().until);
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
  release(static_cast<std::uint32_t>(collective), now);
}

void Rendezvous::release(std::uint32_t collective, SimTime now) {
  Meeting& meeting = meetings_[collective];
  meeting.told = true;
  meeting.flow.reset();
  std::vector<Waiter> waiters = copy_of(meeting.waiters);
  meeting.waiters.clear();
  const bool carried = meeting.transfer != nullptr;
  tell(std::move(waiters),
       carried ? &Participant::on_transfer_finished : &Participant::on_all_arrived, now);
  // Who is told of the beginning may stop in the same instant; a buffered send's receiver may have
  // stood still all along.
  const Meeting& begun = meetings_[collective];
  if (begun.standing > 0 && begun.buffered_until <= now) hold(collective, now);
}

std::vector<Rendezvous::Waiter> Rendezvous::copy_of(const std::vector<Waiter>& waiters) {
  std::vector<Waiter> copy = std::move(told_);
  copy.assign(waiters.begin(), waiters.end());
  return copy;
}

// A participant that is told may arrive elsewhere, end, or add a collective, at once: no
// meeting's own list is gone through.
void Rendezvous::tell(std::vector<Waiter> whom, Tell what, SimTime now) {
  for (const Waiter& waiter : whom) (waiter.participant->*what)(waiter.cookie, now);
  told_ = std::move(whom);
}

std::uint64_t Rendezvous::waiting() const {
  return static_cast<std::uint64_t>(
      std::count_if(meetings_.begin(), meetings_.end(),
                    [](const Meeting& meeting) { return !meeting.waiters.empty(); }));
}

}  // namespace bubblesim::network
