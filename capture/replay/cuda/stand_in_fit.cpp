#include "capture/replay/cuda/stand_in_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace bubblesim::capture::cuda {
namespace {

constexpr double kMostLoops = 1e12;
constexpr double kLineResolutions = 50;

std::uint64_t whole(double loops) {
  return static_cast<std::uint64_t>(std::clamp(loops, 0.0, kMostLoops) + 0.5);
}

/// Least squares through three points; a line that does not rise keeps the mean of time by loop.
Line through(const std::array<double, 3>& x, const std::array<double, 3>& y) {
  const double mean_x = (x[0] + x[1] + x[2]) / 3;
  const double mean_y = (y[0] + y[1] + y[2]) / 3;
  double xx = 0;
  double xy = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  if (xx <= 0 || xy <= 0) return {0, std::max(mean_y, 1.0) / std::max(mean_x, 1.0)};
  const double slope = xy / xx;
  return {mean_y - slope * mean_x, slope};
}

class Fitter {
 public:
  Fitter(const Measure& measure, Duration solo, double resolution_ns)
      : measure_(measure), solo_(static_cast<double>(std::max<std::int64_t>(to_ns(solo), 1))),
        tolerance_(std::max(kFitTolerance, resolution_ns / solo_)),
        aim_(std::max(solo_, kLineResolutions * resolution_ns)) {}

  /// Loops about which the line is laid, by what is known of it.
  [[nodiscard]] double about(const Line& line) const { return std::max(1.0, line.loops(aim_)); }

  /// Whether `line` gives the duration; false: fit.error says by how much it does not.
  [[nodiscard]] Result<bool> holds(const Line& line, Fit& fit) const {
    const double loops = line.loops(solo_);
    BUBBLESIM_ASSIGN_OR_RETURN(const double lasted, measure_(whole(loops)));
    fit.line = line;
    fit.error = std::abs(lasted - solo_) / solo_;
    fit.at_floor = loops < 0.5 && lasted > solo_;
    fit.held = fit.error <= tolerance_ || fit.at_floor;
    return fit.held;
  }

  /// Three points about `loops`, at least one loop apart.
  [[nodiscard]] Result<Line> line_about(double loops, double reach) const {
    const double step = std::max(1.0, loops * reach);
    std::array<double, 3> x{};
    std::array<double, 3> y{};
    for (std::size_t i = 0; i < 3; ++i) {
      const std::uint64_t at = whole(std::max(loops - step, 0.0) + step * static_cast<double>(i));
      BUBBLESIM_ASSIGN_OR_RETURN(y[i], measure_(at));
      x[i] = static_cast<double>(at);
    }
    return through(x, y);
  }

  /// The guess may be off by far: grows or shrinks it until it lasts about as long.
  [[nodiscard]] Result<double> near(double guess) const {
    double loops = std::max(1.0, guess);
    for (int i = 0; i < 8; ++i) {
      BUBBLESIM_ASSIGN_OR_RETURN(const double lasted, measure_(whole(loops)));
      const double factor = std::clamp(aim_ / std::max(lasted, 1.0), 1.0 / 16, 16.0);
      const double next = std::max(1.0, loops * factor);
      if (next == loops || (factor > 0.7 && factor < 1.4)) return next;
      loops = next;
    }
    return loops;
  }

 private:
  const Measure& measure_;
  double solo_;
  double tolerance_;
  double aim_;  ///< duration about which the line is laid, ns
};

}  // namespace

Result<Fit> fit_loops(const Measure& measure, Duration solo, double guess, const Line* known,
                      const FitLimits& limits) {
  const Fitter fitter(measure, solo, limits.resolution_ns);
  Fit fit;
  if (known != nullptr) {
    BUBBLESIM_ASSIGN_OR_RETURN(const bool held, fitter.holds(*known, fit));
    if (held) return fit;
    guess = fitter.about(*known);
  }
  BUBBLESIM_ASSIGN_OR_RETURN(double loops, fitter.near(guess));
  double reach = 0.5;
  for (fit.rounds = 1;; ++fit.rounds) {
    BUBBLESIM_ASSIGN_OR_RETURN(const Line line, fitter.line_about(loops, reach));
    BUBBLESIM_ASSIGN_OR_RETURN(const bool held, fitter.holds(line, fit));
    if (held || fit.rounds >= limits.rounds) return fit;
    loops = fitter.about(line);
    reach = std::max(0.1, reach / 2);
  }
}

}  // namespace bubblesim::capture::cuda
