#include "capture/policy_host/policy_host.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "capture/clock/host_clock.hpp"
#include "capture/gate/gate_board.hpp"
#include "sim/base/check.hpp"
#include "sim/base/nearest_rank.hpp"
#include "sim/policy/gate_terms.hpp"
#include "sim/policy/session/catch_thrown.hpp"
#include "sim/policy/session/outlet.hpp"
#include "sim/policy/session/session.hpp"

namespace bubblesim::capture {
namespace {

constexpr CounterSpec kUngated{"gate_launches_ungated", Severity::kLoss,
                               "launches that went on while nobody decided"};
constexpr CounterSpec kDropped{"gate_messages_dropped", Severity::kLoss,
                               "what clients told while their ring was full: the policy missed it"};
constexpr CounterSpec kDied{"gate_clients_died", Severity::kNotice,
                            "clients that ended while the policy ran"};
constexpr CounterSpec kGivenUp{"gate_answers_too_late", Severity::kLoss,
                               "verdicts and releases whose thread had gone on without"};
constexpr CounterSpec kUnseen{"gate_completions_unseen", Severity::kLoss,
                              "completions of launches that the policy never saw, kept from it"};
constexpr CounterSpec kParked{"gate_launches_parked", Severity::kInfo,
                              "admitted launches that waited because their client was preempted"};

GateTicket ticket_of(policy::Waiter waiter) {
  return {static_cast<std::uint32_t>(waiter), static_cast<std::uint32_t>(waiter >> 32U)};
}

/// The session's name for the thread that holds the ticket.
policy::Waiter waiter_of(GateTicket ticket) {
  return policy::Waiter{ticket.ask} << 32U | ticket.row;
}

/// Carries out a policy's legal decisions at a gate: threads go on, or wait. Changes that hardware
/// cannot make while a process runs are refused: another SM percentage, priority or slice, driving
/// resident blocks off, other forms of kernels, moving memory.
///
/// Preemption (kAfterKernel) is done by the gate: launches of the client but collectives are
/// parked, even if the policy admitted or released them; launches already on the device run to
/// their end.
class GateOutlet final : public policy::Outlet {
 public:
  /// Clock and board outlive the outlet.
  GateOutlet(HostClock& clock, GateBoard& board, const std::vector<HostedClient>& clients)
      : clock_(clock), board_(board), clients_(clients.size()) {
    for (std::size_t i = 0; i < clients.size(); ++i) clients_[i].mode = clients[i].mode;
  }

  /// Sets when the thread asked for the launch that is decided next.
  void set_asked(HostTime time) { asked_ = time; }
  /// Called when the client's process has ended: none of its launches is parked any more.
  void forget(ClientId client) { clients_[client.index()].parked.clear(); }
  [[nodiscard]] bool has_parked() const {
    return std::ranges::any_of(
        clients_, [](const Client& client) { return !client.parked.empty(); });
  }

  [[nodiscard]] std::optional<policy::Instant> next_tick() const { return tick_; }
  [[nodiscard]] SpanSummary decision_latency() const { return decisions_.summary(); }
  [[nodiscard]] SpanSummary policy_call() const { return calls_.summary(); }
  /// Number of threads that gave up before their answer came.
  [[nodiscard]] std::uint64_t given_up() const { return given_up_; }
  /// Launches that were ever parked.
  [[nodiscard]] std::uint64_t launches_parked() const { return launches_parked_; }

  void admit(const policy::LaunchInfo& launch, policy::Waiter waiter,
             const std::optional<policy::LaunchForm>&) override {
    if (waiter == policy::kNobodyWaits) return;
    const GateTicket ticket = ticket_of(waiter);
    if (park(launch, ticket)) {
      board_.hold(ticket);
      return;
    }
    let_go(ticket);
    decisions_.add(clock_.now() - asked_);
  }
  void hold(const policy::HeldLaunch& launch) override { board_.hold(ticket_of(launch.waiter)); }
  void release(const policy::HeldLaunch& launch,
               const std::optional<policy::LaunchForm>&, policy::Instant) override {
    const GateTicket ticket = ticket_of(launch.waiter);
    if (!park(launch.info, ticket)) let_go(ticket);
  }
  policy::Refusal cap(ClientId, std::uint32_t) override {
    return " while it runs; MPS sets them when a process starts";
  }
  policy::Refusal prioritise(ClientId, std::int32_t) override {
    return " while it runs; CUDA sets it when a stream is made";
  }
  policy::Refusal slice(ClientId, Duration) override {
    return " while it runs; the driver's slices are fixed";
  }
  policy::Refusal preempt(ClientId id, policy::Preemption how) override {
    if (how != policy::Preemption::kAfterKernel) {
      return " while it runs; a gate leaves resident blocks alone (after_kernel)";
    }
    Client& client = clients_[id.index()];
    if (client.mode == GateMode::kTell) return ", whose threads do not wait for verdicts";
    if (client.mode == GateMode::kPass) set_mode(id, GateMode::kAsk);  // so that it can be parked
    client.preempted = true;
    // Launches that this very call lets proceed have not gone on yet.
    for (const Unparked& launch : unparked_) {
      if (launch.client == id) client.parked.push_back(launch.ticket);
    }
    std::erase_if(unparked_, [id](const Unparked& launch) { return launch.client == id; });
    return {};
  }
  policy::Refusal proceed(ClientId id) override {
    Client& client = clients_[id.index()];
    client.preempted = false;
    for (const GateTicket ticket : std::exchange(client.parked, {})) {
      unparked_.push_back({id, ticket});
    }
    return {};
  }
  policy::Refusal reshape(ClientId, const policy::LaunchForm&) override {
    return " while it runs; a gate cannot rewrite kernels";
  }
  policy::Refusal move_memory(ClientId, Bytes, Bytes) override {
    return " while it runs; a gate cannot move it";
  }
  policy::Refusal set_asking(ClientId id, bool asks) override {
    const Client& client = clients_[id.index()];
    if (client.preempted && !asks) return " while its launches are parked";
    if (client.mode != GateMode::kPass) set_mode(id, asks ? GateMode::kAsk : GateMode::kTell);
    return {};
  }
  void arm_tick(std::optional<policy::Instant> next, policy::Instant) override { tick_ = next; }
  void call_begins() override { call_began_ = clock_.now(); }
  void call_returned() override {
    call_returned_ = clock_.now();
    calls_.add(call_returned_ - call_began_);
  }
  // An unparked launch is no longer held, or never was: only its thread is released.
  void settle() override {
    for (const Unparked& launch : std::exchange(unparked_, {})) let_go(launch.ticket);
  }

 private:
  struct Client {
    GateMode mode = GateMode::kAsk;
    bool preempted = false;
    std::vector<GateTicket> parked;
  };
  struct Unparked {
    ClientId client;
    GateTicket ticket;
  };

  /// Parks the launch of a preempted client, unless it is a collective; false: the thread may go
  /// on.
  bool park(const policy::LaunchInfo& launch, GateTicket ticket) {
    Client& client = clients_[launch.client.index()];
    if (!client.preempted || launch.kind == policy::WorkKind::kCollective) return false;
    client.parked.push_back(ticket);
    ++launches_parked_;
    return true;
  }
  void let_go(GateTicket ticket) {
    if (!board_.let_go(ticket)) ++given_up_;
  }
  void set_mode(ClientId id, GateMode mode) {
    clients_[id.index()].mode = mode;
    board_.set_mode(id, mode);
  }

  HostClock& clock_;
  GateBoard& board_;
  std::vector<Client> clients_;
  std::vector<Unparked> unparked_;  ///< by the present call
  std::optional<policy::Instant> tick_;
  HostTime asked_{};
  HostTime call_began_{};
  HostTime call_returned_{};
  SpanHistogram decisions_;
  SpanHistogram calls_;
  std::uint64_t given_up_ = 0;
  std::uint64_t launches_parked_ = 0;
};

using Layout = LogBuckets<5>;

Duration middle_of(std::uint32_t bucket) {
  return Layout::low_of(bucket) + Layout::width_of(bucket) / 2;
}

}  // namespace

void SpanHistogram::add(Duration span) {
  span = std::max(span, Duration{});
  ++counts_[Layout::bucket_of(span)];
  ++total_;
  sum_ += static_cast<double>(span.count());
  max_ = std::max(max_, span);
}

Duration SpanHistogram::percentile(double percent) const {
  const std::uint64_t rank = nearest_rank(percent, total_);
  std::uint64_t seen = 0;
  for (std::uint32_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= rank) return std::min(middle_of(i), max_);
  }
  return max_;
}

SpanSummary SpanHistogram::summary() const {
  if (total_ == 0) return {};
  SpanSummary result;
  result.count = total_;
  result.mean = Duration{std::llround(sum_ / static_cast<double>(total_))};
  result.p50 = percentile(50);
  result.p95 = percentile(95);
  result.p99 = percentile(99);
  result.max = max_;
  return result;
}

namespace {

// Drives a policy by the messages of a gate's clients: the session's rules, with a board in place
// of a simulated GPU.
//
// Faults of a gate that a simulated GPU does not have: lost messages (a full ring), launches
// without a decision, threads that gave up waiting. So the policy does not get completions of
// launches that it never saw, and gets completions of a launch that it still holds after it has
// released the launch.
//
// Used by one thread. It uses the clock only to time the policy: its caller gives the instant of
// each event.

// Launches of a client whose completions may still come; more than any device holds at once.
constexpr std::size_t kMostSeen = 65'536;
constexpr std::uint64_t kNoLaunch = std::numeric_limits<std::uint64_t>::max();

class GateDriver {
 public:
  /// All references outlive the driver.
  GateDriver(HostClock& clock, GateBoard& board, const PolicyHostSetup& setup)
      : board_(board), outlet_(clock, board, setup.clients), clients_(setup.clients.size()),
        ended_(setup.clients.size()),
        session_(*setup.spec, *setup.policy, outlet_,
                 setup.sharing == policy::SharingMode::kTimeSliced) {
    for (const HostedClient& client : setup.clients) {
      session_.add_client({.memory = client.memory, .resident = client.memory});
      if (setup.spec->needs.completions) seen_.emplace_back(kMostSeen);
    }
  }

  /// Asks for the first tick.
  void start(policy::Instant now) { session_.begin(now); }
  /// Handles a client's message. Must not be called after a fault.
  void handle(const GateEvent& event, policy::Instant now) {
    const GateMessage& message = event.message;
    const ClientId client = message.launch.client;
    if (client.index() >= clients_) return;  // shared memory is not trusted
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
  void tick(policy::Instant now) {
    session_.on_tick(now);
    deliver_kept(now);
  }
  /// The client's launches up to this number have left the device, reported or not.
  // A process that was killed, or left while the device worked, reports no completions; if a launch
  // of it is held, its completions are reported when the policy releases it.
  void ended_through(ClientId client, std::uint64_t launch, policy::Instant now) {
    std::uint64_t& known = ended_[client.index()];
    if (launch == known) return;
    known = launch;
    if (seen_.empty() || is_gone(client)) return;
    for (const Seen& seen : seen_[client.index()]) {
      if (seen.outstanding > 0 && seen.launch <= launch) complete_all(client, seen, now);
    }
    deliver_kept(now);
  }
  /// The client has ended for good.
  void gone(ClientId client, policy::Instant now) {
    if (is_gone(client)) return;
    ++clients_died_;
    outlet_.forget(client);
    session_.on_gone(client, now);
    deliver_kept(now);
  }

  [[nodiscard]] std::optional<policy::Instant> next_tick() const { return outlet_.next_tick(); }
  /// A thread waits at the gate.
  [[nodiscard]] bool has_waiting() const {
    return session_.still_held() > 0 || outlet_.has_parked();
  }
  [[nodiscard]] bool is_gone(ClientId client) const { return session_.is_gone(client); }
  [[nodiscard]] const std::optional<Error>& fault() const { return session_.fault(); }
  [[nodiscard]] PolicyHostCounts counts() const {
    PolicyHostCounts counts;
    counts.session = session_.counts();
    counts.decision_latency = outlet_.decision_latency();
    counts.policy_call = outlet_.policy_call();
    counts.clients_died = clients_died_;
    return counts;
  }
  /// Counts of the gate. `ungated`: launches without a decision though one was due.
  void add_counts(CounterSet& counters, std::uint64_t ungated) const {
    counters.add(kUngated, ungated);
    counters.add(kDropped, board_.messages_dropped());
    counters.add(kDied, clients_died_);
    counters.add(kGivenUp, outlet_.given_up());
    counters.add(kUnseen, unseen_completions_);
    counters.add(kParked, outlet_.launches_parked());
  }

 private:
  /// A launch that the policy saw, and how many of its operations still run for the policy.
  struct Seen {
    std::uint64_t launch = kNoLaunch;
    policy::WorkKind kind{};
    std::uint32_t outstanding = 0;
  };

  void decide(const GateEvent& event, policy::Instant now) {
    const policy::LaunchInfo& launch = event.message.launch;
    if (!seen_.empty()) {
      seen_[launch.client.index()][launch.launch % kMostSeen] = {launch.launch, launch.kind,
                                                                 launch.operations};
    }
    const bool asked = event.message.kind == MessageKind::kAsked;
    outlet_.set_asked(event.message.time);
    const policy::Waiter waiter = asked ? waiter_of(event.ticket) : policy::kNobodyWaits;
    session_.on_launch(policy::LaunchInfo(launch), waiter, now);
    if (launch.launch <= ended_[launch.client.index()] && !seen_.empty()) {
      complete_all(launch.client, seen_[launch.client.index()][launch.launch % kMostSeen], now);
    }
  }
  void complete_all(ClientId client, const Seen& seen, policy::Instant now) {
    complete({.client = client, .kind = seen.kind, .launch = seen.launch,
              .operations = seen.outstanding}, now);
  }
  void complete(const policy::LaunchInfo& launch, policy::Instant now) {
    if (seen_.empty() || is_gone(launch.client)) return;
    Seen& seen = seen_[launch.client.index()][launch.launch % kMostSeen];
    if (seen.launch != launch.launch) {
      ++unseen_completions_;  // ungated, or dropped on a full ring
      return;
    }
    policy::LaunchInfo ended = launch;
    ended.operations = std::min(launch.operations, seen.outstanding);
    seen.outstanding -= ended.operations;
    if (session_.holds(launch.client, launch.launch)) {
      kept_.push_back(ended);  // its thread gave up waiting and launched
    } else {
      deliver(ended, now);
    }
  }
  void deliver(const policy::LaunchInfo& launch, policy::Instant now) {
    for (std::uint32_t i = 0; i < launch.operations && !fault(); ++i) {
      session_.on_completion({launch.client, launch.kind, launch.launch}, now);
    }
  }
  // One after the other: the policy's reaction to one may release more.
  void deliver_kept(policy::Instant now) {
    const auto is_due = [this](const policy::LaunchInfo& launch) {
      return !session_.holds(launch.client, launch.launch);
    };
    while (!fault()) {
      const auto due = std::ranges::find_if(kept_, is_due);
      if (due == kept_.end()) return;
      const policy::LaunchInfo ended = *due;
      kept_.erase(due);
      deliver(ended, now);
    }
  }

  GateBoard& board_;
  GateOutlet outlet_;
  std::size_t clients_;
  std::vector<std::uint64_t> ended_;  ///< by client: see ended_through
  policy::Session<GateOutlet> session_;
  /// The last launches that the policy saw, by client, each at its number modulo the size; empty:
  /// the policy does not hear of completions.
  std::vector<std::vector<Seen>> seen_;
  std::vector<policy::LaunchInfo> kept_;  ///< operations that ended, of launches that are held
  std::uint64_t unseen_completions_ = 0;
  std::uint64_t clients_died_ = 0;
};

/// How often a host with waiting threads moves its heartbeat, if no client is more impatient.
constexpr Duration kBeat = std::chrono::milliseconds(250);
/// How often the host checks that its clients' processes live; some 10 us each.
constexpr Duration kLookAfterClients = std::chrono::milliseconds(100);

constexpr CounterSpec kSteps{"gate_times_out_of_order", Severity::kNotice,
                             "times that came out of order and were taken as the last one's"};

class GateHost final : public PolicyHost {
 public:
  GateHost(HostClock& clock, std::unique_ptr<GateBoard> board, const PolicyHostSetup& setup)
      : clock_(clock), spec_(*setup.spec), policy_(*setup.policy), board_(std::move(board)),
        driver_(clock, *board_, setup),
        clients_(static_cast<std::uint32_t>(setup.clients.size())) {
    instants_.set_origin(setup.origin);
  }

  const std::string& gate_name() const override { return board_->name(); }
  void set_origin(HostTime origin) override { instants_.set_origin(origin); }

  void run() override {
    const auto ended = policy::catch_thrown(spec_, [this]() -> Result<void> {
      decide();
      policy_.add_counts(policy_counts_);
      return {};
    });
    if (!ended) thrown_ = ended.error();
    open();
  }

  void stop() override {
    stopped_ = true;
    open();
    board_->knock();
  }

  void client_gone(ClientId client) override {
    BUBBLESIM_CHECK(client.value < clients_, "a client that the host does not have");
    {
      const std::lock_guard lock(gone_mutex_);
      gone_.push_back(client);
    }
    board_->knock();
  }

  const std::optional<Error>& fault() const override {
    return driver_.fault() ? driver_.fault() : thrown_;
  }

  PolicyHostCounts counts() const override {
    PolicyHostCounts counts = driver_.counts();
    counts.messages_dropped = board_->messages_dropped();
    counts.session.calls += board_->launches_passed();
    return counts;
  }

  CounterSet counters() const override {
    CounterSet counters = policy_counts_;
    driver_.add_counts(counters, opened_ ? ungated_.load() : board_->launches_ungated());
    counters.add(kSteps, instants_.steps());
    return counters;
  }

 private:
  void decide() {
    board_->beat(clock_.now());
    driver_.start(instants_.at(instants_.last(), clock_.now()));
    while (!is_over()) {
      const std::uint32_t knocks = board_->knocks();
      if (is_over()) break;
      work_off();
      if (is_over()) break;
      rest(knocks);
    }
  }

  // Launches after the opening go on by intent; earlier ones without a decision are a loss.
  void open() {
    if (!opened_.exchange(true)) ungated_ = board_->launches_ungated();
    board_->open();
  }

  [[nodiscard]] bool is_over() const { return stopped_ || driver_.fault().has_value(); }

  // Handles all messages, then the clients that have gone.
  void work_off() {
    while (const auto event = is_over() ? std::nullopt : board_->take()) {
      const HostTime now = clock_.now();
      driver_.handle(*event, instants_.at(event->message.time, now));
      board_->beat(now);
      quiet_ = false;
    }
    look_after_clients();
    std::vector<ClientId> gone;
    {
      const std::lock_guard lock(gone_mutex_);
      gone.swap(gone_);
    }
    for (const ClientId client : gone) {
      if (is_over()) return;
      board_->mark_gone(client);
      const HostTime now = clock_.now();
      driver_.gone(client, instants_.at(now, now));
      quiet_ = false;
    }
  }

  // Without messages: the tick, if it is due, else a wait. A tick must see its whole instant, so
  // all threads due now act first, as in the simulator; on a clock that cannot stop, once.
  void rest(std::uint32_t knocks) {
    const HostTime now = clock_.now();
    board_->beat(now);
    const auto tick = driver_.next_tick();
    if (tick && instants_.time_of(*tick) <= std::max(now, instants_.last())) {
      if (quiet_ || (yielded_at_ && now > *yielded_at_)) {
        driver_.tick(instants_.at(std::max(now, instants_.last()), now));
        yielded_at_.reset();
        quiet_ = false;
      } else {
        if (!yielded_at_) yielded_at_ = now;
        quiet_ = true;
        board_->wait(knocks, now);
      }
      return;
    }
    yielded_at_.reset();
    HostTime deadline = tick ? instants_.time_of(*tick) : HostTime::max();
    if (driver_.has_waiting()) deadline = std::min(deadline, now + beat_interval());
    board_->wait(knocks, deadline);
  }

  [[nodiscard]] Duration beat_interval() const {
    const Duration patience = board_->shortest_patience();
    return patience == Duration{} ? kBeat : std::clamp(patience / 4, Duration{1}, kBeat);
  }

  void look_after_clients() {
    const HostTime now = clock_.now();
    if (now < next_look_) return;
    next_look_ = now + kLookAfterClients;
    for (std::uint32_t i = 0; i < clients_; ++i) {
      if (is_over()) return;
      const ClientId client{i};
      driver_.ended_through(client, board_->ended_through(client), instants_.at(now, now));
    }
  }

  HostClock& clock_;
  const policy::PolicySpec& spec_;
  policy::Policy& policy_;
  std::unique_ptr<GateBoard> board_;
  GateDriver driver_;
  std::uint32_t clients_;
  InstantLine instants_;
  std::atomic<bool> stopped_{false};
  std::atomic<bool> opened_{false};
  std::atomic<std::uint64_t> ungated_{0};  ///< when the gate was opened
  std::optional<HostTime> yielded_at_;  ///< to all who are due at the instant of the tick
  bool quiet_ = false;                  ///< and nothing has come of it
  HostTime next_look_{};
  std::mutex gone_mutex_;
  std::vector<ClientId> gone_;
  CounterSet policy_counts_;
  std::optional<Error> thrown_;  ///< what the policy threw
};

}  // namespace

Result<std::unique_ptr<PolicyHost>> PolicyHost::make(HostClock& clock, PolicyHostSetup setup) {
  BUBBLESIM_CHECK(setup.spec != nullptr && setup.policy != nullptr, "a host without a policy");
  const auto clients = static_cast<std::uint32_t>(setup.clients.size());
  if (!policy::hears_launches(*setup.spec)) {
    for (std::uint32_t i = 0; i < clients; ++i) {
      GateMode& mode = setup.clients[i].mode;
      if (i > 0 || mode != GateMode::kAsk) mode = GateMode::kPass;
    }
  }
  BUBBLESIM_ASSIGN_OR_RETURN(auto board, GateBoard::make(clock, clients));
  if (setup.one_gpu) board->watch_all_gpus();
  for (std::uint32_t i = 0; i < clients; ++i) {
    board->set_mode(ClientId{i}, setup.clients[i].mode);
    board->set_window(ClientId{i}, setup.clients[i].window);
  }
  return std::make_unique<GateHost>(clock, std::move(board), setup);
}

}  // namespace bubblesim::capture
