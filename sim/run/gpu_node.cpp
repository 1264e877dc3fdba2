#include "sim/run/gpu_node.hpp"

#include <string>

#include "sim/base/check.hpp"
#include "sim/run/kv_handover.hpp"
#include "sim/synth/server_program.hpp"
#include "sim/workload/engine_service.hpp"
#include "sim/workload/service.hpp"

namespace bubblesim::run {
namespace {

constexpr double kNsPerSecond = 1e9;

double fraction(Duration part, Duration whole) {
  return whole.count() == 0 ? 0 : to_seconds(part) / to_seconds(whole);
}

/// The program of an engine's steps; null: the filler is no engine's server.
std::unique_ptr<workload::StepProgram> make_steps(const LoadedRun& loaded,
                                                  const FillerInstance& instance) {
  if (loaded.server(instance.filler) == nullptr) return nullptr;
  synth::ServerMeetings meetings;
  if (instance.group != nullptr) meetings = instance.group->meetings_of(instance.member);
  auto steps = synth::ServerProgram::make(*loaded.servers[instance.filler], meetings);
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
                                                       FillerInstance& instance) {
  const std::uint32_t filler = instance.filler;
  if (instance.steps) {
    serving::SchedulerSpec spec = loaded.server(filler)->scheduler;
    spec.seed = loaded.config.seed;
    return std::make_unique<workload::EngineService>(
        run, *instance.steps, spec,
        lengths_on(loaded, instance, *requests[filler]), instance);
  }
  return std::make_unique<workload::Service>(engine, run, loaded.config.fillers[filler].batching,
                                             instance);
}

}  // namespace

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
  if (meters_.power) gpu_->set_governor(&*meters_.power);
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

void GpuNode::add_services(const LoadedRun& loaded, const ServerRequests& requests) {
  workload::RunSetup setup;
  setup.repeat = workload::Repeat::kOnePass;
  setup.perturbation.seed = loaded.config.seed;
  setup.perturbation.place = " on GPU " + std::to_string(id().value);
  for (const auto& instance : instances_) {
    setup.perturbation.jitter_cv = loaded.config.fillers[instance->filler].jitter_cv;
    auto monitor = std::make_unique<FillerMonitor>(meters_, *instance);
    instance->steps = make_steps(loaded, *instance);
    const program::Program* program =
        instance->steps ? &instance->steps->program() : &*loaded.fillers[instance->filler];
    if (!instance->admitted) program = nullptr;
    setup.rendezvous = instance->group ? &instance->group->rendezvous : nullptr;
    monitor->run = gpu_->add_client(program, setup, monitor.get());
    if (monitor->run == nullptr) continue;
    instance->limits = loaded.config.fillers[instance->filler].limits;
    if (joins_server(instance.get())) {
      workload::EngineService& server = engine_of(*instance->group->instances.front());
      if (server.schedulers().size() == instance->member) server.add_member();
      server.add_gpu(*monitor->run, *instance->steps);
    } else {
      instance->service = make_service(gpu_->engine(), *monitor->run, loaded, requests, *instance);
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

std::optional<observe::UsagePower> GpuNode::interval_power(SimTime now) {
  if (!meters_.power) return std::nullopt;
  return meters_.power->take_interval(now);
}

void GpuNode::close_usage(SimTime now, Bytes workers) {
  const SmSeconds used = sm_seconds();
  meters_.usage->close(now, {.training_sm_ns = used.training * kNsPerSecond,
                             .filler_sm_ns = used.fillers * kNsPerSecond,
                             .memory = gpu_->memory_now() + workers,
                             .power = interval_power(now)});
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

void GpuNode::on_hold_ended(ClientId client, SimTime since, SimTime now) {
  meters_.timeline->add({id(), client, meters_.timeline->intern("launch held"),
                         observe::SliceKind::kHold, since, now});
}

}  // namespace bubblesim::run
