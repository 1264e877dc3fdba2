#include "sim/step_cost/time_table.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "sim/base/check.hpp"

namespace bubblesim::step_cost {
namespace {

constexpr std::size_t kMostAxes = 4;

}  // namespace

Bracket bracket(const Axis& axis, double value, Beyond& beyond) {
  if (axis.size() == 1 || value <= axis.front()) {
    if (value > axis.front()) ++beyond.lookups;
    return {};
  }
  if (value > axis.back()) ++beyond.lookups;
  const auto above = std::lower_bound(axis.begin(), axis.end(), value);
  const auto high = std::min(static_cast<std::size_t>(above - axis.begin()), axis.size() - 1);
  const std::size_t low = high - 1;
  return {low, high, (value - axis[low]) / (axis[high] - axis[low])};
}

double Bracket::interpolated(double low_time, double high_time) const {
  const double time = low_time + share * (high_time - low_time);
  return share > 1 ? std::max(time, high_time) : time;
}

TimeCurve::TimeCurve(Axis axis, std::vector<double> microseconds)
    : axis_(std::move(axis)), microseconds_(std::move(microseconds)) {
  BUBBLESIM_CHECK(!axis_.empty() && axis_.size() == microseconds_.size(),
                  "a curve needs a time for each of its points");
}

double TimeCurve::interpolated(double value, Beyond& beyond) const {
  const Bracket at = bracket(axis_, value, beyond);
  return at.interpolated(microseconds_[at.low], microseconds_[at.high]);
}

double TimeCurve::at_least(double value, Beyond& beyond) const {
  if (value > axis_.back()) return interpolated(value, beyond);
  const auto point = std::lower_bound(axis_.begin(), axis_.end(), value);
  return microseconds_[static_cast<std::size_t>(point - axis_.begin())];
}

TimeGrid::TimeGrid(std::vector<Axis> axes, std::vector<double> microseconds)
    : axes_(std::move(axes)), microseconds_(std::move(microseconds)) {
  std::size_t points = 1;
  for (const Axis& axis : axes_) points *= axis.size();
  BUBBLESIM_CHECK(axes_.size() <= kMostAxes && points == microseconds_.size() && points > 0,
                  "a grid needs a time for each of its points");
}

double TimeGrid::interpolated(std::span<const double> point, Beyond& beyond) const {
  BUBBLESIM_CHECK(point.size() == axes_.size(), "a grid was asked with too few coordinates");
  std::array<Bracket, kMostAxes> at;
  bool is_beyond = false;
  for (std::size_t i = 0; i < point.size(); ++i) {
    at[i] = bracket(axes_[i], point[i], beyond);
    is_beyond = is_beyond || at[i].share > 1;
  }
  const std::span brackets(at.data(), point.size());
  const double time = sum_of_corners(brackets);
  if (!is_beyond) return time;
  for (Bracket& side : brackets) side.share = std::min(side.share, 1.0);
  return std::max(time, sum_of_corners(brackets));
}

double TimeGrid::sum_of_corners(std::span<const Bracket> at) const {
  double sum = 0;
  for (std::size_t corner = 0; corner < (std::size_t{1} << at.size()); ++corner) {
    double weight = 1;
    std::size_t index = 0;
    for (std::size_t i = 0; i < at.size() && weight != 0; ++i) {
      const bool high = (corner >> i & 1U) != 0;
      weight *= high ? at[i].share : 1 - at[i].share;
      index = index * axes_[i].size() + (high ? at[i].high : at[i].low);
    }
    if (weight != 0) sum += weight * microseconds_[index];
  }
  return sum;
}

}  // namespace bubblesim::step_cost
