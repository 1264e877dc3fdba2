#include "sim/run/lone_rank.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/run/run_inputs.hpp"
#include "sim/schedule/bubble_table.hpp"
#include "sim/workload/lone_job.hpp"
#include "sim/workload/machine.hpp"

namespace bubblesim::run {
namespace {

using program::kNoIndex;

// The first pass begins with empty streams, which later ones do not.
constexpr std::uint32_t kMeasuredPass = 2;

/// Notes how long each collective of a rank lasts in its second pass, by operation.
class CollectiveWatch final : public workload::RunObserver {
 public:
  explicit CollectiveWatch(const program::Program& program)
      : passes_(program.ops.size()), durations_(program.ops.size()) {
    for (const program::Op& op : program.ops) {
      if (op.kind == program::WorkKind::kCollective) ++unfinished_;
    }
  }

  void on_op_finished(const workload::OpRecord& record) override {
    const program::Op& op = record.run->program().ops[record.op];
    if (op.kind != program::WorkKind::kCollective || ++passes_[record.op] != kMeasuredPass) return;
    durations_[record.op] = record.end - record.start;
    if (--unfinished_ == 0) record.run->engine().stop();
  }

  [[nodiscard]] bool done() const { return unfinished_ == 0; }
  [[nodiscard]] const std::vector<Duration>& durations() const { return durations_; }

 private:
  std::vector<std::uint32_t> passes_;
  std::vector<Duration> durations_;
  std::size_t unfinished_ = 0;
};

workload::LoneSetup setup_of(const LoadedRun& run) {
  workload::LoneSetup setup;
  setup.repeat = workload::Repeat::kLoop;
  for (const program::Program& rank : run.training->ranks) {
    setup.perturbations.push_back(perturbation_of(run.config.training, rank.rank));
  }
  return setup;
}

/// From this rank's arrival to its end, by operation; 0 for what is no collective.
Result<std::vector<Duration>> measure_collectives(const LoadedRun& run, std::size_t position) {
  CollectiveWatch watch(run.training->ranks[position]);
  if (watch.done()) return watch.durations();
  std::vector<workload::RunObserver*> observers(run.training->ranks.size());
  observers[position] = &watch;
  workload::LoneJob lone(*run.training, run.device, setup_of(run), observers);
  lone.run();
  if (!watch.done()) {
    return fail(run.config.file, {},
                "the training job stops when it runs alone: a dependency is never met");
  }
  return watch.durations();
}

/// The rank with collectives that last so long. What waits for pipeline peers is kept as a meeting
/// of one, so that bubbles are still told apart; it ends when it would without.
workload::JobProgram alone(const workload::JobProgram& job, std::size_t position,
                           const std::vector<Duration>& durations) {
  const std::vector<bool> peers = schedule::pipeline_collectives(job);
  workload::JobProgram out;
  program::Program program = job.ranks[position];
  program.start_offset = {};
  program.collectives = program::SwitchedOut::kGoesOn;
  for (program::StepDetail& detail : program.details) detail.leave_ranks();
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    program::Op& op = program.ops[i];
    if (op.kind != program::WorkKind::kCollective) continue;
    op.duration = durations[i];
    if (op.collective == kNoIndex) continue;
    const bool peer = peers[op.collective];
    workload::JoinedCollective meeting = job.collectives[op.collective];
    op.collective = kNoIndex;
    if (!peer) continue;
    meeting.participants = 1;
    meeting.point_to_point = true;
    meeting.buffered = false;
    meeting.transfer = kNoIndex;
    op.collective = static_cast<std::uint32_t>(out.collectives.size());
    out.collectives.push_back(meeting);
  }
  out.groups = job.groups;
  out.iterations_recorded = job.iterations_recorded;
  out.iterations_used = job.iterations_used;
  out.iterations_text = job.iterations_text;
  out.counters = job.counters;
  out.ranks.push_back(std::move(program));
  return out;
}

workload::ArrivalSpec dealt_to_one(const workload::ArrivalSpec& arrivals, std::size_t gpus) {
  if (gpus <= 1) return arrivals;
  const auto share = static_cast<double>(gpus);
  if (const auto* poisson = std::get_if<workload::PoissonArrivals>(&arrivals)) {
    return workload::GammaArrivals{poisson->rate_per_s / share, 1 / std::sqrt(share)};
  }
  if (const auto* gamma = std::get_if<workload::GammaArrivals>(&arrivals)) {
    return workload::GammaArrivals{gamma->rate_per_s / share, gamma->cv / std::sqrt(share)};
  }
  workload::FileArrivals file = std::get<workload::FileArrivals>(arrivals);
  file.speedup /= share;
  return file;
}

/// The filler on the one GPU; nothing: it has no instance there.
std::optional<FillerConfig> on_one_gpu(const FillerConfig& filler, std::uint32_t gpu,
                                       std::size_t ranks) {
  if (filler.gpus && !std::ranges::binary_search(*filler.gpus, gpu)) return std::nullopt;
  FillerConfig dealt = filler;
  std::size_t gpus = filler.gpus ? filler.gpus->size() : ranks;
  if (filler.instances) gpus = *filler.instances;
  if (dealt.gpus) dealt.gpus = {0};
  if (dealt.instances) dealt.instances = 1;
  if (dealt.arrivals) dealt.arrivals = dealt_to_one(*dealt.arrivals, gpus);
  return dealt;
}

void keep_fillers(LoadedRun& run, const LoadedRun& whole, std::uint32_t gpu) {
  run.config.fillers.clear();
  run.fillers.clear();
  for (std::size_t i = 0; i < whole.config.fillers.size(); ++i) {
    auto filler = on_one_gpu(whole.config.fillers[i], gpu, whole.training->ranks.size());
    if (!filler) continue;
    run.config.fillers.push_back(*std::move(filler));
    run.fillers.push_back(whole.fillers[i]);
  }
}

// In a synthesised job one rank stands for all that behave alike.
Error no_such_rank(const LoadedRun& run, std::uint32_t rank) {
  const std::vector<program::Program>& ranks = run.training->ranks;
  std::string known;
  for (const program::Program& known_rank : ranks) {
    known += (known.empty() ? "" : ", ") + std::to_string(known_rank.rank);
  }
  const std::string place = "rank " + std::to_string(rank);
  if (run.world_size <= ranks.size() || rank >= run.world_size) {
    return {run.config.file, place, "the job has no such rank; simulated are " + known};
  }
  const std::string stand_in = ranks.size() == 1 ? "rank " + known : "one of the ranks " + known;
  return {run.config.file, place,
          "the job has it, but " + stand_in + " stands for it; expected that, or "
          "\"folding\": \"nothing\", which simulates all"};
}

Result<void> check_one_gpu_servers(const RunConfig& config) {
  for (const FillerConfig& filler : config.fillers) {
    if (gpus_of_server(filler) == 1) continue;
    return fail(config.file, "filler \"" + filler.name + "\"",
                "found a server over " + std::to_string(gpus_of_server(filler)) +
                    " GPUs; a rank by itself has one");
  }
  return {};
}

}  // namespace

Result<LoadedRun> lone_rank(const LoadedRun& run, std::uint32_t rank) {
  const std::vector<program::Program>& ranks = run.training->ranks;
  const auto found = std::ranges::find(ranks, rank, &program::Program::rank);
  if (found == ranks.end()) return tl::unexpected<Error>(no_such_rank(run, rank));
  BUBBLESIM_RETURN_IF_ERROR(check_one_gpu_servers(run.config));
  const auto position = static_cast<std::size_t>(found - ranks.begin());
  BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<Duration> durations,
                             measure_collectives(run, position));
  LoadedRun lone = run;
  lone.training = alone(*run.training, position, durations);
  lone.lone = true;
  std::erase_if(lone.config.training.stragglers,
                [rank](const Straggler& straggler) { return straggler.rank != rank; });
  if (!run.rank_memory.empty()) lone.rank_memory = {run.rank_memory[position]};
  if (run.recorded_mean_iteration) lone.recorded_mean_iteration = recorded_mean(*lone.training);
  keep_fillers(lone, run, static_cast<std::uint32_t>(position));
  return lone;
}

namespace {

class PassEnd final : public workload::RunObserver {
 public:
  void on_pass_finished(workload::ProgramRun&, SimTime now) override { end = now; }
  SimTime end = kSimStart;
};

}  // namespace

Duration measure_pass(const program::Program& program, const hardware::GpuSpec& device) {
  PassEnd pass;
  workload::RunSetup setup;
  setup.client.name = "filler";
  setup.repeat = workload::Repeat::kOnePass;
  setup.observer = &pass;
  workload::Machine machine(device);
  machine.add_program(machine.add_gpu(), program, setup).start_pass(kSimStart);
  machine.conductor().run_until();
  return pass.end - kSimStart;
}

}  // namespace bubblesim::run
