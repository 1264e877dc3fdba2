// Short ways to write a policy's parameter declarations, a function for each type.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/policy/declaration.hpp"

namespace bubblesim::policy {

/// The parts of every declaration besides type, default and range.
struct About {
  std::string unit;    ///< "blocks", "%", "windows"; empty for spans, factors and texts
  std::string help;    ///< one sentence
  std::string source;  ///< paper and section, code, or "reconstructed: ..."
};

[[nodiscard]] ParameterSpec declare_flag(std::string name, bool fallback, About about);
[[nodiscard]] ParameterSpec declare_integer(std::string name, std::int64_t fallback,
                                            std::int64_t minimum, std::int64_t maximum,
                                            About about);
[[nodiscard]] ParameterSpec declare_number(std::string name, double fallback, double minimum,
                                           double maximum, About about);
[[nodiscard]] ParameterSpec declare_duration(std::string name, Duration fallback, Duration minimum,
                                             Duration maximum, About about);
/// A duration whose default is the word "device": the device file's own constant.
[[nodiscard]] ParameterSpec declare_device_duration(std::string name, Duration minimum,
                                                    Duration maximum, About about);
/// The default is the first choice.
[[nodiscard]] ParameterSpec declare_choice(std::string name, std::vector<std::string> choices,
                                           About about);

}  // namespace bubblesim::policy
