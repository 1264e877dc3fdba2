// One co-location run: an inference service (the protected client) beside a training job on one
// GPU, under one policy; or either of them alone.
//
// The service is a loop of one thread, as the benchmarks of such pairs have it: a request starts
// when it has arrived and the one before has ended. Its latency is counted from that start to its
// end, so that waiting in the queue is not in it. Deterministic.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/random.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/program/program.hpp"

namespace bubblesim::validate {

/// When requests come: one at random within each of equally many expected arrivals (jittered
/// sampling: random between neighbours, even over the run), at a rate that moves linearly from
/// (1 - ramp) to (1 + ramp) times the mean over the run. Those within a span `burst` come together,
/// at an instant of it that is random: a day's trace that is scaled to minutes has bursts.
struct ArrivalSetting {
  double load = 0.5;  ///< requests' solo time over all time, in (0, 1]
  double ramp = 0;    ///< [0, 1)
  std::uint64_t seed = 1;
  Duration burst{};  ///< 0: each comes alone
};

/// Ascending, all before `length`. `solo`: a request's time alone.
[[nodiscard]] std::vector<SimTime> pair_arrivals(const ArrivalSetting& setting, Duration solo,
                                                 Duration length);

struct PairSetup {
  const hardware::GpuSpec* gpu = nullptr;
  const policy::PolicySpec* policy = nullptr;  ///< null: nobody decides, one client alone
  const policy::ParameterSet* parameters = nullptr;
  const program::Program* inference = nullptr;  ///< null: not there
  const program::Program* training = nullptr;   ///< null: not there
  std::vector<SimTime> arrivals;
  Duration length{};                ///< of the run
  double latencies_from = 0.5;      ///< of the served requests, the first share left out
};

struct PairFigures {
  std::uint64_t served = 0;         ///< requests that ended within the run
  double iterations_per_s = 0;      ///< of training; 0 if fewer than one ended
  std::uint64_t iterations = 0;     ///< ended
  double average_ms = 0, p90_ms = 0, p95_ms = 0, p99_ms = 0;
  std::vector<Duration> latencies;  ///< of all served requests, in order
};

/// Fault: an illegal decision of the policy, a job that is not admitted.
[[nodiscard]] Result<PairFigures> run_pair(const PairSetup& setup);

/// A request's mean time alone, over `requests` back to back.
[[nodiscard]] Result<Duration> solo_latency(const hardware::GpuSpec& gpu,
                                            const program::Program& inference);

}  // namespace bubblesim::validate
