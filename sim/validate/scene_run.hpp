// One run of a measured scene: any number of clients on one GPU under one policy, or one client
// alone.
//
// A client loops, or starts a pass when a request has arrived and the previous pass has ended.
// Latency is the time from a pass's start to its end, without the wait in the queue. Deterministic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/policy/policy.hpp"
#include "sim/program/program.hpp"
#include "sim/validate/pair_program.hpp"
#include "sim/validate/pair_workload.hpp"

namespace bubblesim::validate {

struct SceneClient {
  std::string name;
  policy::Role role = policy::Role::kTraining;
  const program::Program* program = nullptr;
  bool loops = true;              ///< false: passes start at `arrivals`
  std::vector<SimTime> arrivals;  ///< ascending
  Duration start{};               ///< of a loop
  std::uint32_t epoch = 0;        ///< of a loop: it pauses after this many passes; 0: never
  Duration pause{};
  Duration host_gap{};            ///< host time between passes, outside of latencies; with epochs
  Duration feed{};                ///< the data loader's time for a pass's input; with epochs
};

/// The most inputs that a data loader keeps ready: two workers, each two ahead (PyTorch's
/// defaults).
inline constexpr std::size_t kInputsAhead = 4;

struct SceneSetup {
  const hardware::GpuSpec* gpu = nullptr;
  const policy::PolicySpec* policy = nullptr;  ///< null: no policy
  const policy::ParameterSet* parameters = nullptr;
  std::vector<SceneClient> clients;            ///< the first is the protected one
  Duration length{};
  Duration from{};            ///< earlier passes are not counted
  double latencies_from = 0;  ///< share of each client's passes, from the first, without latency
};

/// One client's passes that ended within the run, from SceneSetup::from on.
struct ClientFigures {
  std::uint64_t passes = 0;
  double per_s = 0;                 ///< from the first end to the last one
  std::vector<Duration> latencies;  ///< ascending, of the passes kept
  std::vector<SimTime> ends;        ///< of all passes of the run, ascending

  /// Adds the figures of a further run, whose rate has the weight `share`; `ends` stay those of the
  /// first run.
  void add(ClientFigures run, double share);
  /// Mean and percentile of `latencies`; 0 without any.
  [[nodiscard]] double mean_ms() const;
  [[nodiscard]] double percentile_ms(double percent) const;
};

/// Figures in the order of the clients. Fault: an illegal decision, a client that is not admitted.
[[nodiscard]] Result<std::vector<ClientFigures>> run_scene(const SceneSetup& setup);

/// One client's program, with its rate and mean latency alone, without a policy.
struct LoneClient {
  program::Program program;
  double per_s = 0;
  double mean_ms = 0;
};

/// A job of `batch` samples (0: the workload's), with host and device times scaled so that a pass
/// alone takes `solo_ms`; 0: not scaled.
[[nodiscard]] CheckedResult<LoneClient> make_lone(const PairWorkload& workload,
                                                  const PairMachine& machine, std::uint32_t batch,
                                                  double solo_ms);

/// Mean time of a pass alone.
[[nodiscard]] Result<Duration> solo_latency(const hardware::GpuSpec& gpu,
                                            const program::Program& program);

}  // namespace bubblesim::validate
