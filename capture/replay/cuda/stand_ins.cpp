#include "capture/replay/cuda/stand_ins.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "capture/replay/cuda/cuda_counters.hpp"
#include "capture/replay/cuda/device_clock.hpp"

namespace bubblesim::capture::cuda {
namespace {

constexpr std::uint32_t kTrafficRounds = 6;
constexpr double kTrafficTolerance = 0.1;
constexpr double kSaturated = 0.95;  ///< share of DRAM bandwidth: more memory steps would change
                                     ///< nothing
constexpr double kLoopCycles = 100;
constexpr std::uint32_t kTickPings = 8;
constexpr std::uint32_t kFewestRuns = 3;
constexpr std::uint32_t kMostRuns = 64;
constexpr Duration kSayStep = std::chrono::seconds(2);
constexpr Duration kSaveStep = std::chrono::seconds(2);

/// A duration is the difference of two times, each with an error of up to a tick: the mean of
/// `runs` may be off by this much, twice its standard error.
double resolution_of(double tick_ns, std::uint32_t runs) {
  return 2 * tick_ns / std::sqrt(6.0 * runs);
}

std::uint64_t lines_of(const StandIn& stand_in, double loops) {
  const double bytes = traffic_of(stand_in.shape, stand_in.mix, std::max(loops, 0.0));
  return static_cast<std::uint64_t>(bytes / kBytesPerStep * kLinesPerStep);
}

KernelForm form_of(const JobPlan& plan, const program::Op& op, CounterSet& counters) {
  if (op.profile != program::kNoIndex) return plan.forms[op.profile];
  counters.add(kWithoutForm);
  KernelForm form;
  const bool collective = op.kind == program::WorkKind::kCollective;
  form.shape.grid = {collective ? 16U : 1U, 1, 1};
  form.shape.block = {collective ? 512U : 32U, 1, 1};
  return form;
}

/// mma.sync is for whole warps.
bool has_whole_warps(const KernelForm& form) { return form.shape.threads_per_block() % 32 == 0; }

const char* class_of(const program::Op& op, const KernelForm& form) {
  if (op.kind == program::WorkKind::kCollective) return "collective";
  return form.tensor ? "tensor" : "mix";
}

double first_guess(const DeviceFacts& facts, const StandIn& stand_in, Duration solo) {
  const auto& shape = stand_in.shape;
  const double held = std::max(1.0, double(shape.blocks) * facts.sm_count);
  const double cycles = to_seconds(solo) * facts.clock_khz * 1e3;
  return cycles / kLoopCycles / std::ceil(double(shape.grid_blocks()) / held);
}

}  // namespace

StandInArguments arguments_of(const StandIn& stand_in, const RecordRing& ring, std::uint32_t op,
                              const DeviceMemory& memory, double factor, DevicePointer scale) {
  StandInArguments arguments{};
  arguments.state = ring.state(op);
  arguments.slots = ring.slots(op);
  arguments.slot_count = kSlots;
  arguments.scale = scale;
  arguments.buffer = memory.stream_buffer();
  arguments.buffer_lines = memory.stream_bytes() / 16;
  arguments.first_line = stand_in.first_line;
  arguments.advance = stand_in.advance;
  arguments.base = static_cast<float>(
      scale == 0 ? stand_in.base + stand_in.slope * factor : stand_in.base);
  arguments.slope = scale == 0 ? 0.0F : static_cast<float>(stand_in.slope);
  arguments.memory_rate = stand_in.mix.memory_rate;
  arguments.sparse = stand_in.mix.sparse;
  arguments.dense = stand_in.mix.dense;
  arguments.wide = stand_in.mix.wide;
  arguments.tensor = stand_in.mix.tensor;
  arguments.units = stand_in.mix.units();
  arguments.unit_rate = stand_in.mix.memory_rate / std::max(1U, arguments.units);
  arguments.uncounted = stand_in.uncounted;
  return arguments;
}

namespace {

/// Makes the stand-ins of one plan.
class StandIns {
 public:
  /// See make_stand_ins().
  [[nodiscard]] static Result<std::vector<StandIn>> make(const StandInNeeds& needs,
                                                         const JobPlan& plan) {
    StandIns all(needs, plan);
    const Driver& driver = needs.context.driver();
    if (needs.context.facts().dram_bytes_per_second == 0) needs.counters.add(kBandwidthUnknown);
    BUBBLESIM_CUDA(driver, set_current, needs.context.primary());
    BUBBLESIM_ASSIGN_OR_RETURN(all.stream_, make_stream(driver));
    all.begun_ = all.said_ = all.saved_ = needs.clock.now();
    std::vector<StandIn> list;
    for (const program::Op& op : plan.program.ops) {
      auto made = all.make(op);
      if (!made) {
        const std::string name =
            op.name.index() < plan.program.names.size() ? plan.program.names[op.name] : "operation";
        return fail(plan.name, name, made.error().text());
      }
      list.push_back(*made);
    }
    all.lay_out(list);
    all.report(list);
    if (!needs.cache.save()) needs.counters.add(kCacheNotSaved);
    return list;
  }

 private:
  StandIns(const StandInNeeds& needs, const JobPlan& plan) : needs_(needs), plan_(plan) {}
  [[nodiscard]] Result<StandIn> make(const program::Op& op) {
    if (!is_kernel(op.kind)) return StandIn{};
    KernelForm form = form_of(plan_, op, needs_.counters);
    form.tensor = form.tensor && has_whole_warps(form);
    const auto key = std::tuple(form, op.duration, op.kind);
    if (const auto found = made_.find(key); found != made_.end()) return found->second;
    BUBBLESIM_ASSIGN_OR_RETURN(StandIn stand_in, shaped(op, form));
    if (op.kind == program::WorkKind::kCollective) {
      stand_in.slope = static_cast<double>(to_ns(op.duration));
      stand_in.base = -static_cast<double>(to_ns(kBesideBlocks));
    } else {
      BUBBLESIM_RETURN_IF_ERROR(fit(form, op.duration, stand_in));
    }
    made_.emplace(key, stand_in);
    say_progress();
    return stand_in;
  }
  [[nodiscard]] Result<StandIn> shaped(const program::Op& op, const KernelForm& form) {
    const DeviceFacts& facts = needs_.context.facts();
    const Driver& driver = needs_.context.driver();
    StandIn stand_in;
    stand_in.shape = shape_stand_in(facts, form.shape);
    const StandInShape& shape = stand_in.shape;
    BUBBLESIM_ASSIGN_OR_RETURN(stand_in.kernel, needs_.context.kernel(fmt::format(
                                                    "{}_{}", class_of(op, form), shape.registers)));
    if (shape.shared_bytes > 0)
      BUBBLESIM_CUDA(driver, set_kernel_attribute, kMaxDynamicSharedBytes,
                     static_cast<int>(facts.shared_bytes_per_block), stand_in.kernel,
                     needs_.context.device());
    int blocks = 0;
    const std::uint64_t threads = shape.threads();
    BUBBLESIM_CUDA(driver, occupancy, &blocks, stand_in.kernel, static_cast<int>(threads),
                   shape.shared_bytes);
    stand_in.blocks_per_sm = static_cast<std::uint32_t>(std::max(blocks, 0));
    if (blocks < 1)
      return fail(
          fmt::format("no SM of {} holds a block of {} threads and {} bytes of shared memory",
                      facts.name, threads, shape.shared_bytes));
    const std::uint64_t grid = shape.grid_blocks();
    const std::uint64_t held = std::uint64_t{stand_in.blocks_per_sm} * facts.sm_count;
    stand_in.uncounted = static_cast<std::uint32_t>(grid - std::min(grid, held));
    if (shape.clamped) needs_.counters.add(kClamped);
    if (stand_in.blocks_per_sm != shape.traced_blocks) needs_.counters.add(kResidencyDiffers);
    stand_in.mix = mix_of(facts, form, shape);
    return stand_in;
  }
  [[nodiscard]] Result<void> fit(const KernelForm& form, Duration solo, StandIn& stand_in) {
    const FitKey key{form, solo};
    const CachedFit* const cached = needs_.cache.find(key);
    CachedFit found;
    if (cached != nullptr) {
      found = *cached;
    } else {
      BUBBLESIM_ASSIGN_OR_RETURN(found, measured(key, stand_in));
    }
    stand_in.mix = found.mix;
    stand_in.base = -found.line.floor_ns / found.line.loop_ns;
    stand_in.slope = static_cast<double>(to_ns(solo)) / found.line.loop_ns;
    if (stand_in.base + stand_in.slope <= 0)
      stand_in.excess_ns = std::max(0.0, found.line.floor_ns - static_cast<double>(to_ns(solo)));
    return {};
  }
  /// Memory steps depend on loops, and loops on the time of memory steps: both are set in turn.
  [[nodiscard]] Result<Fit> fit_traffic(const KernelForm& form, Duration solo, StandIn& stand_in,
                                        double guess, const DurationLine* known) {
    const double wanted = wanted_traffic(needs_.context.facts(), form, solo);
    const std::uint32_t runs = runs_for(solo);
    const bool hurries = this->hurries();
    if (hurries) needs_.counters.add(kHurried);
    const FitLimits limits{resolution_of(tick_ns_, runs), hurries ? 1 : kFitRounds};
    const Measure measure_it = [&](double loops) { return measure(stand_in, loops, runs); };
    for (std::uint32_t round = 1;; ++round) {
      BUBBLESIM_ASSIGN_OR_RETURN(const Fit fit, fit_loops(measure_it, solo, guess, known, limits));
      const double loops = fit.line.loops(static_cast<double>(to_ns(solo)));
      const double traffic = traffic_of(stand_in.shape, stand_in.mix, loops);
      if (fit.at_floor || traffic <= 0 || shares_of(form).dram >= kSaturated) return fit;
      const double ratio = wanted / traffic;
      if (std::abs(ratio - 1) <= kTrafficTolerance) return fit;
      if (round == kTrafficRounds || hurries) {
        needs_.counters.add(kTrafficOff);
        return fit;
      }
      const double rate = stand_in.mix.memory_rate * std::clamp(ratio, 0.25, 4.0);
      stand_in.mix.memory_rate =
          static_cast<std::uint32_t>(std::clamp(rate, 1.0, double(kMostMemoryRate)));
      guess = loops;
      known = nullptr;
    }
  }
  [[nodiscard]] Result<CachedFit> measured(const FitKey& key, StandIn& stand_in) {
    if (!needs_.options.whole_gpu)
      return fail(
          "this process has a part of the GPU only, on which nobody can measure how long a "
          "kernel lasts on all of it, and the file of fits does not have this kernel: run "
          "its job alone first, with the same file");
    const auto last = last_of_form_.find(key.form);
    const bool known = last != last_of_form_.end();
    if (known) stand_in.mix = last->second.mix;
    const double guess = first_guess(needs_.context.facts(), stand_in, key.solo);
    BUBBLESIM_RETURN_IF_ERROR(begin_measuring());
    BUBBLESIM_RETURN_IF_ERROR(warm_up(stand_in, guess + 1));
    BUBBLESIM_ASSIGN_OR_RETURN(const Fit fit, fit_traffic(key.form, key.solo, stand_in, guess,
                                                          known ? &last->second.line : nullptr));
    judge(fit);
    const CachedFit found{fit.line, stand_in.mix, fit.error, fit.at_floor};
    needs_.cache.put(key, found);
    save_now_and_then();
    last_of_form_.insert_or_assign(key.form, found);
    return found;
  }
  /// The middle of three: the first may meet a cold cache, any may meet another process. Of more,
  /// the mean: single durations have only the clock's resolution.
  [[nodiscard]] Result<double> measure(const StandIn& stand_in, double loops, std::uint32_t runs) {
    std::vector<double> lasted(runs);
    for (double& duration : lasted) {
      BUBBLESIM_ASSIGN_OR_RETURN(duration, run(stand_in, loops));
    }
    say_progress();
    std::sort(lasted.begin(), lasted.end());
    if (runs <= kFewestRuns) return lasted[runs / 2];
    double sum = 0;
    for (const double duration : lasted) sum += duration;
    return sum / runs;
  }
  [[nodiscard]] Result<double> run(const StandIn& stand_in, double loops) {
    const auto op = static_cast<std::uint32_t>(plan_.program.ops.size());
    const Driver& driver = needs_.context.driver();
    const StandInShape& shape = stand_in.shape;
    StandInArguments arguments = arguments_of(stand_in, needs_.ring, op, needs_.memory, 1, 0);
    arguments.base = static_cast<float>(loops);
    arguments.first_line = cursor_;
    // Once around the buffer: the next execution reads the same lines.
    arguments.advance = arguments.buffer_lines;
    cursor_ += lines_of(stand_in, loops);
    void* list[] = {&arguments};
    const std::uint64_t n = ++runs_;
    BUBBLESIM_CUDA(driver, launch_kernel, stand_in.kernel, shape.grid[0], shape.grid[1],
                   shape.grid[2], shape.block[0], shape.block[1], shape.block[2],
                   shape.shared_bytes, stream_.get(), list, nullptr);
    const HostTime begun = needs_.clock.now();
    while (!needs_.ring.ended(op, n)) {
      const Status status = driver.stream_query(stream_.get());
      if (status != Status::kNotReady)
        BUBBLESIM_RETURN_IF_ERROR(checked(driver, status, "stream_query"));
      const HostTime now = needs_.clock.now();
      if (now > begun + needs_.options.hang_limit)
        return fail(fmt::format("a stand-in of {:.1f} loops had not ended after {} ms", loops,
                                to_ns(needs_.options.hang_limit) / 1'000'000));
      if (now > begun + std::chrono::milliseconds(1))
        needs_.clock.sleep_until(now + std::chrono::microseconds(50));
    }
    return static_cast<double>(needs_.ring.end_ns(op, n) - needs_.ring.start_ns(op, n)) +
           static_cast<double>(to_ns(kBesideBlocks));
  }
  /// Clocks rise within some 100 ms of work; earlier durations would be too long. Durations of the
  /// same work show the resolution of the device's clock.
  [[nodiscard]] Result<void> warm_up(const StandIn& stand_in, double loops) {
    if (warm_) return {};
    double worked = 0;
    std::vector<double> durations;
    const auto wanted = static_cast<double>(to_ns(needs_.options.warm_up));
    for (int i = 0; i < 100'000 && worked < wanted; ++i) {
      BUBBLESIM_ASSIGN_OR_RETURN(const double lasted, run(stand_in, loops));
      worked += std::max(lasted, 1000.0);
      durations.push_back(lasted);
    }
    warm_ = true;
    const double step = step_of(durations);
    if (step == 0) return {};
    tick_ns_ = std::max(tick_ns_, step);
    needs_.counters.add("stand_ins_clock_step_ns",
                        {Severity::kInfo,
                         "Durations of stand-ins differ by multiples of this: as coarse is the "
                         "device's clock at starts and ends of kernels.",
                         static_cast<std::uint64_t>(step)});
    return {};
  }
  /// The resolution of the device's clock decides how often a duration must be measured.
  [[nodiscard]] Result<void> begin_measuring() {
    if (warm_) return {};
    BUBBLESIM_ASSIGN_OR_RETURN(
        const ClockOffset offset,
        measure_offset(needs_.context, needs_.clock, stream_.get(), needs_.options.hang_limit,
                       kTickPings));
    tick_ns_ = static_cast<double>(std::max<std::int64_t>(offset.tick_ns, 1));
    return {};
  }
  /// Enough runs for a mean within 0.5 %, as far as the clock is the limit.
  [[nodiscard]] std::uint32_t runs_for(Duration solo) const {
    if (hurries()) return 1;
    const double ticks = tick_ns_ / static_cast<double>(std::max<std::int64_t>(to_ns(solo), 1));
    return static_cast<std::uint32_t>(
        std::clamp(std::ceil(ticks * ticks * 4e4 / 6), double(kFewestRuns), double(kMostRuns)));
  }
  [[nodiscard]] bool hurries() const {
    const Duration budget = needs_.options.fit_budget;
    return budget > Duration{} && needs_.clock.now() > begun_ + budget;
  }
  /// Now and then, to show that the process works.
  void say_progress() {
    const HostTime now = needs_.clock.now();
    if (!needs_.progress || now < said_ + kSayStep) return;
    said_ = now;
    needs_.progress(fmt::format("{} kinds of kernels are ready", made_.size()));
  }
  /// A process may be ended while it measures: the next one continues from here.
  void save_now_and_then() {
    const HostTime now = needs_.clock.now();
    if (now < saved_ + kSaveStep) return;
    saved_ = now;
    (void)needs_.cache.save();  // the save at the end reports a failure
  }
  void judge(const Fit& fit) {
    if (fit.at_floor) {
      needs_.counters.add(kAtFloor);
    } else if (!fit.held) {
      ++off_target_;
      worst_error_ = std::max(worst_error_, fit.error);
    }
  }
  void report(const std::vector<StandIn>& list) const {
    double excess = 0;
    for (const StandIn& stand_in : list) excess += stand_in.excess_ns;
    if (excess >= 1) needs_.counters.add(kFloorExcess, static_cast<std::uint64_t>(excess));
    if (off_target_ == 0) return;
    needs_.counters.add(
        "stand_ins_off_target",
        {Severity::kNotice,
         fmt::format("Stand-ins more than 2 % from the duration that they stand for "
                     "after {} rounds; the worst by {:.1f} %.",
                     kFitRounds, 100 * worst_error_),
         off_target_});
  }
  /// The stand-ins of a pass read the buffer in a row, and the next pass continues.
  void lay_out(std::vector<StandIn>& list) const {
    std::uint64_t at = 0;
    for (StandIn& stand_in : list) {
      if (stand_in.kernel == nullptr) continue;
      stand_in.first_line = at;
      at += lines_of(stand_in, stand_in.base + stand_in.slope);
    }
    for (StandIn& stand_in : list) stand_in.advance = at;
  }

  const StandInNeeds& needs_;
  const JobPlan& plan_;
  OwnStream stream_;
  std::uint64_t runs_ = 0;  ///< executions of the operation for measuring
  bool warm_ = false;
  double tick_ns_ = 1;  ///< of the device's clock
  HostTime begun_{};
  HostTime said_{};
  HostTime saved_{};
  std::uint64_t cursor_ = 0;  ///< line at which the next measured execution streams
  std::map<KernelForm, CachedFit> last_of_form_;
  std::map<std::tuple<KernelForm, Duration, program::WorkKind>, StandIn> made_;
  std::uint64_t off_target_ = 0;
  double worst_error_ = 0;
};

}  // namespace

Result<std::vector<StandIn>> make_stand_ins(const StandInNeeds& needs, const JobPlan& plan) {
  return StandIns::make(needs, plan);
}

}  // namespace bubblesim::capture::cuda
