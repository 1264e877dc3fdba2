// The options --policy-library (policies from shared libraries beside those that come with
// bubblesim) and --policy-timeout.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/shared/app.hpp"
#include "sim/app/shared/own_process.hpp"
#include "sim/base/time.hpp"
#include "sim/policy/session/call_mark.hpp"

namespace CLI {
class App;
}

namespace bubblesim::app {

/// Adds the option, repeatable, to a command.
void add_policy_library_option(CLI::App& command, AppContext& context);

/// Loads every library that the option named into the registry, before the command runs. Returns
/// all faults at once.
[[nodiscard]] Errors load_policy_libraries(AppContext& context);

/// The program's version (sim/sweep/program_version.hpp), which includes policies from libraries.
[[nodiscard]] Result<std::string> version_with_policies(const AppContext& context);

// The option --policy-timeout: how long a call of a policy may take, in wall time. A policy that
// loops cannot be stopped from outside, so the process ends.

inline constexpr Duration kPolicyBound = std::chrono::seconds(10);

void add_policy_timeout_option(CLI::App& command, Duration& bound);

/// While it lives, a policy's call that lasts longer than `bound` ends the process with
/// kExitInputFault: `before_end` stores finished runs, and a message names policy, call and
/// simulated time. Calls that end in time are not affected. A bound of 0: none.
class PolicyTimeout {
 public:
  PolicyTimeout(Duration bound, std::function<void()> before_end);

 private:
  struct Seen {
    std::uint64_t number = 0;
    Duration lasted{};
  };

  void look();

  const Duration bound_;
  const std::function<void()> before_end_;
  std::map<const policy::CallMark*, Seen> seen_;  // calls in flight; the ticker's own
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  std::optional<Ticker> ticker_;
};

}  // namespace bubblesim::app
