// The stand-in of each operation of a plan: shape, kernel, and the loops for the plan's duration
// when it runs alone.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "capture/clock/host_clock.hpp"
#include "capture/replay/cuda/device_context.hpp"
#include "capture/replay/cuda/stand_in_fit.hpp"
#include "capture/replay/cuda/record_ring.hpp"
#include "capture/replay/cuda/residency.hpp"
#include "capture/replay/cuda/stand_in_mix.hpp"
#include "capture/replay/job_plan.hpp"
#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture::cuda {

/// How one operation is launched; copies and memsets have no kernel.
struct StandIn {
  KernelHandle kernel = nullptr;
  StandInShape shape;
  Mix mix;
  std::uint64_t first_line = 0;  ///< of the streamed buffer (StandInArguments)
  std::uint64_t advance = 0;
  double base = 0;   ///< loops = base + slope * factor; of a collective, nanoseconds
  double slope = 0;
  double excess_ns = 0;  ///< even its shortest form lasts this much longer than its solo time
  std::uint32_t blocks_per_sm = 0;  ///< by the occupancy calculator
  std::uint32_t uncounted = 0;      ///< StandInArguments
};

class StandIns {
 public:
  struct Needs {
    DeviceContext& context;
    HostClock& clock;
    const DeviceMemory& memory;
    const RecordRing& ring;   ///< one operation more than the plan, for measuring
    FitCache& cache;
    CounterSet& counters;
    std::function<void(const std::string&)> progress;
    Duration warm_up{};       ///< device time that the first stand-in runs before it is measured
    Duration patience{};      ///< for one measured execution
    Duration budget{};        ///< time for measuring; later stand-ins are measured once, less
                              ///< precisely
    bool may_measure = true;  ///< false: the process has a part of the GPU, so all fits come from
                              ///< the cache
  };

  /// On the whole GPU, which should be idle: the primary context is made current. Equal forms of
  /// equal durations are measured once. Fault: the driver's, with the operation's name.
  [[nodiscard]] static Result<std::vector<StandIn>> make(const Needs& needs, const JobPlan& plan);

 private:
  StandIns(const Needs& needs, const JobPlan& plan) : needs_(needs), plan_(plan) {}
  ~StandIns();
  [[nodiscard]] Result<StandIn> make(const program::Op& op);
  [[nodiscard]] Result<StandIn> shaped(const program::Op& op, const KernelForm& form);
  [[nodiscard]] Result<void> fit(const KernelForm& form, Duration solo, StandIn& stand_in);
  [[nodiscard]] Result<Fit> fit_traffic(const KernelForm& form, Duration solo, StandIn& stand_in,
                                        double guess, const DurationLine* known);
  [[nodiscard]] Result<CachedFit> measured(const FitKey& key, StandIn& stand_in);
  [[nodiscard]] Result<double> measure(const StandIn& stand_in, double loops,
                                       std::uint32_t runs);
  [[nodiscard]] Result<double> run(const StandIn& stand_in, double loops);
  [[nodiscard]] Result<void> warm_up(const StandIn& stand_in, double loops);
  [[nodiscard]] Result<void> begin_measuring();
  [[nodiscard]] std::uint32_t runs_for(Duration solo) const;
  [[nodiscard]] bool hurries() const;
  void say_progress();
  void save_now_and_then();
  void judge(const Fit& fit);
  void report(const std::vector<StandIn>& list) const;
  void lay_out(std::vector<StandIn>& list) const;

  const Needs& needs_;
  const JobPlan& plan_;
  StreamHandle stream_ = nullptr;
  std::uint64_t runs_ = 0;            ///< executions of the operation for measuring
  bool warm_ = false;
  double tick_ns_ = 1;                ///< of the device's clock
  HostTime begun_{};
  HostTime said_{};
  HostTime saved_{};
  std::uint64_t cursor_ = 0;          ///< line at which the next measured execution streams
  std::map<KernelForm, CachedFit> last_of_form_;
  std::map<std::tuple<KernelForm, Duration, program::WorkKind>, StandIn> made_;
  std::uint64_t off_target_ = 0;
  double worst_error_ = 0;
};

/// A stand-in's arguments for the operation's next execution. `scale` 0: `factor` is used here.
[[nodiscard]] StandInArguments arguments_of(const StandIn& stand_in, const RecordRing& ring,
                                            std::uint32_t op, const DeviceMemory& memory,
                                            double factor, DevicePointer scale);

}  // namespace bubblesim::capture::cuda
