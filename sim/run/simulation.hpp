// One simulation: a job, fillers, or both, under a policy or none.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/observe/run_result.hpp"
#include "sim/run/fill_queue.hpp"
#include "sim/run/filler_instance.hpp"
#include "sim/run/filler_places.hpp"
#include "sim/run/gpu_node.hpp"
#include "sim/run/gpu_power.hpp"
#include "sim/run/loaded_run.hpp"
#include "sim/run/precision_watch.hpp"
#include "sim/run/simulation_results.hpp"
#include "sim/schedule/method_timer.hpp"
#include "sim/workload/arrivals/arrival_file.hpp"
#include "sim/workload/machine.hpp"

namespace bubblesim::run {

inline constexpr CounterSpec kIterationsNotReached{
    "run_iterations_not_reached", Severity::kError,
    "the run was cut before training had done its iterations: the policy starves training"};
/// To be set up, run once, and read. `loaded` outlives it.
class Simulation final {
 public:
  Simulation(const LoadedRun& loaded, RunScenario scenario);

  /// Fault: an illegal decision of the policy, arrivals that cannot be read, or a job whose
  /// dependencies are never met.
  [[nodiscard]] Result<observe::PolicyResult> run();

  /// Tells how much the run's GPUs ran in parallel.
  [[nodiscard]] const engine::Conductor& conductor() const { return machine_.conductor(); }

 private:
  Result<void> build();
  Result<void> read_requests();
  Result<void> build_node(GpuId gpu);
  void share_power(GpuNode& node);
  void group_servers();
  [[nodiscard]] std::unique_ptr<synth::ServerExchanges> exchanges_among(
      std::span<FillerInstance* const> instances);
  void add_programs(GpuNode& node);
  [[nodiscard]] std::vector<policy::ClientInfo> client_infos(GpuId gpu) const;
  [[nodiscard]] workload::RunSetup training_setup(const program::Program& rank);
  Result<void> build_queue();
  Result<void> build_arrivals();
  [[nodiscard]] Result<std::unique_ptr<workload::ArrivalProcess>> arrivals_of(
      std::uint32_t filler);
  Result<void> split_prefill(const synth::ServerPlan& plan, const std::string& name,
                             std::vector<FillerInstance*>& instances);
  void start();
  [[nodiscard]] SimTime end_of_warmup() const;
  /// The gate's delay of the client's launches, in ns.
  [[nodiscard]] std::uint64_t gate_ns(ClientId client) const;
  void end_warmup(SimTime now);
  Result<void> advance();
  Result<SimTime> run_until_known();
  Result<void> run_until(SimTime last);
  Result<void> run_stretch(SimTime last);
  void note_passed(Duration until);
  [[nodiscard]] std::optional<Error> policy_fault() const;
  [[nodiscard]] bool records_usage() const { return scenario_.usage.interval > Duration::zero(); }
  void close_usage(SimTime now);
  void collect_usage(observe::PolicyResult& result);
  void note_power(observe::PolicyResult& result) const;

  const LoadedRun& loaded_;
  RunScenario scenario_;
  workload::Machine machine_;
  SimTime warmup_;
  SimTime end_{};
  SimTime next_read_ = kSimStart;  ///< of GPUs' meters, after the warm-up
  Duration passed_{};  ///< added to RunScenario::passed_ns so far
  IterationGoal goal_;
  FillerPlaces places_;
  ServerRequests requests_;
  /// Arrivals read together with their requests' lengths, by RunConfig::fillers.
  std::vector<std::optional<workload::RecordedArrivals>> arrivals_read_;
  std::vector<std::unique_ptr<ServerGpus>> servers_;  ///< over several GPUs
  Nodes nodes_;
  std::map<std::uint32_t, NodePower> node_power_;  ///< by node of the cluster; empty: no budget
  std::vector<std::unique_ptr<ArrivalRouter>> routers_;
  std::vector<std::unique_ptr<DecodePool>> decode_pools_;  ///< of fillers with prefill and decode
                                                           ///< on different GPUs
  std::vector<std::uint32_t> places_on_cluster_;  ///< by GPU
  std::optional<SharedLinks> shared_links_;       ///< nothing: not known
  std::vector<std::unique_ptr<KvLink>> kv_links_;
  std::unique_ptr<FillQueue> queue_;  ///< null: no fill jobs
  std::optional<PrecisionWatch> watch_;  ///< nothing: the run's length is given
  std::optional<SimTime> next_usage_;    ///< the end of the present interval of usage
  std::uint64_t usage_intervals_ = 0;    ///< ended ones
  schedule::MethodTimer<Simulation> end_of_warmup_;
  CounterSet counters_;
};

}  // namespace bubblesim::run
