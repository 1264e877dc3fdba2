#include "capture/replay/cuda/stand_in_fit.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iomanip>
#include <limits>
#include <numeric>
#include <sstream>

namespace bubblesim::capture::cuda {
namespace {

constexpr double kMostLoops = 1e9;  ///< the kernels count them in 32 bits
constexpr double kLeastLoops = 1.0 / 64;
constexpr double kLineResolutions = 50;
constexpr double kStepResolutions = 8;  ///< least duration of a step between two points of a line
constexpr double kFloorAim = 1.5;       ///< duration of a line, in floors, if no loop is too long
constexpr double kNearFloor = 1.25;     ///< least duration, in floors, at which the time of loops
                                        ///< is measured
constexpr double kFlattest = 1.0 / 16;  ///< least rise of a line, as a share of that time

double possible(double loops) { return std::clamp(loops, 0.0, kMostLoops); }

/// Least squares through three points; a line that does not rise keeps the mean of time by loop.
DurationLine fitted_line(const std::array<double, 3>& x, const std::array<double, 3>& y) {
  const double mean_x = (x[0] + x[1] + x[2]) / 3;
  const double mean_y = (y[0] + y[1] + y[2]) / 3;
  double xx = 0;
  double xy = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  if (xx <= 0 || xy <= 0) return {0, std::max(mean_y, 1.0) / std::max(mean_x, kLeastLoops)};
  const double slope = xy / xx;
  return {mean_y - slope * mean_x, slope};
}

/// Loops that last about as long as a line's middle, and the time of a loop there.
struct Near {
  double loops = 0;
  double loop_ns = 0;
};

class Fitter {
 public:
  Fitter(const Measure& measure, Duration solo, double resolution_ns)
      : measure_(measure), solo_(static_cast<double>(std::max<std::int64_t>(to_ns(solo), 1))),
        resolution_(resolution_ns), tolerance_(std::max(kFitTolerance, resolution_ns / solo_)),
        aim_(std::max(solo_, kLineResolutions * resolution_ns)) {}

  /// Loops at the line's middle, by what is known of the line.
  [[nodiscard]] double about(const DurationLine& line) const {
    return std::max(kLeastLoops, line.loops(aim_));
  }

  /// Whether `line` gives the duration; false: fit.error has the difference.
  [[nodiscard]] Result<bool> holds(const DurationLine& line, Fit& fit) const {
    const double loops = possible(line.loops(solo_));
    BUBBLESIM_ASSIGN_OR_RETURN(const double lasted, measure_(loops));
    fit.line = line;
    fit.error = std::abs(lasted - solo_) / solo_;
    fit.at_floor = loops <= 0 && lasted > solo_;
    fit.held = fit.error <= tolerance_ || fit.at_floor;
    return fit.held;
  }

  /// The line of a stand-in whose floor is longer than its duration: it gives the time of loops,
  /// for longer executions.
  [[nodiscard]] Result<Fit> at_floor(double floor_ns, double guess) {
    aim_ = std::max(aim_, kFloorAim * floor_ns);
    BUBBLESIM_ASSIGN_OR_RETURN(const Near found, near(guess, floor_ns));
    return Fit{{floor_ns, found.loop_ns}, (floor_ns - solo_) / solo_, 1, true, true};
  }

  [[nodiscard]] bool too_long(double floor_ns) const { return floor_ns > solo_; }

  /// A line through three points about `loops`, far enough apart for the clock to distinguish.
  [[nodiscard]] Result<DurationLine> line_about(double loops, double reach, double loop_ns) const {
    const double step = std::max(loops * reach, kStepResolutions * resolution_ / loop_ns);
    std::array<double, 3> x{};
    std::array<double, 3> y{};
    for (std::size_t i = 0; i < 3; ++i) {
      x[i] = possible(std::max(loops - step, 0.0) + step * static_cast<double>(i));
      BUBBLESIM_ASSIGN_OR_RETURN(y[i], measure_(x[i]));
    }
    return fitted_line(x, y);
  }

  /// The guess may be far off: it grows or shrinks until the stand-in lasts about as intended.
  [[nodiscard]] Result<Near> near(double guess, double floor_ns) const {
    const double wanted = std::max(aim_, kNearFloor * floor_ns) - floor_ns;
    Near found{std::max(kLeastLoops, guess), 0};
    for (int i = 0; i < 10; ++i) {
      BUBBLESIM_ASSIGN_OR_RETURN(const double lasted, measure_(possible(found.loops)));
      const double added = std::max({lasted - floor_ns, resolution_, 1.0});
      found.loop_ns = added / found.loops;
      const double factor = std::clamp(wanted / added, 1.0 / 16, 16.0);
      const double next = std::clamp(found.loops * factor, kLeastLoops, kMostLoops);
      if (next == found.loops || (factor > 0.7 && factor < 1.4)) return found;
      found.loops = next;
    }
    return found;
  }

 private:
  const Measure& measure_;
  double solo_;
  double resolution_;
  double tolerance_;
  double aim_;  ///< duration at the line's middle, ns
};

constexpr std::uint32_t kFewestSteps = 16;  ///< with fewer steps, noise makes the common divisor
                                            ///< too large

}  // namespace

double step_of(const std::vector<double>& durations) {
  std::int64_t step = 0;
  std::uint32_t differ = 0;
  for (std::size_t i = 1; i < durations.size(); ++i) {
    const std::int64_t difference = std::llround(durations[i] - durations[i - 1]);
    if (difference != 0) ++differ;
    step = std::gcd(step, difference);
  }
  return differ < kFewestSteps ? 0 : static_cast<double>(step);
}

Result<Fit> fit_loops(const Measure& measure, Duration solo, double guess,
                      const DurationLine* known, const FitLimits& limits) {
  Fitter fitter(measure, solo, limits.resolution_ns);
  Fit fit;
  if (known != nullptr) {
    BUBBLESIM_ASSIGN_OR_RETURN(const bool held, fitter.holds(*known, fit));
    if (held) return fit;
    guess = fitter.about(*known);
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const double floor_ns, measure(0));
  if (fitter.too_long(floor_ns)) return fitter.at_floor(floor_ns, guess);
  BUBBLESIM_ASSIGN_OR_RETURN(const Near found, fitter.near(guess, floor_ns));
  double loops = found.loops;
  double reach = 0.5;
  Fit best;
  for (std::uint32_t round = 1;; ++round) {
    BUBBLESIM_ASSIGN_OR_RETURN(DurationLine line, fitter.line_about(loops, reach, found.loop_ns));
    // Just above the floor loops run while blocks still start, so their measured time is noise.
    if (line.loop_ns < kFlattest * found.loop_ns) line = {floor_ns, found.loop_ns};
    BUBBLESIM_ASSIGN_OR_RETURN(const bool held, fitter.holds(line, fit));
    if (round == 1 || held || fit.error < best.error) best = fit;
    best.rounds = round;
    if (held || round >= limits.rounds) return best;
    loops = fitter.about(line);
    reach = std::max(0.1, reach / 2);
  }
}

namespace {

/// One line a fit, numbers only, in the order of the structures; capture/first_contact reads them.
void write(std::ostream& out, const FitKey& key, const CachedFit& fit) {
  const auto& shape = key.form.shape;
  for (const auto n : shape.grid) out << n << ' ';
  for (const auto n : shape.block) out << n << ' ';
  out << shape.registers_per_thread << ' ' << shape.shared_memory_bytes << ' '
      << static_cast<int>(key.form.bound) << ' ' << key.form.tensor << ' ' << key.form.dram_share
      << ' ' << key.form.issue_share << ' ' << to_ns(key.solo) << ' ' << fit.line.floor_ns << ' '
      << fit.line.loop_ns << ' ' << fit.mix.sparse << ' ' << fit.mix.dense << ' ' << fit.mix.wide
      << ' ' << fit.mix.tensor << ' ' << fit.mix.memory_rate << ' ' << fit.error << ' '
      << fit.at_floor << '\n';
}

bool read_fit(const std::string& line, FitKey& key, CachedFit& fit) {
  std::istringstream words(line);
  auto& shape = key.form.shape;
  int bound = 0;
  std::int64_t solo = 0;
  for (auto& n : shape.grid) words >> n;
  for (auto& n : shape.block) words >> n;
  words >> shape.registers_per_thread >> shape.shared_memory_bytes >> bound >> key.form.tensor >>
      key.form.dram_share >> key.form.issue_share >> solo >> fit.line.floor_ns >>
      fit.line.loop_ns >> fit.mix.sparse >> fit.mix.dense >> fit.mix.wide >> fit.mix.tensor >>
      fit.mix.memory_rate >> fit.error >> fit.at_floor;
  key.form.bound = static_cast<program::KernelClass>(bound);
  key.solo = Duration{solo};
  return !words.fail() && fit.line.loop_ns > 0;
}

}  // namespace

FitCache::FitCache(std::string path, const DeviceFacts& facts)
    : path_(std::move(path)),
      head_(fmt::format("bubblesim stand-in fits 6, {}, driver {}", facts.uuid,
                        facts.driver_version)) {
  if (!path_.empty()) read();
}

void FitCache::read() {
  std::ifstream file(path_);
  std::string line;
  if (!std::getline(file, line) || line != head_) return;
  while (std::getline(file, line)) {
    FitKey key;
    CachedFit fit;
    if (!read_fit(line, key, fit)) {
      fits_.clear();
      return;
    }
    fits_.emplace(key, fit);
  }
}

const CachedFit* FitCache::find(const FitKey& key) const {
  const auto found = fits_.find(key);
  return found == fits_.end() ? nullptr : &found->second;
}

bool FitCache::save() const {
  if (path_.empty()) return true;
  const std::string beside = path_ + "." + std::to_string(::getpid());
  {
    std::ofstream out(beside, std::ios::trunc);
    out << std::setprecision(std::numeric_limits<double>::max_digits10) << head_ << '\n';
    for (const auto& [key, fit] : fits_) write(out, key, fit);
    if (!out.flush()) {
      (void)std::remove(beside.c_str());
      return false;
    }
  }
  return std::rename(beside.c_str(), path_.c_str()) == 0;
}

}  // namespace bubblesim::capture::cuda
