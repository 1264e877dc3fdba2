// Checks a policy's actions: the part of a session that policies see. An illegal decision is a
// fault with the policy's name, the instant and the reason, in the same words on every outlet; the
// first one counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/base/quantities.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/policy/policy.hpp"
#include "sim/policy/session/outlet.hpp"

namespace bubblesim::policy {

/// Counts of a policy's holds and other actions.
struct SessionCounts {
  std::uint64_t calls = 0;
  std::uint64_t holds = 0;
  std::uint64_t released = 0;
  Duration held_time{};  ///< of released launches
  std::uint64_t preemptions = 0;
  std::uint64_t reshaped = 0;  ///< launches in another form
  Bytes migrated;              ///< memory moved to or from the device
};

/// A client at the start of its session.
struct SessionClient {
  Bytes memory{};       ///< 0: not known
  Bytes resident{};     ///< of its memory, on the device
  bool present = true;  ///< false: it was refused; decisions about it have no effect
};

class CheckedActions : public Actions {
 public:
  CheckedActions(const CheckedActions&) = delete;
  CheckedActions& operator=(const CheckedActions&) = delete;

  void release(ClientId client) final;
  [[nodiscard]] std::size_t held(ClientId client) const final;
  [[nodiscard]] const LaunchInfo& oldest_held(ClientId client) const final;
  void set_sm_percentage(ClientId client, std::uint32_t percentage) final;
  void set_priority(ClientId client, std::int32_t priority) final;
  void set_time_slice(ClientId client, Duration slice) final;
  void preempt(ClientId client, Preemption how) final;
  void proceed(ClientId client) final;
  void reshape(ClientId client, const LaunchForm& form) final;
  void set_resident_memory(ClientId client, Bytes resident) final;
  void set_asking(ClientId client, bool asks) final;

  /// Adds a client, in order of ids, before the first call.
  void add_client(const SessionClient& client) {
    clients_.emplace_back().known = client;
    silent_.push_back(false);
  }

  [[nodiscard]] const SessionCounts& counts() const { return counts_; }
  /// The client's memory that the policy wants on the device now; 0: not known.
  [[nodiscard]] Bytes resident(ClientId client) const {
    return clients_[client.index()].known.resident;
  }
  /// Launches of all clients that are held now.
  [[nodiscard]] std::uint64_t still_held() const;
  /// Whether the client's launch of this number is held now.
  [[nodiscard]] bool holds(ClientId client, std::uint64_t launch) const;
  [[nodiscard]] bool is_gone(ClientId client) const { return clients_[client.index()].gone; }
  /// The illegal decision that ended the session.
  [[nodiscard]] const std::optional<Error>& fault() const { return fault_; }

 protected:
  struct Client {
    SessionClient known;
    std::vector<HeldLaunch> held;    ///< the oldest first; at most one for each host thread
    std::optional<LaunchForm> form;  ///< of the next launch that goes on
    std::uint64_t iterations = 0;
    bool gone = false;
  };
  struct Released {
    HeldLaunch launch;
    std::optional<LaunchForm> form;
  };

  /// `turns`: the GPU is shared in time slices (SharingMode::kTimeSliced).
  CheckedActions(const PolicySpec& spec, Outlet& outlet, bool turns)
      : spec_(spec), outlet_(outlet), turns_(turns) {}

  void refuse(const std::string& reason);

  const PolicySpec& spec_;
  std::vector<Client> clients_;
  /// By client id: the policy hears no more of it, because it or the session has ended.
  std::vector<std::uint8_t> silent_;
  std::vector<Released> released_;  ///< by the present call
  SessionCounts counts_;
  Instant now_{};  ///< of the present call, or of the last one
  std::optional<Error> fault_;

 private:
  [[nodiscard]] bool affects(ClientId client, std::string_view what);
  [[nodiscard]] bool is_done(Refusal refusal, ClientId client, std::string_view what);

  Outlet& outlet_;
  bool turns_;
};

}  // namespace bubblesim::policy
