// AntMan's local coordinator: from the lengths of the protected job's mini-batches it sets the
// percentage that opportunistic jobs may run (OSDI'20: lower when mini-batches are longer than
// alone). Its law is not public; additive increase and multiplicative decrease are reconstructed.
#pragma once

#include <algorithm>
#include <cstdint>

#include "policies/iteration_reference.hpp"

namespace bubblesim::policies {

struct AntManCoordinatorConstants {
  double tolerance;       ///< a mini-batch is slow if longer than (1 + tolerance) references
  std::int64_t first;     ///< percentage once the reference is known
  std::int64_t increase;  ///< added after a mini-batch that is not slow
  double decrease;        ///< factor after a slow one, rounded down; at 0 fillers are suspended
};

class AntManCoordinator {
 public:
  AntManCoordinator(const AntManCoordinatorConstants& constants, const ReferenceConstants& measured)
      : constants_(constants), reference_(measured) {
    if (reference_.value()) percentage_ = constants_.first;
  }

  /// A mini-batch of the protected job has ended.
  void end_iteration(Duration length, policy::Instant now) {
    if (reference_.is_measuring(now)) {
      reference_.add(length, now);
      if (!reference_.is_measuring(now)) percentage_ = constants_.first;
    } else if (const auto reference = reference_.value()) {
      const bool slowed = length > scale(*reference, 1 + constants_.tolerance);
      percentage_ = slowed ? lowered()
                           : std::min<std::int64_t>(100, percentage_ + constants_.increase);
    }
  }
  [[nodiscard]] bool is_measuring(policy::Instant now) const {
    return reference_.is_measuring(now);
  }
  [[nodiscard]] const IterationReference& reference() const { return reference_; }
  /// 0 until the reference is known.
  [[nodiscard]] std::int64_t percentage() const { return percentage_; }

 private:
  [[nodiscard]] std::int64_t lowered() const {
    return static_cast<std::int64_t>(static_cast<double>(percentage_) * constants_.decrease);
  }

  AntManCoordinatorConstants constants_;
  IterationReference reference_;
  std::int64_t percentage_ = 0;
};

}  // namespace bubblesim::policies
