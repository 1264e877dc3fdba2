#include "capture/policy_host/gate_driver.hpp"

#include <algorithm>
#include <limits>

namespace bubblesim::capture {
namespace {

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
    : board_(board), outlet_(clock, board, setup.clients), clients_(setup.clients.size()),
      session_(*setup.spec, *setup.policy, outlet_,
               setup.sharing == policy::SharingMode::kTimeSliced) {
  for (const HostedClient& client : setup.clients) {
    session_.add_client({.memory = client.info.memory, .resident = client.info.memory});
    if (setup.spec->needs.completions) seen_.emplace_back(kMostSeen, kNoLaunch);
  }
}

void GateDriver::handle(const GateEvent& event, policy::Instant now) {
  const GateMessage& message = event.message;
  const ClientId client = message.launch.client;
  if (client.index() >= clients_) return;  // shared memory: trust nothing
  switch (message.kind) {
    case MessageKind::kTold:
    case MessageKind::kAsked: decide(event, now); break;
    case MessageKind::kUngated: break;  // the policy never sees it
    case MessageKind::kCompleted: complete(message.launch, now); break;
    case MessageKind::kIteration: session_.on_iteration(client, message.length, now); break;
    case MessageKind::kBubbleBegan:
      if (client.value == 0) session_.on_bubble_begin(message.bubble, now);
      break;
    case MessageKind::kBubbleEnded:
      if (client.value == 0) session_.on_bubble_end(now);
      break;
  }
  deliver_kept(now);
}

void GateDriver::decide(const GateEvent& event, policy::Instant now) {
  const policy::LaunchInfo& launch = event.message.launch;
  if (!seen_.empty()) seen_[launch.client.index()][launch.launch % kMostSeen] = launch.launch;
  const bool asked = event.message.kind == MessageKind::kAsked;
  outlet_.set_asked(event.message.time);
  const policy::Waiter waiter = asked ? waiter_of(event.ticket) : policy::kNobodyWaits;
  session_.on_launch(policy::LaunchInfo(launch), waiter, now);
}

void GateDriver::complete(const policy::LaunchInfo& launch, policy::Instant now) {
  if (seen_.empty() || is_gone(launch.client)) return;
  const policy::CompletionInfo completion{launch.client, launch.kind, launch.launch};
  if (seen_[launch.client.index()][launch.launch % kMostSeen] != launch.launch) {
    ++unseen_completions_;  // ungated, or dropped on a full ring
  } else if (session_.holds(launch.client, launch.launch)) {
    kept_.push_back(completion);  // its thread gave up waiting and launched
  } else {
    session_.on_completion(completion, now);
  }
}

// One after the other: what the policy does at one may release more.
void GateDriver::deliver_kept(policy::Instant now) {
  const auto is_due = [this](const policy::CompletionInfo& completion) {
    return !session_.holds(completion.client, completion.launch);
  };
  while (!fault()) {
    const auto due = std::ranges::find_if(kept_, is_due);
    if (due == kept_.end()) return;
    const policy::CompletionInfo completion = *due;
    kept_.erase(due);
    session_.on_completion(completion, now);
  }
}

void GateDriver::tick(policy::Instant now) {
  session_.on_tick(now);
  deliver_kept(now);
}

void GateDriver::gone(ClientId client, policy::Instant now) {
  if (is_gone(client)) return;
  ++clients_died_;
  outlet_.forget(client);
  session_.on_gone(client, now);
  deliver_kept(now);
}

bool GateDriver::has_waiting() const { return session_.still_held() > 0 || outlet_.has_parked(); }

PolicyHostCounts GateDriver::counts() const {
  PolicyHostCounts counts;
  counts.session = session_.counts();
  counts.decision_latency = outlet_.decision_latency();
  counts.policy_call = outlet_.policy_call();
  counts.clients_died = clients_died_;
  return counts;
}

void GateDriver::add_counts(CounterSet& counters, std::uint64_t ungated) const {
  counters.add(kUngated, ungated);
  counters.add(kDropped, board_.messages_dropped());
  counters.add(kDied, clients_died_);
  counters.add(kGivenUp, outlet_.given_up());
  counters.add(kUnseen, unseen_completions_);
  counters.add(kParked, outlet_.launches_parked());
}

}  // namespace bubblesim::capture
