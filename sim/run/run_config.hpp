// One run as described by a config file: checked values, no inputs loaded. configs/README.md
// documents every key with its unit, default and an example.
//
// Paths are resolved against the folder of the config file. Instants and spans are simulated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/quantities.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/observe/run_result.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/policy/gate_terms.hpp"
#include "sim/program/batching.hpp"
#include "sim/synth/plan_spec.hpp"
#include "sim/synth/server_plan.hpp"
#include "sim/workload/arrivals/arrival_process.hpp"
#include "traces/iterations/job_pass.hpp"

namespace bubblesim {
class JsonDocument;
}  // namespace bubblesim

namespace bubblesim::run {

/// A rank whose host and kernels take longer than recorded.
struct Straggler {
  std::uint32_t rank = 0;
  double slowdown = 1;  ///< factor on durations, > 0
  Duration from{};      ///< since the start: a fault, until it is found and removed
  std::optional<Duration> until = std::nullopt;  ///< > from; nothing: the whole run
};

/// A link of the cluster that is slower than its bandwidth in both directions: a NIC that drops
/// packets.
struct LinkFault {
  enum class Kind : std::uint8_t { kPort, kNic, kLeaf, kRegion };
  Kind kind = Kind::kNic;
  std::uint32_t gpu = 0;  ///< of the cluster: its port, its NIC, its node's leaf or region
  double slowdown = 1;    ///< factor on the time that bytes take, >= 1
  Duration from{};        ///< since the start
  std::optional<Duration> until = std::nullopt;  ///< > from; nothing: the whole run
};

/// A fault that stops the whole job.
struct JobFault {
  Duration at{};         ///< since the start
  Duration detection{};  ///< until it is found
  Duration restart{};    ///< from then on until the job goes on
  [[nodiscard]] Duration end() const { return at + detection + restart; }
};

struct TrainingConfig {
  /// Files or folders; empty if and only if `synth` is present.
  std::vector<std::string> traces;
  traces::IterationChoice iterations;  ///< the iterations of the traces to repeat
  double host_speed = 1;  ///< over the traces' hosts: > 1 is faster
  /// The cluster for traces whose collectives have sizes and no times; nothing: these take no time,
  /// a loss.
  std::optional<std::string> cluster;
  std::optional<synth::JobNames> synth;  ///< a synthesised job
  std::optional<Bytes> memory;      ///< of one rank; nothing: by trace or plan, if known
  /// Samples of the whole job, > 0; nothing: by the plan, if there is one.
  std::optional<double> samples_per_iteration;
  double jitter_cv = 0;             ///< of durations between iterations, >= 0
  std::vector<Straggler> stragglers;  ///< at most one for each rank
  std::vector<LinkFault> slow_links;  ///< of a synthesised job; those of one link do not overlap
  std::vector<JobFault> faults;       ///< in order, each after the end of the one before
  /// In iterations; a fault repeats those since the last checkpoint. Nothing: the plan's, else 1.
  std::optional<std::uint64_t> checkpoint_every;
};

/// A filler's program: one pass of a recorded rank.
struct TraceProgram {
  std::string path;
  double host_speed = 1;  ///< over recorded
};

/// A filler's program: a table of kernels, launched one after another.
struct KernelTableProgram {
  std::string path;
  Duration launch_gap{};  ///< host time between two launches, >= 0
};

/// A filler's program: one pass of a synthesised training job of one rank.
struct TrainProgram {
  synth::JobNames names;
};

/// One of the above, or a model and the shape of its requests, from configs.
using FillerProgram =
    std::variant<TraceProgram, KernelTableProgram, synth::InferenceNames, TrainProgram>;

/// A fill job: a number of requests of a filler, to be done once.
struct FillJobConfig {
  std::uint64_t requests = 1;        ///< >= 1
  Duration submitted{};              ///< since the start
  std::optional<Duration> deadline = std::nullopt;  ///< since its submission
};

struct FillerConfig {
  std::string name;  ///< unique in the run
  observe::FillerMode mode = observe::FillerMode::kOffline;
  FillerProgram program;
  std::optional<std::vector<std::uint32_t>> gpus;  ///< ascending; nothing: every GPU of the job
  /// Number of instances, placed by the policy; nothing: one on each. Never with jobs.
  std::optional<std::uint32_t> instances;
  double sm_request = 0;                ///< requested share of a GPU's SMs; 0: not said
  double sm_limit = 0;                  ///< usable share; 0: not said
  std::vector<FillJobConfig> jobs;      ///< kJobs: not empty
  program::Batching batching;
  std::vector<std::string> unused_batching;  ///< its keys without effect
  std::optional<Duration> deadline;     ///< online: from arrival to completion
  std::optional<Bytes> memory;          ///< on each GPU; nothing: not known
  double jitter_cv = 0;                 ///< of durations between passes, >= 0
  std::optional<workload::ArrivalSpec> arrivals;  ///< present if and only if online
  std::optional<observe::ServiceLimits> limits;   ///< of an engine's requests
};

/// The role of a filler, as policies see it.
[[nodiscard]] policy::Role role_of(const FillerConfig& filler);

/// GPUs of each of the filler's servers: 1, unless it is an engine's with tensor or data
/// parallel ranks.
[[nodiscard]] std::uint32_t gpus_of_server(const FillerConfig& filler);

/// The first key of the filler's engine that needs the links of training's cluster; nothing: none.
[[nodiscard]] std::optional<std::string> key_with_links(const FillerConfig& filler);

/// Power is metered, and limited if limits are given: by a clock, by watts, or by both (the lower
/// clock counts).
struct PowerConfig {
  std::optional<double> clock_mhz;  ///< clock of kernels
  std::optional<double> cap_w;      ///< of each GPU; a governor lowers the clock to keep it
  /// Limit for a node's GPUs of the job together: a governor lowers the clock of all of them.
  std::optional<double> node_cap_w;
  Duration period{};                ///< time between decisions of the governor, over which the peak
                                    ///< is averaged, too; > 0
};

/// A policy with a value for each of its parameters.
struct PolicyChoice {
  std::string name;
  policy::ParameterSet parameters;
  friend bool operator==(const PolicyChoice&, const PolicyChoice&) = default;
};

/// The default warm-up of a run whose length is "auto".
inline constexpr Duration kAutoWarmup = std::chrono::seconds(1);

/// The precision of figures at which a run ends by itself: half-widths of their intervals, as
/// shares of the figures.
struct PrecisionGoal {
  double training = 0.005;   ///< of training's rate
  double fillers = 0.02;     ///< of an offline filler's rate
  double latency = 0.05;     ///< of an online filler's p95
  double confidence = 0.95;  ///< of the intervals
  Duration least = std::chrono::seconds(2);   ///< shortest measured window
  Duration most = std::chrono::seconds(120);  ///< longest measured window
};

struct RunConfig {
  std::string file;  ///< the path that was read
  std::string name;
  std::uint64_t seed = 1;
  std::optional<std::string> device;  ///< name of a device file; nothing: the job's GPU
  std::optional<Duration> duration;   ///< exactly one of the two is present, and > 0
  std::optional<std::uint64_t> iterations;
  /// The run ends when this is reached; `duration` is then its greatest length, without a policy's
  /// settling time (PolicySpec), which lengthens the warm-up.
  std::optional<PrecisionGoal> precision;
  Duration warmup{};                  ///< >= 0, < duration
  std::optional<PowerConfig> power;   ///< nothing: not metered, the full clock
  std::optional<policy::GateCosts> gate;  ///< nothing: by policies' parameters
  TrainingConfig training;
  std::vector<FillerConfig> fillers;
  std::vector<PolicyChoice> policies;  ///< at least one
};

/// Reads and checks a config; all faults at once. Policies are looked up in `registry`.
[[nodiscard]] CheckedResult<RunConfig> read_run_config(const std::string& path,
                                                       const policy::Registry& registry);

/// Reads a config as above from a text; `path` names it in faults, and its folder is where relative
/// paths begin.
[[nodiscard]] CheckedResult<RunConfig> parse_run_config(const std::string& text,
                                                        const std::string& path,
                                                        const policy::Registry& registry);

/// Reads a config as above from a document that is parsed already.
[[nodiscard]] CheckedResult<RunConfig> parse_run_config(const JsonDocument& document,
                                                        const std::string& path,
                                                        const policy::Registry& registry);

/// Checks that need the traces: stragglers and GPUs that the job lacks, servers over too many GPUs.
/// `ranks` are the numbers of the simulated ranks, ascending and at least one: stragglers name
/// these, and GPU n runs the n-th. Empty: no fault.
[[nodiscard]] Errors check_ranks(const RunConfig& config,
                                 const std::vector<std::uint32_t>& ranks);

// A run may have a policy with several parameter sets, but none of them twice: its tables would
// have two equal rows.

/// The first choice before `at` with the same policy and parameters; nothing: none.
[[nodiscard]] std::optional<std::size_t> same_before(const std::vector<PolicyChoice>& choices,
                                                     std::size_t at);

/// A fault for each choice that repeats an earlier one, all at one place: an option, a list of
/// names.
[[nodiscard]] Errors repeated_policies(const std::vector<PolicyChoice>& choices,
                                       const std::string& file, const std::string& place);

}  // namespace bubblesim::run
