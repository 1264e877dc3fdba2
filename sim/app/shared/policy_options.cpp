#include "sim/app/shared/policy_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <utility>

#include "sim/base/units.hpp"
#include "sim/plugin/load_policies.hpp"
#include "sim/sweep/program_version.hpp"

namespace bubblesim::app {
namespace {

Result<void> load(const std::string& wanted, AppContext& context) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string path,
                             plugin::find_policy_library(wanted, context.policy_folders));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto names, plugin::load_policies(path, context.policies));
  for (const std::string& name : names) context.policy_files.emplace(name, path);
  return {};
}

}  // namespace

void add_policy_library_option(CLI::App& command, AppContext& context) {
  command
      .add_option("--policy-library", context.policy_libraries,
                  "Shared library with policies of your own: a path, or a name in a folder of "
                  "$BUBBLESIM_POLICY_PATH; may be given several times")
      ->allow_extra_args(false);  // a word after its value is the command's own
}

Errors load_policy_libraries(AppContext& context) {
  Errors faults;
  for (const std::string& library : context.policy_libraries) {
    if (auto loaded = load(library, context); !loaded) faults.push_back(loaded.error());
  }
  return faults;
}

Result<std::string> version_with_policies(const AppContext& context) {
  std::set<std::string> libraries;
  for (const auto& [policy, file] : context.policy_files) libraries.insert(file);
  return sweep::version_with_libraries(libraries);
}

namespace {

constexpr Duration kTick = std::chrono::milliseconds(50);
// A process that was stopped and goes on has not been in a call all that time.
constexpr Duration kLongestTick = 4 * kTick;

}  // namespace

void add_policy_timeout_option(CLI::App& command, Duration& bound) {
  command
      .add_option_function<std::string>(
          "--policy-timeout",
          [&bound](const std::string& text) {
            const auto read = parse_duration(text);
            if (!read) throw CLI::ValidationError("--policy-timeout", read.error().message);
            bound = *read;
          },
          "Longest wall time of one call of a policy; one that takes longer ends the program, "
          "which names it; 0s: no bound (default: " + format_duration(kPolicyBound) + ")");
}

PolicyTimeout::PolicyTimeout(Duration bound, std::function<void()> before_end)
    : bound_(bound), before_end_(std::move(before_end)) {
  if (bound_ > Duration{}) ticker_.emplace(kTick, [this] { look(); });
}

void PolicyTimeout::look() {
  const auto now = std::chrono::steady_clock::now();
  const Duration since = std::min<Duration>(now - std::exchange(last_, now), kLongestTick);
  std::map<const policy::CallMark*, Seen> in_flight;
  std::string overdue;
  pthread_t thread{};
  policy::CallMark::each([&](const policy::CallMark& mark) {
    const char* call = mark.call();
    if (call == nullptr) return;
    const auto before = seen_.find(&mark);
    Seen& seen = in_flight[&mark];
    seen.number = mark.number();
    if (before == seen_.end() || before->second.number != seen.number) return;
    seen.lasted = before->second.lasted + since;
    if (seen.lasted < bound_ || !overdue.empty()) return;
    overdue = fmt::format("policy {}, call {}, at {} of simulated time", mark.policy(), call,
                          format_duration(mark.now()));
    thread = mark.thread();
  });
  seen_ = std::move(in_flight);
  if (overdue.empty()) return;
  if (before_end_) before_end_();
  report_fault({overdue, {}, "has not returned for " + format_duration(bound_) +
                                 "; expected it within --policy-timeout"});
  end_by_thread(thread, kExitInputFault);
}

}  // namespace bubblesim::app
