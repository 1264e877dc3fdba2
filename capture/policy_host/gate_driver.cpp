#include "capture/policy_host/gate_driver.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/base/check.hpp"
#include "sim/base/units.hpp"

namespace bubblesim::capture {
namespace {

// As the simulator's driver: a policy may look again in the same instant, but not forever.
constexpr std::uint32_t kMostTicksInInstant = 10'000;
// Launches of a client whose completions may still come: more than any device holds at once.
constexpr std::size_t kMostSeen = 65'536;
constexpr std::uint64_t kNoLaunch = std::numeric_limits<std::uint64_t>::max();

constexpr CounterSpec kUngated{"gate_launches_ungated", Severity::kLoss,
                               "launches that went on while nobody decided"};
constexpr CounterSpec kDropped{"gate_messages_dropped", Severity::kLoss,
                               "what clients told while their ring was full: the policy missed it"};
constexpr CounterSpec kDied{"gate_clients_died", Severity::kNotice,
                            "clients whose process ended while the policy ran"};
constexpr CounterSpec kGivenUp{"gate_answers_too_late", Severity::kLoss,
                               "verdicts and releases whose thread had gone on without"};
constexpr CounterSpec kUnseen{"gate_completions_unseen", Severity::kLoss,
                              "completions of launches that the policy never saw, kept from it"};
constexpr CounterSpec kParked{"gate_launches_parked", Severity::kInfo,
                              "admitted launches that waited because their client was preempted"};

}  // namespace

GateDriver::GateDriver(HostClock& clock, GateBoard& board, const PolicyHostSetup& setup)
    : clock_(clock), board_(board), spec_(*setup.spec), policy_(*setup.policy) {
  clients_.resize(setup.clients.size());
  for (std::size_t i = 0; i < clients_.size(); ++i) clients_[i].hosted = setup.clients[i];
  if (!spec_.needs.completions) return;
  for (Client& client : clients_) client.seen.assign(kMostSeen, kNoLaunch);
}

void GateDriver::start(policy::Instant now) {
  now_ = now;
  next_tick_ = policy_.next_tick();
}

void GateDriver::handle(const GateEvent& event, policy::Instant now) {
  const GateMessage& message = event.message;
  if (message.launch.client.index() >= clients_.size()) return;  // shared memory: trust nothing
  Client& client = clients_[message.launch.client.index()];
  if (client.gone) return;
  switch (message.kind) {
    case MessageKind::kTold:
    case MessageKind::kAsked: decide(event, client, now); break;
    case MessageKind::kUngated: break;  // the policy never sees it
    case MessageKind::kCompleted: complete(message, client, now); break;
    case MessageKind::kIteration:
      if (!spec_.needs.iterations) break;
      begin_call(now);
      policy_.on_iteration({message.launch.client, ++client.iterations, message.length}, now,
                           *this);
      after_call();
      break;
    case MessageKind::kBubbleBegan:
    case MessageKind::kBubbleEnded: bubble(message, now); break;
  }
}

// What the policy declared that it needs, and no more.
policy::LaunchInfo GateDriver::visible(const policy::LaunchInfo& launch) const {
  policy::LaunchInfo info = launch;
  if (!spec_.needs.kernel_durations) info.profiled = {};
  if (!spec_.needs.kernel_classes) info.bound = program::KernelClass::kUnknown;
  return info;
}

void GateDriver::decide(const GateEvent& event, Client& client, policy::Instant now) {
  const policy::LaunchInfo info = visible(event.message.launch);
  const bool asked = event.message.kind == MessageKind::kAsked;
  if (spec_.needs.completions) client.seen[info.launch % kMostSeen] = info.launch;
  begin_call(now);
  const policy::Verdict verdict = policy_.on_launch(info, now, *this);
  const HostTime decided = end_call();
  if (verdict == policy::Verdict::kHold && !asked) {
    refuse("held a launch of client " + std::to_string(info.client.value) +
           ", whose threads do not wait for verdicts");
  } else if (verdict == policy::Verdict::kHold) {
    // Into the queue before after_call(): what this very call released is older.
    client.held.push_back({info, event.ticket, now});
    ++counts_.holds;
    board_.hold(event.ticket);
  } else if (asked && is_parked(client, info)) {
    client.parked.push_back({info, event.ticket, now});
    ++parked_;
    board_.hold(event.ticket);
  } else if (asked) {
    if (!board_.let_go(event.ticket)) ++given_up_;
    decisions_.add(decided - event.message.time);
  }
  after_call();
}

void GateDriver::complete(const GateMessage& message, Client& client, policy::Instant now) {
  if (!spec_.needs.completions) return;
  const policy::LaunchInfo& launch = message.launch;
  // Ungated, or dropped on a full ring.
  if (client.seen[launch.launch % kMostSeen] != launch.launch) {
    ++unseen_completions_;
    return;
  }
  // Its thread gave up waiting and launched, but for the policy it is held.
  for (Waiting& waiting : client.held) {
    if (waiting.info.launch != launch.launch) continue;
    ++waiting.completions;
    return;
  }
  deliver({launch.client, launch.kind, launch.launch}, now);
}

void GateDriver::deliver(const policy::CompletionInfo& completion, policy::Instant now) {
  begin_call(now);
  policy_.on_completion(completion, now, *this);
  after_call();
}

void GateDriver::bubble(const GateMessage& message, policy::Instant now) {
  if (!spec_.needs.bubbles || message.launch.client.value != 0) return;
  const bool begins = message.kind == MessageKind::kBubbleBegan;
  if (!begins && !bubble_open_) return;
  bubble_open_ = begins;
  begin_call(now);
  if (begins) {
    policy_.on_bubble_begin(message.bubble, now, *this);
  } else {
    policy_.on_bubble_end(now, *this);
  }
  after_call();
}

void GateDriver::tick(policy::Instant now) {
  ticks_in_instant_ = now == last_tick_ ? ticks_in_instant_ + 1 : 1;
  last_tick_ = now;
  if (ticks_in_instant_ > kMostTicksInInstant) {
    now_ = now;
    refuse("asks for ticks without end at one instant");
    return;
  }
  begin_call(now);
  policy_.on_tick(now, *this);
  after_call();
}

bool GateDriver::gone(ClientId id, policy::Instant now) {
  Client& client = clients_[id.index()];
  if (client.gone) return false;
  client.gone = true;
  client.held.clear();
  client.parked.clear();
  ++counts_.clients_died;
  if (id.value == 0) return true;  // the contract knows of fillers that go
  begin_call(now);
  policy_.on_gone(id, now, *this);
  after_call();
  return true;
}

void GateDriver::begin_call(policy::Instant now) {
  ++counts_.calls;
  now_ = now;
  call_began_ = clock_.now();
}

// The policy's code has returned: when.
HostTime GateDriver::end_call() {
  const HostTime now = clock_.now();
  calls_.add(now - *call_began_);
  call_began_.reset();
  return now;
}

// Lets released threads go on, and asks for the policy's next tick.
void GateDriver::after_call() {
  if (call_began_) end_call();
  go_on();
  if (fault_) return;
  if (!late_.empty()) {
    deliver_due();
    return;
  }
  next_tick_ = policy_.next_tick();
}

void GateDriver::go_on() {
  for (const Waiting& launch : std::exchange(unparked_, {})) {
    if (!board_.let_go(launch.ticket)) ++given_up_;
  }
  for (Released& released : std::exchange(released_, {})) {
    Client& client = clients_[released.client];
    const Waiting& launch = released.launch;
    ++counts_.released;
    counts_.held_time += now_ - launch.since;
    for (std::uint32_t i = 0; i < launch.completions; ++i) {
      late_.push_back({launch.info.client, launch.info.kind, launch.info.launch});
    }
    if (is_parked(client, launch.info)) {
      client.parked.push_back(launch);
      ++parked_;
    } else if (!board_.let_go(launch.ticket)) {
      ++given_up_;
    }
  }
}

// One after the other: what a policy does at one may add more.
void GateDriver::deliver_due() {
  const policy::CompletionInfo next = late_.front();
  late_.erase(late_.begin());
  deliver(next, now_);
}

bool GateDriver::has_waiting() const {
  return std::ranges::any_of(clients_, [](const Client& client) {
    return !client.held.empty() || !client.parked.empty();
  });
}

PolicyHostCounts GateDriver::counts() const {
  PolicyHostCounts counts = counts_;
  counts.decision_latency = decisions_.summary();
  counts.policy_call = calls_.summary();
  return counts;
}

void GateDriver::add_counts(CounterSet& counters, std::uint64_t ungated) const {
  policy_.add_counts(counters);
  counters.add(kUngated, ungated);
  counters.add(kDropped, board_.messages_dropped());
  counters.add(kDied, counts_.clients_died);
  counters.add(kGivenUp, given_up_);
  counters.add(kUnseen, unseen_completions_);
  counters.add(kParked, parked_);
}

}  // namespace bubblesim::capture
