// Calls a policy at its decision points, checks its decisions, and answers the threads that wait
// at the gate: schedule::PolicyDriver's rules, with a board in place of a simulated GPU.
//
// By one thread. Asks the clock only how long the policy takes: whoever drives it says at what
// instant things happen.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/clock/host_clock.hpp"
#include "capture/gate/gate_board.hpp"
#include "capture/policy_host/policy_host.hpp"
#include "capture/policy_host/span_histogram.hpp"

namespace bubblesim::capture {

class GateDriver final : public policy::Actions {
 public:
  /// All references outlive the driver.
  GateDriver(HostClock& clock, GateBoard& board, const PolicyHostSetup& setup);

  /// Asks for the first tick.
  void start(policy::Instant now);
  /// Something that a client said. Not after a fault.
  void handle(const GateEvent& event, policy::Instant now);
  void tick(policy::Instant now);
  /// The client's process has ended; false if that is known.
  bool gone(ClientId client, policy::Instant now);

  [[nodiscard]] std::optional<policy::Instant> next_tick() const { return next_tick_; }
  /// A thread waits at the gate.
  [[nodiscard]] bool has_waiting() const;
  [[nodiscard]] bool is_gone(ClientId client) const { return clients_[client.index()].gone; }
  [[nodiscard]] const std::optional<Error>& fault() const { return fault_; }
  [[nodiscard]] PolicyHostCounts counts() const;
  /// `ungated`: launches that nobody decided on, though somebody should have.
  void add_counts(CounterSet& counters, std::uint64_t ungated) const;

  void release(ClientId client) override;
  [[nodiscard]] std::size_t held(ClientId client) const override;
  [[nodiscard]] const policy::LaunchInfo& oldest_held(ClientId client) const override;
  void set_sm_percentage(ClientId client, std::uint32_t percentage) override;
  void set_priority(ClientId client, std::int32_t priority) override;
  void set_time_slice(ClientId client, Duration slice) override;
  void preempt(ClientId client, program::Preemption how) override;
  void proceed(ClientId client) override;
  void reshape(ClientId client, const policy::LaunchForm& form) override;
  void set_resident_memory(ClientId client, Bytes resident) override;

 private:
  struct Waiting {
    policy::LaunchInfo info;
    GateTicket ticket;
    policy::Instant since{};
    std::uint32_t completions = 0;  ///< that came already: its thread had given up waiting
  };
  struct Client {
    HostedClient hosted;
    std::deque<Waiting> held;    ///< by the policy
    std::deque<Waiting> parked;  ///< admitted, while the client is preempted
    /// The last launches that the policy saw, each at its number modulo the size.
    std::vector<std::uint64_t> seen;
    std::uint64_t iterations = 0;
    bool preempted = false;
    bool gone = false;
  };
  struct Released {
    std::size_t client = 0;
    Waiting launch;
  };

  void decide(const GateEvent& event, Client& client, policy::Instant now);
  void complete(const GateMessage& message, Client& client, policy::Instant now);
  void deliver(const policy::CompletionInfo& completion, policy::Instant now);
  [[nodiscard]] policy::LaunchInfo visible(const policy::LaunchInfo& launch) const;
  void bubble(const GateMessage& message, policy::Instant now);
  void begin_call(policy::Instant now);
  HostTime end_call();
  void after_call();
  void go_on();
  void deliver_due();
  [[nodiscard]] static bool is_parked(const Client& client, const policy::LaunchInfo& launch);
  [[nodiscard]] bool exists(ClientId client, std::string_view what);
  void refuse(const std::string& reason);
  void refuse_on_hardware(ClientId client, std::string_view what, std::string_view why);

  HostClock& clock_;
  GateBoard& board_;
  const policy::PolicySpec& spec_;
  policy::Policy& policy_;
  std::vector<Client> clients_;
  std::vector<Released> released_;               ///< by the present call
  std::vector<Waiting> unparked_;                ///< by the present call
  std::vector<policy::CompletionInfo> late_;     ///< of launches released by the present call
  std::optional<policy::Instant> next_tick_;
  std::optional<Error> fault_;
  policy::Instant now_{};
  std::optional<HostTime> call_began_;  ///< of the policy's code that runs
  policy::Instant last_tick_{};
  std::uint32_t ticks_in_instant_ = 0;
  bool bubble_open_ = false;
  PolicyHostCounts counts_;
  SpanHistogram decisions_;
  SpanHistogram calls_;
  std::uint64_t given_up_ = 0;  ///< threads that did not wait for their answer
  std::uint64_t unseen_completions_ = 0;
  std::uint64_t parked_ = 0;
};

}  // namespace bubblesim::capture
