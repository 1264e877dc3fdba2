// The training job of a config, from traces or synthesised.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/number_text.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/run/run_inputs.hpp"
#include "sim/synth/find_job.hpp"
#include "sim/synth/synthesise.hpp"
#include "sim/workload/program_builder.hpp"
#include "sim/workload/replay.hpp"
#include "sim/workload/what_if.hpp"
#include "traces/trace_origin.hpp"

namespace bubblesim::run {
namespace {

using network::Direction;
using network::LinkId;

/// The links out of, or into, a GPU, its node, leaf or region; none: the cluster has none of this
/// kind.
std::vector<LinkId> links_of(const LinkFault& fault, const network::Topology& topology,
                             Direction direction) {
  const hardware::ClusterSpec& cluster = topology.spec();
  const std::uint32_t node = topology.node_of(fault.gpu);
  std::vector<LinkId> out;
  switch (fault.kind) {
    case LinkFault::Kind::kPort:
      out.push_back(topology.port(fault.gpu, direction));
      if (cluster.node.kind == hardware::NodeLink::kPairs) {
        out.push_back(topology.pair_port(fault.gpu, direction));
      }
      break;
    case LinkFault::Kind::kNic:
      if (cluster.nics.count > 0) out.push_back(topology.nic(fault.gpu, direction));
      break;
    case LinkFault::Kind::kLeaf:
      if (cluster.nodes <= cluster.tree.nodes_per_leaf) break;
      for (std::uint32_t i = 0; i < topology.uplinks(); ++i) {
        out.push_back(topology.leaf(node, direction, i));
      }
      break;
    case LinkFault::Kind::kRegion:
      if (cluster.regions) out.push_back(topology.region(node, direction));
      break;
  }
  return out;
}

bool is_loaded(const workload::JobProgram& job, LinkId link) {
  return std::ranges::any_of(job.transfers, [&](const network::Transfer& transfer) {
    return std::ranges::any_of(transfer.loads,
                               [&](const network::LinkLoad& load) { return load.link == link; });
  });
}

bool overlap(const network::SlowLink& a, const network::SlowLink& b) {
  return a.link == b.link && a.from < b.until && b.from < a.until;
}

/// Adds a fault's links to `out`; what is wrong with it, in words: empty if nothing is.
std::string add_links(const LinkFault& fault, const network::Topology& topology,
                      const workload::JobProgram& job, std::vector<network::SlowLink>& out) {
  const std::uint32_t gpus = topology.spec().gpus();
  if (fault.gpu >= gpus) {
    return "found GPU " + std::to_string(fault.gpu) + "; the cluster has GPUs 0 to " +
           std::to_string(gpus - 1);
  }
  bool loaded = false;
  for (const Direction direction : {Direction::kOut, Direction::kIn}) {
    const std::vector<LinkId> links = links_of(fault, topology, direction);
    if (links.empty()) {
      return "the cluster has no link of this kind; expected one that its file describes";
    }
    for (const LinkId link : links) {
      const network::SlowLink slow{link, fault.slowdown, kSimStart + fault.from,
                                   fault.until ? kSimStart + *fault.until : SimTime::max()};
      const auto same = [&](const network::SlowLink& other) { return overlap(slow, other); };
      if (std::ranges::any_of(out, same)) {
        return "the same link is slow already at that time; expected a span of its own";
      }
      loaded = loaded || is_loaded(job, link);
      out.push_back(slow);
    }
  }
  return loaded ? "" : "no collective of the job passes over this link; expected one that it uses";
}

}  // namespace

CheckedResult<std::vector<network::SlowLink>> slow_links(const RunConfig& config,
                                                         const network::Topology& topology,
                                                         const workload::JobProgram& job) {
  std::vector<network::SlowLink> out;
  Errors errors;
  for (std::size_t i = 0; i < config.training.slow_links.size(); ++i) {
    const std::string wrong = add_links(config.training.slow_links[i], topology, job, out);
    if (wrong.empty()) continue;
    errors.push_back({config.file, "/training/slow_links/" + std::to_string(i), wrong});
  }
  if (!errors.empty()) return tl::unexpected<Errors>(std::move(errors));
  return out;
}

namespace {

// Ranks that wait for each other for ever look, beside fillers, like a job that nothing slows.
Result<void> check_goes_on(const workload::JobProgram& job, const hardware::GpuSpec& device,
                           const std::string& source) {
  if (job.collectives.empty()) return {};
  const auto replay = workload::replay_alone(job, device);
  if (!replay) return fail(source, {}, replay.error().message);
  return {};
}

constexpr const char* kPlanPlace = "/training/synth/plan";

std::optional<Bytes> memory_of(const traces::RankTrace& rank) {
  std::uint64_t most = 0;
  for (const traces::MemorySample& sample : rank.memory) {
    most = std::max({most, sample.reserved_bytes, sample.allocated_bytes});
  }
  if (most == 0) return std::nullopt;
  return Bytes{most};
}

std::string configs_of(const std::string& device_folder) {
  return std::filesystem::path(device_folder).parent_path().string();
}

CheckedResult<LoadedTraining> load_recorded(const RunConfig& config,
                                            const std::string& device_folder,
                                            const ProgressText& progress, std::size_t threads) {
  BUBBLESIM_ASSIGN_OR_RETURN(
      auto trace, load_trace_on(config.training.traces, config.training.cluster,
                                configs_of(device_folder) + "/clusters", progress, threads));
  auto device = device_for_run(trace.job, config.device, device_folder, trace.counters);
  if (!device) return tl::unexpected<Errors>(trace.located(device.error()));
  auto job = workload::build_job_program(
      trace.job, *device, {workload::Window::kIterations, config.training.iterations, threads});
  if (!job) return tl::make_unexpected(trace.located(job.error()));
  const auto goes_on = check_goes_on(*job, *device, trace.job.ranks.front().provenance.source);
  if (!goes_on) return tl::make_unexpected(trace.located(goes_on.error()));
  job->counters.merge(trace.counters);
  if (const double speed = config.training.host_speed; speed != 1) {
    workload::apply({workload::WhatIfTarget::kHost, {}, {}, speed}, *job);
  }
  LoadedTraining out;
  out.device = *std::move(device);
  out.counters = job->counters;
  // A layout that an importer inferred is no measurement to err from, nor are hosts as they were
  // not recorded.
  const auto& ranks = trace.job.ranks;
  if (config.training.host_speed == 1 &&
      std::none_of(ranks.begin(), ranks.end(), traces::has_inferred_layout)) {
    out.recorded_mean_iteration = recorded_mean(*job);
  }
  out.world_size = static_cast<std::uint32_t>(job->ranks.size());
  for (const traces::RankTrace& rank : ranks) out.rank_memory.push_back(memory_of(rank));
  out.training = *std::move(job);
  return out;
}

// A plan that the config writes out has no file of its own: its faults are the config's.
tl::unexpected<Errors> faults_of_config(const RunConfig& config, Errors faults) {
  const bool inside = std::holds_alternative<synth::PlanSpec>(config.training.synth->plan);
  for (Error& fault : faults) {
    if (inside && fault.file.empty()) {
      fault.file = config.file;
      fault.place.insert(0, kPlanPlace);
    }
  }
  return tl::unexpected<Errors>(std::move(faults));
}

CheckedResult<LoadedTraining> load_synthesised(const RunConfig& config,
                                               const std::string& device_folder,
                                               const ProgressText& progress) {
  if (progress) progress("synthesising the training job");
  synth::JobNames names = *config.training.synth;
  if (config.device) names.device = config.device;
  auto request = synth::find_job(names, configs_of(device_folder));
  if (!request) return faults_of_config(config, request.error());
  const auto plan = synth::plan_job(*std::move(request));
  if (!plan) return faults_of_config(config, plan.error());
  synth::SynthesisedJob job = synth::synthesise(*plan);
  LoadedTraining out;
  out.device = plan->request.gpu;
  out.topology.emplace(network::Topology(plan->request.cluster));
  BUBBLESIM_ASSIGN_OR_RETURN(job.program.slow_links,
                             slow_links(config, **out.topology, job.program));
  out.counters = job.program.counters;
  out.training = std::move(job.program);
  out.world_size = job.world_size;
  out.fold = job.fold;
  out.samples_per_iteration = job.samples;
  const std::uint32_t checkpoint_every = plan->request.plan.host.checkpoint_every;
  if (checkpoint_every > 0) out.checkpoint_every = checkpoint_every;
  for (const synth::MemoryNeed& need : job.memory) {
    out.rank_memory.emplace_back(Bytes{static_cast<std::uint64_t>(std::llround(need.total()))});
  }
  return out;
}

/// "16.9 GB", rounded.
std::string gigabytes(Bytes bytes) {
  const std::uint64_t tenths = (bytes.value + 50'000'000) / 100'000'000;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GB";
}

/// The ids of devices on which so much fits, for a fault.
std::string devices_with(Bytes memory, const std::string& device_folder) {
  std::string text;
  const auto devices = hardware::read_device_folder(device_folder);
  for (const auto& [path, spec, names] : devices.value_or(std::vector<hardware::DeviceFile>{})) {
    if (spec.memory < memory) continue;
    text += (text.empty() ? "" : ", ") + spec.id + " (" + gigabytes(spec.memory) + ")";
  }
  return text.empty() ? "no device of configs/devices has as much"
                      : "devices on which it fits: " + text;
}

// The rank that needs most, if that is more than its GPU has.
Errors check_memory(const LoadedRun& run, const std::string& device_folder) {
  std::size_t worst = 0;
  for (std::size_t i = 1; i < run.rank_memory.size(); ++i) {
    if (run.rank_memory[i] > run.rank_memory[worst]) worst = i;
  }
  const Bytes available = run.device.memory;
  if (run.rank_memory.empty() || available == Bytes{}) return {};
  const Bytes needed = run.rank_memory[worst].value_or(Bytes{});
  if (needed <= available) return {};
  return {{run.config.file, "/training/memory",
           "rank " + std::to_string(run.training->ranks[worst].rank) + " of training needs " +
               gigabytes(needed) + " (" + std::to_string(needed.value) + " bytes); " +
               run.device.name + " has " + gigabytes(available) + " (" +
               std::to_string(available.value) + " bytes); " +
               devices_with(needed, device_folder)}};
}

// The device's power is known, and what is asked for is something that it can do.
Errors check_power(const RunConfig& config, const hardware::GpuSpec& device) {
  if (!config.power) return {};
  const hardware::PowerSpec& power = device.power;
  if (!power.known()) {
    return {{config.file, "/power", device.name + " has no \"power\" in its device file"}};
  }
  Errors errors;
  const auto check = [&](const char* key, std::optional<double> value, double low, double high,
                         const std::string& unit) {
    if (!value || (*value >= low && *value <= high)) return;
    errors.push_back({config.file, std::string("/power/") + key,
                      "found " + shortest_text(*value) + "; expected " + shortest_text(low) +
                          " to " + shortest_text(high) + " " + unit + " of " + device.name});
  };
  check("clock_mhz", config.power->clock_mhz, power.least_clock_mhz, power.full_clock_mhz, "MHz");
  check("cap_w", config.power->cap_w, power.idle_w, power.limit_w, "W, idle to the board's limit,");
  return errors;
}

// The most GPUs of the job on one node.
std::uint32_t most_on_a_node(const LoadedTraining& training) {
  std::map<std::uint32_t, std::uint32_t> count;
  std::uint32_t most = 0;
  for (const program::Program& rank : training.training->ranks) {
    most = std::max(most, ++count[(*training.topology)->node_of(rank.rank)]);
  }
  return most;
}

// A budget over the GPUs of a node: which they are is known, and all of them are simulated.
Errors check_node_power(const RunConfig& config, const LoadedTraining& training) {
  if (!config.power || !config.power->node_cap_w || !training.device.power.known()) return {};
  const std::string place = "/power/node_cap_w";
  if (!training.topology) {
    return {{config.file, place, "found a budget over a node of a recorded job, of whose nodes "
                                 "nothing is known; expected \"synth\""}};
  }
  if (training.fold > 1) {
    return {{config.file, place, "found a budget over a node of a job with folded ranks; expected "
                                 "\"folding\": \"nothing\""}};
  }
  const std::uint32_t gpus = most_on_a_node(training);
  const double low = gpus * training.device.power.idle_w;
  const double high = gpus * training.device.power.limit_w;
  const double found = *config.power->node_cap_w;
  if (found >= low && found <= high) return {};
  return {{config.file, place, "found " + shortest_text(found) + "; expected " +
                                   shortest_text(low) + " to " + shortest_text(high) +
                                   " W, idle to the boards' limit, of the " +
                                   std::to_string(gpus) + " GPUs of a node"}};
}

// Exchanges and transfers between a filler's GPUs go over links that are known, between GPUs that
// are all simulated.
Errors check_links(const RunConfig& config, const LoadedTraining& training) {
  Errors errors;
  for (std::size_t i = 0; i < config.fillers.size(); ++i) {
    const std::optional<std::string> key = key_with_links(config.fillers[i]);
    if (!key || (training.topology && training.fold == 1)) continue;
    const std::string why =
        training.topology ? "a job with folded ranks; expected \"folding\": \"nothing\""
                          : "a recorded job, of whose links nothing is known; expected \"synth\"";
    errors.push_back({config.file, "/fillers/" + std::to_string(i) + "/program/engine/" + *key,
                      "found GPUs that exchange beside " + why});
  }
  return errors;
}

// A restart goes back to a checkpoint that the plan writes.
Errors check_checkpoints(const RunConfig& config, const LoadedTraining& training) {
  const auto& own = config.training.checkpoint_every;
  const auto& written = training.checkpoint_every;
  if (!own || !written || *own == *written) return {};
  return {{config.file, "/training/checkpoint_every",
           "found " + std::to_string(*own) + "; the plan writes a checkpoint every " +
               std::to_string(*written) +
               " iterations (host/checkpoint_every); expected that, or no such key"}};
}

Errors check_numbers(const RunConfig& config, const workload::JobProgram& job) {
  std::vector<std::uint32_t> numbers;
  for (const program::Program& rank : job.ranks) numbers.push_back(rank.rank);
  return check_ranks(config, numbers);
}

}  // namespace

std::optional<Duration> recorded_mean(const workload::JobProgram& job) {
  Duration total{};
  std::int64_t iterations = 0;
  for (const program::Program& rank : job.ranks) {
    for (const Duration time : rank.recorded_iterations) total += time;
    iterations += rank.iterations;
  }
  if (iterations == 0) return std::nullopt;
  return total / iterations;
}

CheckedResult<LoadedTraining> load_training(const RunConfig& config,
                                            const std::string& device_folder,
                                            const ProgressText& progress, std::size_t threads) {
  return config.training.synth ? load_synthesised(config, device_folder, progress)
                               : load_recorded(config, device_folder, progress, threads);
}

CheckedResult<LoadedRun> assemble_run(const RunConfig& config,
                                      std::shared_ptr<const LoadedTraining> training,
                                      const std::string& device_folder) {
  Errors faults = check_numbers(config, *training->training);
  for (const Errors& more :
       {check_power(config, training->device), check_node_power(config, *training),
        check_links(config, *training), check_checkpoints(config, *training)}) {
    faults.insert(faults.end(), more.begin(), more.end());
  }
  if (!faults.empty()) return tl::unexpected<Errors>(std::move(faults));
  LoadedRun run{*training, config, false, {}};
  if (config.power && config.power->clock_mhz) {
    run.device.clock = *config.power->clock_mhz / run.device.power.full_clock_mhz;
  }
  if (const auto& samples = config.training.samples_per_iteration) {
    run.samples_per_iteration = samples;
  }
  for (std::optional<Bytes>& memory : run.rank_memory) {
    if (config.training.memory) memory = config.training.memory;
    if (!memory) run.counters.add(kMemoryUnknown);
  }
  // The run keeps all of the job alive, so that a cache of jobs finds it.
  const workload::JobProgram* program = &*training->training;
  run.training = Shared<workload::JobProgram>(
      std::shared_ptr<const workload::JobProgram>(std::move(training), program));
  faults = check_memory(run, device_folder);
  if (!faults.empty()) return tl::unexpected<Errors>(std::move(faults));
  return run;
}

}  // namespace bubblesim::run
