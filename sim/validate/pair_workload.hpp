// One job of a measured co-location pair: the steps of a training iteration or an inference
// request, read from configs/workloads/*.json (configs/workloads/README.md explains each key).
// Independent of the GPU; only host times are given.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/model/kernel_time.hpp"
#include "sim/model/layer_work.hpp"

namespace bubblesim::validate {

/// The host computes; the device may become idle meanwhile.
struct HostStep {
  Duration span{};
  Duration each_sample{};  ///< added for each sample of the measured table's batch
};

/// A copy between host and device.
struct CopyStep {
  double bytes = 0;
  double each_sample = 0;  ///< bytes added for each sample of the measured table's batch
};

/// The host waits for all work that it launched.
struct SyncStep {};

/// How a model's convolutions are launched.
enum class Convolutions : std::uint8_t {
  kBatched,     ///< one kernel for the batch
  kEachSample,  ///< a product for each sample, as in PyTorch without cuDNN; a separate kernel
                ///< unfolds windows
};

/// The part of a model's work that is launched.
enum class ModelPass : std::uint8_t { kTraining, kForward, kDecode };

/// A pass over a model of configs/models.
struct ModelStep {
  std::string model;
  ModelPass pass = ModelPass::kTraining;
  std::uint32_t batch = 1;     ///< 0: from the table's row
  std::uint64_t sequence = 0;  ///< tokens; kDecode: tokens in the cache
  model::Precision precision = model::Precision::kFp16;
  model::Recompute recompute = model::Recompute::kNone;
  Convolutions convolutions = Convolutions::kBatched;
};

/// Kernels launched one after another, `count` times each in a row.
struct KernelLine {
  model::KernelWork work;
  std::uint32_t count = 1;
  /// Measured values that replace `work`: the launch, and the time alone if known.
  struct Given {
    std::optional<Duration> time;
    model::Launch launch;
    bool memory_bound = false;  ///< used if `time` is known
  };
  std::optional<Given> given;
};
struct KernelStep {
  std::vector<KernelLine> kernels;
  bool each_sample = false;  ///< bytes, and the products' m, are for one sample of the table's
                             ///< batch
};

struct RepeatStep;
using WorkloadStep =
    std::variant<HostStep, CopyStep, SyncStep, ModelStep, KernelStep, RepeatStep>;

struct RepeatStep {
  std::uint32_t times = 1;
  std::vector<WorkloadStep> steps;
};

enum class WorkloadRole : std::uint8_t { kInference, kTraining };

struct PairWorkload {
  std::string id;                  ///< file name without ".json"
  std::vector<std::string> names;  ///< names in measured tables
  WorkloadRole role = WorkloadRole::kTraining;
  std::string source;
  Duration launch_gap{};           ///< host time before each launch call
  Duration launch_call{};          ///< of the call itself
  std::uint32_t batch = 0;         ///< default of the table's batch; 0: the table must give one
  double kernel_factor = 1;        ///< factor on the computed times of its kernels
  std::vector<WorkloadStep> steps; ///< of an iteration or a request
};

[[nodiscard]] CheckedResult<PairWorkload> parse_workload(std::string_view text, std::string label);

/// All files of a folder, in the order of their names.
[[nodiscard]] CheckedResult<std::vector<PairWorkload>> read_workloads(const std::string& folder);

/// Whether the GPU's work depends on the measured table's batch size.
[[nodiscard]] bool is_resizable(const std::vector<WorkloadStep>& steps);

/// The distinct batch sizes of its models; 0: the table's.
[[nodiscard]] std::vector<std::uint32_t> model_batches(const std::vector<WorkloadStep>& steps);

/// The arrivals of requests. The run is divided into as many equal intervals as requests are
/// expected, each with one arrival at a random instant (jittered sampling). All arrivals within a
/// span `burst` are moved to one random instant of the span: a day's trace scaled to minutes has
/// bursts.
struct ArrivalSetting {
  double load = 0.5;  ///< requests' solo time as a share of all time, in (0, 1]
  std::uint64_t seed = 1;
  Duration burst{};  ///< 0: each request arrives alone
};

/// Ascending, all before `length`. `solo`: a request's time alone.
[[nodiscard]] std::vector<SimTime> pair_arrivals(const ArrivalSetting& setting, Duration solo,
                                                 Duration length);

}  // namespace bubblesim::validate
