// The length of an undisturbed iteration of the protected client: given, or measured over its first
// iterations, while the policy keeps fillers out. The median, so that a slow first iteration does
// not count.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/policy/declaration.hpp"

namespace bubblesim::policies {

struct ReferenceConstants {
  Duration given{};             ///< 0: to be measured
  std::int64_t iterations = 3;  ///< how many are measured
  /// Measuring ends here at the latest. Reconstructed: the sources take a run of training alone.
  Duration longest = std::chrono::seconds(60);
};

class IterationReference {
 public:
  explicit IterationReference(const ReferenceConstants& constants);

  /// Called at an iteration's end. Ignored once measuring has ended.
  void add(Duration length, policy::Instant now);
  /// Whether fillers must be kept out.
  [[nodiscard]] bool is_measuring(policy::Instant now) const;
  /// When measuring ends even if no iteration does.
  [[nodiscard]] policy::Instant deadline() const { return constants_.longest; }
  /// The median of the lengths measured so far; nothing: no iteration yet.
  [[nodiscard]] std::optional<Duration> value() const { return value_; }

 private:
  ReferenceConstants constants_;
  std::vector<Duration> lengths_;
  std::optional<Duration> value_;
};

[[nodiscard]] ReferenceConstants reference_constants(const policy::ParameterSet& given);
[[nodiscard]] std::vector<policy::ParameterSpec> reference_parameters();

}  // namespace bubblesim::policies
