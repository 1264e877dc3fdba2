#include "sim/run/gpu_node.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/check.hpp"
#include "sim/synth/server_program.hpp"
#include "sim/workload/engine_service.hpp"
#include "sim/workload/service.hpp"

namespace bubblesim::run {
namespace {

observe::SliceKind slice_kind(program::WorkKind kind) {
  switch (kind) {
    case program::WorkKind::kKernel: return observe::SliceKind::kKernel;
    case program::WorkKind::kCollective: return observe::SliceKind::kCollective;
    case program::WorkKind::kCopy: return observe::SliceKind::kCopy;
    case program::WorkKind::kMemset: return observe::SliceKind::kMemset;
  }
  return observe::SliceKind::kKernel;
}

// Whether the thread's first operation of each stream is ready only when its gap after an operation
// of an earlier pass is over: calls come no sooner than think times and costs allow.
bool starts_afresh(const program::Program& program, const program::ThreadProgram& thread) {
  std::vector<bool> used(program.stream_count);
  Duration call{};
  for (const program::Step& step : thread.steps) {
    call += step.think.duration();
    const bool launches = step.kind == program::StepKind::kLaunch ||
                          step.kind == program::StepKind::kLaunchAndWait;
    for (std::uint32_t i = 0; launches && i < step.count; ++i) {
      const program::Op& op = program.ops[step.target + i];
      if (used[op.stream]) continue;
      used[op.stream] = true;
      if (call + op.launch_lag.duration() < op.gap.duration()) return false;
    }
    call += step.cost.duration();
  }
  return true;
}

// Whether no pass of the program depends on earlier ones.
bool passes_are_alike(const program::Program& program) {
  return std::ranges::all_of(program.edges,
                             [](const auto& edge) { return edge.passes_back == 0; }) &&
         std::ranges::all_of(program.details,
                             [](const program::StepDetail& detail) {
                               return detail.passes_back == 0 && detail.after_passes_back == 0;
                             }) &&
         std::ranges::all_of(program.threads, [&program](const auto& thread) {
           return starts_afresh(program, thread);
         });
}

// Monitors a filler that has its GPU to itself. Its passes with the same factor on their times are
// copies of the first one: that goes event by event, and a later one is a single event at its end,
// after which meters, requests and SM time are those of its events (tests/laws/domains), while the
// GPU's and the program's own counters, which nobody reads here, stand still. Passes within which
// meters are read go event by event, too.
class LoneFillerMonitor final : public FillerMonitor,
                                public workload::PassTaker,
                                public engine::EventHandler {
 public:
  /// Meters are read at the end of the instant in which the warm-up ends, and not again before
  /// `next_read`. All references outlive this.
  LoneFillerMonitor(GpuMeters& meters, FillerInstance& filler, const schedule::SharedGpu& gpu,
                    const SimTime& next_read)
      : FillerMonitor(meters, filler), gpu_(gpu), next_read_(next_read),
        entity_(gpu.engine().add_entity(*this, engine::Phase::kHost)) {}

  void on_op_started(workload::ProgramRun& watched, std::uint32_t op, SimTime now) override {
    if (running_++ == 0) busy_since_ = now;
    FillerMonitor::on_op_started(watched, op, now);
  }

  void on_op_finished(const workload::OpRecord& finished) override {
    last_op_end_ = finished.end;
    if (--running_ == 0) seen_.busy += finished.end - busy_since_;
    FillerMonitor::on_op_finished(finished);
  }

  bool take_pass(SimTime now, double factor) override {
    begin_ = now;
    factor_ = factor;
    const auto known = known_.find(factor);
    if (known == known_.end()) {
      seen_ = {};
      gpu_.device().log_sm_ns(&seen_.sm_ns);
      return false;
    }
    const SimTime read = now < meters_.warmup ? std::min(meters_.warmup, next_read_) : next_read_;
    if (known->second.length > read - now) return false;
    taken_ = &known->second;
    gpu_.engine().schedule(entity_, now + taken_->length);
    return true;
  }

  // Meters only sum: one operation stands for those of the pass.
  void on_event(SimTime now) override {
    const Pass& pass = *std::exchange(taken_, nullptr);
    meters_.started(observe::Activity::kFillerWork, begin_);
    meters_.ended(observe::Activity::kFillerWork, begin_ + pass.busy);
    gpu_.device().add_sm_ns(run->client(), pass.sm_ns);
    filler_->served_by().pass_finished(now);
  }

  // A pass that the device ends, not the host, ends in another phase than this entity's.
  void on_pass_finished(workload::ProgramRun& watched, SimTime now) override {
    gpu_.device().log_sm_ns(nullptr);
    if (last_op_end_ < now) {
      seen_.length = now - begin_;
      known_.try_emplace(factor_, std::move(seen_));
    }
    FillerMonitor::on_pass_finished(watched, now);
  }

 private:
  struct Pass {
    Duration length{};
    Duration busy{};            ///< at least one operation ran
    std::vector<double> sm_ns;  ///< Gpu::log_sm_ns
  };

  const schedule::SharedGpu& gpu_;
  const SimTime& next_read_;
  engine::EntityId entity_;
  std::map<double, Pass> known_;  ///< by factor
  const Pass* taken_ = nullptr;   ///< the present pass
  SimTime begin_{};               ///< of the present pass
  double factor_ = 1;
  // The present pass, event by event.
  Pass seen_;
  std::uint32_t running_ = 0;
  SimTime busy_since_{};
  SimTime last_op_end_{};
};

}  // namespace

void IterationGoal::on_iteration(std::uint64_t done, engine::Engine& engine) {
  if (done != iterations_) return;
  BUBBLESIM_CHECK(engine.in_order(), "a rank ends earlier than it can");
  if (--ranks_left_ == 0) engine.stop();
}

std::optional<std::uint64_t> IterationGoal::left(std::uint64_t done) const {
  if (!iterations_ || done >= *iterations_) return std::nullopt;
  return *iterations_ - done;
}

observe::Activity ClientMonitor::activity_of(const program::Op& op) const {
  if (filler_ != nullptr) return observe::Activity::kFillerWork;
  switch (op.kind) {
    case program::WorkKind::kKernel: return observe::Activity::kTrainingKernel;
    case program::WorkKind::kCollective: return observe::Activity::kTrainingCollective;
    case program::WorkKind::kCopy:
    case program::WorkKind::kMemset: return observe::Activity::kTrainingTransfer;
  }
  return observe::Activity::kTrainingKernel;
}

void ClientMonitor::on_op_started(workload::ProgramRun& watched, std::uint32_t op, SimTime now) {
  if (meters_.power) meters_.power->started(client_, watched.program(), op, now);
  meters_.started(activity_of(watched.program().ops[op]), now);
  if (meters_.timeline != nullptr) since_[op] = now;
  ClientWatch::on_op_started(watched, op, now);
}

void ClientMonitor::on_op_paused(workload::ProgramRun& watched, std::uint32_t op, SimTime now) {
  if (meters_.power) meters_.power->ended(client_, watched.program(), op, now);
  if (meters_.timeline == nullptr || since_[op] >= now) return;
  record(watched, op, slice_kind(watched.program().ops[op].kind), now);
}

void ClientMonitor::on_op_resumed(workload::ProgramRun& watched, std::uint32_t op, SimTime now) {
  if (meters_.power) meters_.power->started(client_, watched.program(), op, now);
  if (meters_.timeline != nullptr) record(watched, op, observe::SliceKind::kPaused, now);
}

void ClientMonitor::on_op_finished(const workload::OpRecord& finished) {
  const program::Op& op = finished.run->program().ops[finished.op];
  if (meters_.power) {
    meters_.power->ended(client_, finished.run->program(), finished.op, finished.end);
  }
  meters_.ended(activity_of(op), finished.end);
  ClientWatch::on_op_finished(finished);
  if (meters_.timeline != nullptr) {
    record(*finished.run, finished.op, slice_kind(op.kind), finished.end);
  }
}

// What the operation did since it last began, stood still or went on. Precondition: a timeline.
void ClientMonitor::record(const workload::ProgramRun& watched, std::uint32_t index,
                           observe::SliceKind kind, SimTime until) {
  const program::Op& op = watched.program().ops[index];
  const SimTime since = std::exchange(since_[index], until);
  if (since == until && kind == observe::SliceKind::kPaused) return;
  auto found = timeline_names_.find(op.name.value);
  if (found == timeline_names_.end()) {
    const NameId name = meters_.timeline->intern(watched.program().names[op.name]);
    found = timeline_names_.emplace(op.name.value, name).first;
  }
  observe::Slice slice{meters_.gpu, client_, found->second, kind, since, until};
  if (filler_ != nullptr) {
    slice.request = filler_->served_by().serving(filler_->member).value_or(slice.request);
  }
  meters_.timeline->add(slice);
}

void TrainingMonitor::on_iteration(workload::ProgramRun& watched, std::uint32_t index,
                                   SimTime now) {
  if (index == 0) return;
  const Duration length = now - last_iteration_end_;
  iterations.push_back(length);
  if (meters_.timeline != nullptr) {
    meters_.timeline->add({meters_.gpu, client_, meters_.timeline->intern("iteration"),
                           observe::SliceKind::kPhase, last_iteration_end_, now});
  }
  last_iteration_end_ = now;
  tell_iteration(watched, length, now);
  goal_.on_iteration(iterations.size(), watched.engine());
}

SimTime TrainingMonitor::earliest_goal(SimTime now) const {
  const std::optional<std::uint64_t> left = goal_.left(iterations.size());
  if (!left) return SimTime::max();
  return now + static_cast<std::int64_t>(*left - 1) * least_iteration_;
}

// A filler that stands still does nothing; a training job that waits for its slice has work to do:
// that is no bubble.
void FillerMonitor::on_op_paused(workload::ProgramRun& watched, std::uint32_t op, SimTime now) {
  ClientMonitor::on_op_paused(watched, op, now);
  meters_.ended(activity_of(watched.program().ops[op]), now);
}

void FillerMonitor::on_op_resumed(workload::ProgramRun& watched, std::uint32_t op, SimTime now) {
  ClientMonitor::on_op_resumed(watched, op, now);
  meters_.started(activity_of(watched.program().ops[op]), now);
}

void FillerMonitor::on_pass_finished(workload::ProgramRun& watched, SimTime now) {
  tell_iteration(watched, now - watched.pass_start(), now);
  filler_->served_by().pass_finished(now);
}

namespace {

constexpr double kNsPerSecond = 1e9;

double fraction(Duration part, Duration whole) {
  return whole.count() == 0 ? 0 : to_seconds(part) / to_seconds(whole);
}

/// The program of an engine's steps; null: the filler is no engine's server.
std::unique_ptr<workload::StepProgram> make_steps(const LoadedRun& loaded,
                                                  const FillerInstance& instance) {
  const LoadedFiller& filler = *loaded.fillers[instance.filler];
  if (!filler.server) return nullptr;
  synth::ServerMeetings meetings;
  if (instance.group != nullptr) meetings = instance.group->meetings_of(instance.member);
  auto steps = synth::ServerProgram::make(*filler.server, meetings);
  BUBBLESIM_CHECK(steps.has_value(), "a server's program that could be made when it was loaded");
  return *std::move(steps);
}

/// Requests that arrive have a number in the whole filler, whichever GPU they are dealt to; others
/// are counted on each.
workload::LengthSequence lengths_on(const LoadedRun& loaded, const FillerInstance& instance,
                                    const workload::RequestLengths& lengths) {
  std::string stream = "lengths of " + loaded.config.fillers[instance.filler].name;
  if (instance.mode != observe::FillerMode::kOnline) {
    stream += " on GPU " + std::to_string(instance.gpu.value);
  }
  return {lengths, RandomStream(loaded.config.seed, stream)};
}

std::unique_ptr<workload::RequestService> make_service(engine::Engine& engine,
                                                       workload::ProgramRun& run,
                                                       const LoadedRun& loaded,
                                                       const ServerRequests& requests,
                                                       FillerInstance& instance,
                                                       workload::PassTaker* taker) {
  const std::uint32_t filler = instance.filler;
  if (instance.steps) {
    serving::SchedulerSpec spec = loaded.server(filler)->scheduler;
    spec.seed = loaded.config.seed;
    return std::make_unique<workload::EngineService>(
        run, *instance.steps, spec,
        lengths_on(loaded, instance, *requests[filler]), instance);
  }
  return std::make_unique<workload::Service>(engine, run, loaded.config.fillers[filler].batching,
                                             instance, taker);
}

}  // namespace

// Whether the filler alone does the same in every pass.
bool GpuNode::repeats(const LoadedRun& loaded, const FillerInstance& instance) const {
  return instances_.size() == 1 && instance.admitted && !instance.steps &&
         instance.mode != observe::FillerMode::kJobs && !meters_.usage && !meters_.power &&
         meters_.timeline == nullptr && loaded.config.fillers[instance.filler].jitter_cv == 0 &&
         passes_are_alike(loaded.fillers[instance.filler]->program);
}

void GpuNode::add_instance(std::uint32_t filler, observe::FillerMode mode) {
  instances_.push_back(std::make_unique<FillerInstance>(meters_.warmup, meters_.timeline));
  FillerInstance& instance = *instances_.back();
  instance.gpu = id();
  instance.client = ClientId{static_cast<std::uint32_t>(instances_.size())};
  instance.filler = filler;
  instance.mode = mode;
}

Result<void> GpuNode::open(workload::Machine& machine, schedule::Decider decider,
                           std::vector<policy::ClientInfo> clients) {
  sm_count_ = machine.spec().sm_count;
  if (meters_.timeline != nullptr) {
    decider.holds = this;
    meters_.timeline->name_gpu(id(), "GPU " + std::to_string(id().value));
    for (const policy::ClientInfo& client : clients) {
      meters_.timeline->name_client(id(), client.id, client.name);
    }
  }
  BUBBLESIM_ASSIGN_OR_RETURN(
      gpu_, schedule::SharedGpu::make(machine, decider, std::move(clients), this));
  if (meters_.power) gpu_->device().set_governor(&*meters_.power);
  for (std::size_t i = 0; i < instances_.size(); ++i) {
    instances_[i]->admitted = gpu_->decided().admissions[i + 1].admitted;
    instances_[i]->reason = gpu_->decided().admissions[i + 1].reason;
  }
  return {};
}

void GpuNode::add_training(const program::Program* rank, workload::RunSetup setup,
                           IterationGoal& goal) {
  if (rank != nullptr) training_ = std::make_unique<TrainingMonitor>(meters_, *rank, goal);
  workload::ProgramRun* run = gpu_->add_client(rank, std::move(setup), training_.get());
  if (training_) training_->run = run;
}

void GpuNode::add_services(const LoadedRun& loaded, const ServerRequests& requests,
                           const SimTime* next_read) {
  workload::RunSetup setup;
  setup.repeat = workload::Repeat::kOnePass;
  setup.perturbation.seed = loaded.config.seed;
  setup.perturbation.place = " on GPU " + std::to_string(id().value);
  for (const auto& instance : instances_) {
    setup.perturbation.jitter_cv = loaded.config.fillers[instance->filler].jitter_cv;
    instance->steps = make_steps(loaded, *instance);
    const program::Program* program =
        instance->steps ? &instance->steps->program() : &loaded.fillers[instance->filler]->program;
    if (!instance->admitted) program = nullptr;
    std::unique_ptr<FillerMonitor> monitor;
    workload::PassTaker* taker = nullptr;
    if (next_read != nullptr && repeats(loaded, *instance)) {
      auto lone = std::make_unique<LoneFillerMonitor>(meters_, *instance, *gpu_, *next_read);
      taker = lone.get();
      monitor = std::move(lone);
    } else {
      monitor = std::make_unique<FillerMonitor>(meters_, *instance);
    }
    setup.rendezvous = instance->group ? &instance->group->rendezvous : nullptr;
    monitor->run = gpu_->add_client(program, setup, monitor.get());
    if (monitor->run == nullptr) continue;
    instance->limits = loaded.config.fillers[instance->filler].limits;
    if (joins_server(instance.get())) {
      workload::EngineService& server = engine_of(*instance->group->instances.front());
      if (server.schedulers().size() == instance->member) server.add_member();
      server.add_gpu(*monitor->run, *instance->steps);
    } else {
      instance->service = make_service(gpu_->engine(), *monitor->run, loaded, requests, *instance,
                                       taker);
    }
    fillers_.push_back(std::move(monitor));
  }
}

void GpuNode::start() {
  if (training_) training_->run->start_pass(kSimStart + training_->run->program().start_offset);
  gpu_->start();
}

GpuNode::SmSeconds GpuNode::sm_seconds() const {
  SmSeconds now;
  if (training_) now.training = gpu_->usage(*training_->run).sm_seconds;
  for (const auto& filler : fillers_) now.fillers += gpu_->usage(*filler->run).sm_seconds;
  return now;
}

void GpuNode::close_usage(SimTime now, Bytes workers) {
  const SmSeconds used = sm_seconds();
  observe::UsageSeries::Books books{.training_sm_ns = used.training * kNsPerSecond,
                                    .filler_sm_ns = used.fillers * kNsPerSecond,
                                    .memory = gpu_->memory_now() + workers};
  if (meters_.power) books.power = meters_.power->take_interval(now);
  meters_.usage->close(now, books);
}

observe::GpuUse GpuNode::use(SimTime end, Bytes workers) {
  observe::ActivityMeter& meter = meters_.activity;
  meter.advance(end);
  const Duration window = end - meters_.warmup;
  observe::GpuUse use;
  use.gpu = id();
  use.busy_fraction = fraction(meter.busy(), window);
  use.busy_without_collectives_fraction = fraction(meter.busy_without_collectives(), window);
  use.bubble_fraction = fraction(meter.bubble(), window);
  const Duration in_collectives = meter.recovered_collective();
  const Duration in_transfers = meter.recovered_transfer();
  use.bubbles = {{"collective", meter.collective_bubble(), in_collectives},
                 {"transfer", meter.transfer_bubble(), in_transfers},
                 {"idle", meter.idle_bubble(),
                  meter.recovered() - in_collectives - in_transfers}};
  use.recovered_fraction = fraction(meter.recovered(), meter.bubble());
  const double whole = to_seconds(window) * sm_count_;
  if (whole > 0) {
    const SmSeconds used = sm_seconds();
    use.training_sm_fraction = (used.training - at_warmup_.training) / whole;
    use.filler_sm_fraction = (used.fillers - at_warmup_.fillers) / whole;
  }
  if (gpu_->memory_known()) use.memory_high_water = gpu_->memory_at_start() + workers;
  if (meters_.power) {
    meters_.power->advance(end);
    use.power = meters_.power->use();
  }
  return use;
}

std::optional<double> GpuNode::energy_of(ClientId client) const {
  if (!meters_.power) return std::nullopt;
  return meters_.power->energy_of(client);
}

std::uint64_t GpuNode::resets() const {
  std::uint64_t all = 0;
  for (const auto& filler : fillers_) all += gpu_->usage(*filler->run).resets;
  return all;
}

SimTime GpuNode::next_contact(SimTime now) const {
  return training_ ? training_->earliest_goal(now) : SimTime::max();
}

std::vector<FillerInstance*> instances_of(const Nodes& nodes, std::uint32_t filler) {
  std::vector<FillerInstance*> instances;
  for (const auto& node : nodes) {
    for (const auto& instance : node->instances()) {
      if (instance->filler == filler) instances.push_back(instance.get());
    }
  }
  return instances;
}

void GpuNode::on_hold_ended(ClientId client, SimTime since, SimTime now) {
  meters_.timeline->add({id(), client, meters_.timeline->intern("launch held"),
                         observe::SliceKind::kHold, since, now});
}

}  // namespace bubblesim::run
