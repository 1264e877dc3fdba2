// Profiled times over one axis or several, and what lies between and beyond their points.
//
// Times are means of profilers, in microseconds with fractions; a step's sum is rounded to whole
// nanoseconds once (step_cost.hpp). Below the first point of an axis the first point's time holds;
// above the last one, the line through the last two goes on, but not below the last point's time
// (more work never takes less), and `Beyond` counts the lookup.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace bubblesim::step_cost {

/// Lookups above the last point of an axis.
struct Beyond {
  std::uint64_t lookups = 0;
};

/// Values of one axis, ascending; at least one.
using Axis = std::vector<double>;

/// Two neighbours on an axis, and how far a value is from the one to the other: above 1 beyond the
/// last point.
struct Bracket {
  std::size_t low = 0;
  std::size_t high = 0;
  double share = 0;

  /// On the line between two neighbours' times, or beyond them.
  [[nodiscard]] double interpolated(double low_time, double high_time) const;
};
[[nodiscard]] Bracket bracket(const Axis& axis, double value, Beyond& beyond);

/// Times over one axis.
class TimeCurve {
 public:
  TimeCurve() = default;
  /// Takes as many times as points.
  TimeCurve(Axis axis, std::vector<double> microseconds);

  /// The value on the line between the two neighbours.
  [[nodiscard]] double interpolated(double value, Beyond& beyond) const;
  /// The value of the nearest point that is not smaller: matrix products work in whole tiles, so
  /// their times are stairs, and a profile's points lie at the right ends of treads.
  [[nodiscard]] double at_least(double value, Beyond& beyond) const;

  [[nodiscard]] const Axis& axis() const { return axis_; }
  [[nodiscard]] const std::vector<double>& microseconds() const { return microseconds_; }
  friend bool operator==(const TimeCurve&, const TimeCurve&) = default;

 private:
  Axis axis_;
  std::vector<double> microseconds_;
};

/// Times over the product of several axes; the last one's index runs fastest.
class TimeGrid {
 public:
  TimeGrid() = default;
  /// A time for each combination.
  TimeGrid(std::vector<Axis> axes, std::vector<double> microseconds);

  /// Linear along each axis. Takes as many coordinates as axes.
  [[nodiscard]] double interpolated(std::span<const double> point, Beyond& beyond) const;

  [[nodiscard]] bool empty() const { return microseconds_.empty(); }
  [[nodiscard]] const std::vector<Axis>& axes() const { return axes_; }
  [[nodiscard]] const std::vector<double>& microseconds() const { return microseconds_; }
  friend bool operator==(const TimeGrid&, const TimeGrid&) = default;

 private:
  [[nodiscard]] double sum_of_corners(std::span<const Bracket> at) const;

  std::vector<Axis> axes_;
  std::vector<double> microseconds_;
};

}  // namespace bubblesim::step_cost
