// The command `bubblesim fill`, and what it is asked to do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capture/live/run_fill.hpp"
#include "sim/app/app.hpp"
#include "sim/policy/declaration.hpp"

namespace CLI {
class App;
}

namespace bubblesim::app {

struct FillArguments {
  std::string policy;
  std::vector<std::string> values;            ///< --set: name=value
  std::vector<std::string> policy_libraries;
  std::string train, fill;                    ///< lines for a shell
  std::string device;                         ///< of configs/devices
  std::string gpu;                            ///< UUID or index
  std::string filler_role = "offline";
  std::string substitute;
  std::string after_training = "stop";
  std::string after_death = "keep";
  std::string grace = "10s";
  std::string fill_log;
  std::string library;
  std::uint32_t window = 0;
  bool gate_training = false;
  bool json = false;
};

void add_fill_command(CLI::App& parser, AppContext& context);
void add_fill_options(CLI::App& command, FillArguments& arguments);

/// --set: the values of a policy's parameters; all faults at once.
[[nodiscard]] CheckedResult<policy::ParameterSet> read_policy_values(
    const policy::PolicySpec& spec, const std::vector<std::string>& values);

}  // namespace bubblesim::app
