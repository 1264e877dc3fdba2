#include "sim/workload/arrivals/arrival_process.hpp"

#include <cmath>
#include <string_view>
#include <utility>

#include "sim/workload/arrivals/arrival_file.hpp"

namespace bubblesim::workload {
namespace {

/// Beyond this many nanoseconds a double no longer fits SimTime (2^63 is 9.22e18).
constexpr double kLastNs = 9.2e18;
constexpr double kNsPerSecond = 1e9;

/// Adds up random gaps, each rounded to the nearest nanosecond.
template <class Gap>
class RandomProcess final : public ArrivalProcess {
 public:
  RandomProcess(Gap gap, RandomStream random) : gap_(gap), random_(std::move(random)) {}

  std::optional<SimTime> next() override {
    const double gap_ns = std::round(gap_(random_) * kNsPerSecond);
    const Duration left = SimTime::max() - now_;
    if (!(gap_ns < kLastNs) || Duration{static_cast<std::int64_t>(gap_ns)} > left) {
      return std::nullopt;
    }
    now_ += Duration{static_cast<std::int64_t>(gap_ns)};
    return now_;
  }
  const CounterSet& counters() const override { return counters_; }

 private:
  Gap gap_;
  RandomStream random_;
  SimTime now_ = kSimStart;
  CounterSet counters_;
};

template <class Gap>
std::unique_ptr<ArrivalProcess> random_process(Gap gap, RandomStream random) {
  return std::make_unique<RandomProcess<Gap>>(gap, std::move(random));
}

class FileProcess final : public ArrivalProcess {
 public:
  FileProcess(RecordedArrivals arrivals, double speedup)
      : arrivals_(std::move(arrivals)), speedup_(speedup) {}

  std::optional<SimTime> next() override {
    if (next_ == arrivals_.offsets.size()) return std::nullopt;
    const Duration offset = arrivals_.offsets[next_++];
    if (speedup_ == 1) return kSimStart + offset;  // exact, however long
    const double scaled = std::floor(static_cast<double>(offset.count()) / speedup_);
    if (!(scaled < kLastNs)) return std::nullopt;
    return kSimStart + Duration{static_cast<std::int64_t>(scaled)};
  }
  const CounterSet& counters() const override { return arrivals_.counters; }

 private:
  RecordedArrivals arrivals_;
  double speedup_;
  std::size_t next_ = 0;
};

Result<void> check_positive(double value, std::string_view what) {
  if (std::isfinite(value) && value > 0) return {};
  return fail("found " + std::string(what) + " " + std::to_string(value) +
              "; expected a finite number above 0");
}

using MadeProcess = Result<std::unique_ptr<ArrivalProcess>>;

MadeProcess make(const PoissonArrivals& spec, RandomStream random) {
  BUBBLESIM_RETURN_IF_ERROR(check_positive(spec.rate_per_s, "rate_per_s"));
  const double mean = 1 / spec.rate_per_s;
  return random_process([mean](RandomStream& stream) { return stream.exponential(mean); },
                        std::move(random));
}

MadeProcess make(const GammaArrivals& spec, RandomStream random) {
  BUBBLESIM_RETURN_IF_ERROR(check_positive(spec.rate_per_s, "rate_per_s"));
  BUBBLESIM_RETURN_IF_ERROR(check_positive(spec.cv, "cv"));
  const double mean = 1 / spec.rate_per_s;
  return random_process(
      [mean, cv = spec.cv](RandomStream& stream) { return stream.gamma(mean, cv); },
      std::move(random));
}

MadeProcess make(const FileArrivals& spec, RandomStream) {
  BUBBLESIM_RETURN_IF_ERROR(check_positive(spec.speedup, "speedup"));
  BUBBLESIM_ASSIGN_OR_RETURN(RecordedArrivals arrivals, read_arrivals(spec.path, spec.format));
  return replay_arrivals(std::move(arrivals), spec.speedup);
}

}  // namespace

Result<std::unique_ptr<ArrivalProcess>> make_arrivals(const ArrivalSpec& spec,
                                                      RandomStream random) {
  return std::visit([&](const auto& kind) { return make(kind, std::move(random)); }, spec);
}

Result<std::unique_ptr<ArrivalProcess>> replay_arrivals(RecordedArrivals arrivals,
                                                        double speedup) {
  BUBBLESIM_RETURN_IF_ERROR(check_positive(speedup, "speedup"));
  return std::make_unique<FileProcess>(std::move(arrivals), speedup);
}

}  // namespace bubblesim::workload
