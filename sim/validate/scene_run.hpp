// One run of a measured scene: any number of clients on one GPU under one policy, or one alone.
//
// A client works in a closed loop, or starts a pass when a request has arrived and the one before
// has ended; a latency is counted from that start to the end, so that waiting in the queue is not
// in it. Deterministic.
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
  bool loops = true;              ///< false: `arrivals` say when passes start
  std::vector<SimTime> arrivals;  ///< ascending
  Duration start{};               ///< of a loop
  std::uint32_t epoch = 0;        ///< of a loop: after so many passes it pauses; 0: never
  Duration pause{};
  Duration host_gap{};            ///< host time between passes, in no latency; with epochs
  Duration feed{};                ///< the data loader makes a pass's input in it; with epochs
};

/// Inputs that a data loader has ready at most: two workers, each two ahead (PyTorch's defaults).
inline constexpr std::size_t kInputsAhead = 4;

struct SceneSetup {
  const hardware::GpuSpec* gpu = nullptr;
  const policy::PolicySpec* policy = nullptr;  ///< null: no policy
  const policy::ParameterSet* parameters = nullptr;
  std::vector<SceneClient> clients;            ///< the first is the protected one
  Duration length{};
  Duration from{};            ///< passes that end before it are not counted
  double latencies_from = 0;  ///< of each client's passes, the first share gives no latency
};

/// One client's passes that ended within the run, from SceneSetup::from on.
struct ClientFigures {
  std::uint64_t passes = 0;
  double per_s = 0;                 ///< from the first end to the last one
  std::vector<Duration> latencies;  ///< ascending, of the passes kept
  std::vector<SimTime> ends;        ///< of all passes of the run, ascending

  /// Takes a further run in, whose rate counts by `share`; `ends` stay those of the first run.
  void add(ClientFigures run, double share);
  /// Both 0 without a pass.
  [[nodiscard]] double mean_ms() const;
  [[nodiscard]] double percentile_ms(double percent) const;
};

/// Figures in the order of the clients. Fault: an illegal decision, a client that is not admitted.
[[nodiscard]] Result<std::vector<ClientFigures>> run_scene(const SceneSetup& setup);

/// One client's program, and what it does alone under no policy.
struct LoneClient {
  program::Program program;
  double per_s = 0;
  double mean_ms = 0;
};

/// A job of `batch` samples (0: as the workload says), scaled, host and device alike, until a pass
/// alone takes `solo_ms`; 0: as the workload says.
[[nodiscard]] CheckedResult<LoneClient> make_lone(const PairWorkload& workload,
                                                  const PairMachine& machine, std::uint32_t batch,
                                                  double solo_ms);

/// Mean time of a pass alone.
[[nodiscard]] Result<Duration> solo_latency(const hardware::GpuSpec& gpu,
                                            const program::Program& program);

}  // namespace bubblesim::validate
