// What a table of co-location pairs does not say: the device, how requests came, and which policy
// with which parameters stands for each system. configs/validation/*.json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/policy/declaration.hpp"

namespace bubblesim::validate {

struct GivenText {
  std::string name;
  std::string text;  ///< as a config writes it
};

struct SystemSetting {
  std::string name;    ///< as the table calls it
  std::string policy;  ///< of the registry
  std::vector<GivenText> parameters;
};

struct SharingSetting {
  std::string name;
  std::string path;
  std::string device;       ///< a file of configs/devices and of configs/efficiency
  double load = 0.5;
  double ramp = 0;
  std::uint64_t seed = 1;
  Duration least_length{};  ///< of a run
  std::uint32_t requests = 60;  ///< a run is as long as so many take to come, if that is longer
  std::vector<SystemSetting> systems;
};

/// `name` is a path, else the id of a file in configs/validation.
[[nodiscard]] CheckedResult<SharingSetting> find_sharing_setting(const std::string& name,
                                                                 const std::string& configs);

/// The policy's parameters with what the setting gives. Faults: those of check_parameters.
[[nodiscard]] CheckedResult<policy::ParameterSet> parameters_of(const SystemSetting& system,
                                                                const policy::PolicySpec& spec,
                                                                const SharingSetting& setting);

}  // namespace bubblesim::validate
