#include "sim/policy/declare.hpp"

#include <utility>

namespace bubblesim::policy {
namespace {

ParameterSpec declare(std::string name, Value fallback, Value minimum, Value maximum,
                      std::vector<std::string> choices, About about) {
  return {std::move(name),       std::move(fallback),    std::move(minimum),
          std::move(maximum),    std::move(choices),     std::move(about.unit),
          std::move(about.help), std::move(about.source)};
}

}  // namespace

ParameterSpec declare_flag(std::string name, bool fallback, About about) {
  return declare(std::move(name), fallback, false, true, {}, std::move(about));
}

ParameterSpec declare_integer(std::string name, std::int64_t fallback, std::int64_t minimum,
                              std::int64_t maximum, About about) {
  return declare(std::move(name), fallback, minimum, maximum, {}, std::move(about));
}

ParameterSpec declare_number(std::string name, double fallback, double minimum, double maximum,
                             About about) {
  return declare(std::move(name), fallback, minimum, maximum, {}, std::move(about));
}

ParameterSpec declare_duration(std::string name, Duration fallback, Duration minimum,
                               Duration maximum, About about) {
  return declare(std::move(name), fallback, minimum, maximum, {}, std::move(about));
}

ParameterSpec declare_device_duration(std::string name, Duration minimum, Duration maximum,
                                      About about) {
  return declare(std::move(name), std::string("device"), minimum, maximum, {"device"},
                 std::move(about));
}

ParameterSpec declare_choice(std::string name, std::vector<std::string> choices, About about) {
  Value fallback = choices.front();
  return declare(std::move(name), std::move(fallback), std::string(), std::string(),
                 std::move(choices), std::move(about));
}

}  // namespace bubblesim::policy
