// A small driver of the policy contract, with times that can be checked by hand. Training launches
// at given instants. Each filler has host threads that make its launches one after the other, each
// thread `gap` apart, and block inside a held one. The device runs each client's operations one
// after the other for their profiled time; a completion is noticed `notice` later. Calls and checks
// are those of every driver (sim/policy/session): the first illegal decision ends the scenario.
//
// Preemption on this device: after_kernel lets the operation that runs end; after_blocks and
// context_switch stop it where it is; reset makes it start over. All other operations wait for
// proceed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/policy/declaration.hpp"

namespace bubblesim::testing {

struct Call {
  policy::Instant at{};
  policy::WorkKind kind = policy::WorkKind::kKernel;
  std::uint64_t blocks = 0;
  Duration length{};
  std::uint64_t sm_blocks = 0;
  policy::KernelClass bound = policy::KernelClass::kUnknown;
  std::uint64_t function = 0;  ///< equal numbers: the same kernel; 0: a kernel of its own
};

struct ScenarioBubble {
  policy::Instant begin{};
  policy::Instant end{};
  policy::BubbleInfo info;
};

/// A filler that launches `kernels` over and over, at most `launches` times in all.
struct Filler {
  policy::Role role = policy::Role::kOffline;
  std::vector<Call> kernels;  ///< `at` is not used
  std::uint64_t launches = 0;
  Duration gap{};  ///< host time between two launches
  Bytes memory;
  bool memory_known = false;
  std::size_t threads = 1;
  policy::Instant begins{};  ///< start of its process
  std::optional<policy::Instant> dies_at = std::nullopt;  ///< end of its process
  std::uint64_t pass = 0;  ///< launches of a pass, which ends with the last one; 0: no marks
};

struct Scenario {
  policy::GpuInfo gpu;
  Bytes training_memory;
  std::vector<Call> training;  ///< by `at`
  std::vector<Filler> fillers;
  std::vector<ScenarioBubble> bubbles;          ///< by `begin`
  std::vector<policy::Instant> iteration_ends;  ///< of training, ascending
  Duration notice{};            ///< from an operation's end to its completion
  Duration horizon{};           ///< later events do not happen
  policy::Role training_role = policy::Role::kTraining;  ///< of the protected client
  std::uint32_t training_ranks = 1;                      ///< of its job
};

struct Passed {
  policy::Instant at{};
  ClientId client;
  std::uint64_t launch = 0;
  std::uint64_t blocks = 0;
  friend bool operator==(const Passed&, const Passed&) = default;
};

/// A policy's action on a client other than a release: "preempt 1 after_blocks".
struct Done {
  policy::Instant at{};
  std::string what;
  friend bool operator==(const Done&, const Done&) = default;
};

struct Outcome {
  policy::Sharing sharing;
  std::vector<policy::ClientSharing> clients;
  std::vector<policy::Admission> admissions;  ///< of the fillers
  std::vector<Passed> passed;                 ///< every launch that reached the driver, in order
  std::vector<Done> done;                     ///< in order
  std::vector<std::string> faults;            ///< why it ended: an illegal decision, or no policy
  std::vector<std::size_t> held_at_end;       ///< by client
  std::uint64_t training_held = 0;            ///< launches of training that were ever held
  std::uint64_t ticks = 0;
  CounterSet counts;

  /// Launches of the client that passed in [from, to).
  [[nodiscard]] std::size_t count(std::uint32_t client, Duration from, Duration to) const;
  /// The instants of these launches.
  [[nodiscard]] std::vector<policy::Instant> times(std::uint32_t client) const;
};

/// Runs the scenario under the policy. Deterministic; ends at the horizon.
[[nodiscard]] Outcome drive(policy::Policy& policy, const policy::PolicySpec& spec,
                            const Scenario& scenario);

/// Makes the policy with its defaults, except for `given` ("name=value"), and runs it.
[[nodiscard]] Outcome drive(const policy::PolicySpec& spec, const std::vector<std::string>& given,
                            const Scenario& scenario);

}  // namespace bubblesim::testing
