#include "capture/policy_host/policy_host.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "capture/policy_host/gate_driver.hpp"
#include "capture/policy_host/instant_line.hpp"
#include "sim/base/check.hpp"
#include "sim/policy/gate_terms.hpp"
#include "sim/policy/session/catch_thrown.hpp"

namespace bubblesim::capture {
namespace {

/// How often a host with waiting threads says that it is there, if no client is more impatient.
constexpr Duration kBeat = std::chrono::milliseconds(250);
/// How often it looks whether its clients' processes live; some 10 us each.
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
    counts.clock_steps = instants_.steps();
    counts.longest_step = instants_.longest();
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

  // What goes on afterwards is meant to: only launches that nobody decided on before are a loss.
  void open() {
    if (!opened_.exchange(true)) ungated_ = board_->launches_ungated();
    board_->open();
  }

  [[nodiscard]] bool is_over() const { return stopped_ || driver_.fault().has_value(); }

  // All messages, then those who have gone.
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

  // Nothing is there: the tick, if it is due, else a wait. A tick sees its whole instant, so all
  // who are due now act first, as in the simulator. On a clock that goes on, once.
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
      if (driver_.is_gone(ClientId{i}) || !board_->has_died(ClientId{i})) continue;
      const std::lock_guard lock(gone_mutex_);
      gone_.push_back(ClientId{i});
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
  std::atomic<std::uint64_t> ungated_{0};  ///< when it was opened
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
    for (HostedClient& client : setup.clients) {
      const bool told_to_ask = client.info.id == ClientId{0} && client.mode == GateMode::kAsk;
      if (!told_to_ask) client.mode = GateMode::kPass;
    }
  }
  BUBBLESIM_ASSIGN_OR_RETURN(auto board, GateBoard::make(clock, clients));
  for (std::uint32_t i = 0; i < clients; ++i) {
    BUBBLESIM_CHECK(setup.clients[i].info.id.value == i, "clients of a host in order of their ids");
    board->set_mode(ClientId{i}, setup.clients[i].mode);
    board->set_window(ClientId{i}, setup.clients[i].window);
  }
  return std::make_unique<GateHost>(clock, std::move(board), setup);
}

}  // namespace bubblesim::capture
