#include "sim/run/simulation.hpp"

#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/base/units.hpp"
#include "sim/schedule/gpu_plan.hpp"
#include "sim/workload/service.hpp"

namespace bubblesim::run {
namespace {

// A timeline and the queue of fill jobs follow all GPUs, event by event.
engine::ConductorSetup conductor_setup(const RunConfig& config, const Scenario& scenario) {
  engine::ConductorSetup setup = scenario.gpus;
  const bool jobs = std::any_of(config.fillers.begin(), config.fillers.end(), [](const auto& one) {
    return one.mode == observe::FillerMode::kJobs;
  });
  if (jobs || scenario.timeline != nullptr) setup.windows = engine::Windows::kNever;
  return setup;
}

}  // namespace

/// Notes what had been used when the warm-up ended.
class Simulation::WarmupSnapshot final : public engine::EventHandler {
 public:
  WarmupSnapshot(engine::Engine& engine, std::vector<std::unique_ptr<GpuNode>>& nodes)
      : entity(engine.add_entity(*this, engine::Phase::kObserve)), nodes_(nodes) {}
  void on_event(SimTime) override {
    for (const auto& node : nodes_) {
      node->training_sm_seconds_at_warmup = node->training_sm_seconds();
      node->filler_sm_seconds_at_warmup = node->filler_sm_seconds();
    }
  }
  engine::EntityId entity;

 private:
  std::vector<std::unique_ptr<GpuNode>>& nodes_;
};

Simulation::Simulation(const LoadedRun& loaded, Scenario scenario)
    : loaded_(loaded), scenario_(std::move(scenario)),
      conductor_(conductor_setup(loaded.config, scenario_)),
      warmup_(kSimStart + loaded.config.warmup),
      rendezvous_(conductor_.shared(), workload::meetings(*loaded.training),
                  loaded.training->links) {
  conductor_.set_joint(meetings_);
}

Simulation::~Simulation() = default;

Result<observe::PolicyResult> Simulation::run() {
  BUBBLESIM_RETURN_IF_ERROR(build());
  BUBBLESIM_RETURN_IF_ERROR(build_arrivals());
  snapshot_ = std::make_unique<WarmupSnapshot>(conductor_.shared(), nodes_);
  conductor_.shared().schedule(snapshot_->entity, warmup_);
  BUBBLESIM_RETURN_IF_ERROR(advance());
  return collect();
}

Result<void> Simulation::build() {
  BUBBLESIM_RETURN_IF_ERROR(place_fillers());
  const auto gpus = static_cast<std::uint32_t>(loaded_.training->ranks.size());
  for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) {
    BUBBLESIM_RETURN_IF_ERROR(build_node(gpu));
  }
  return build_queue();
}

Result<void> Simulation::build_node(std::uint32_t gpu_index) {
  auto node = std::make_unique<GpuNode>();
  node->contact = std::make_unique<GpuContact>(*node, loaded_.config.iterations);
  node->engine = &conductor_.add_domain(*node->contact);
  node->id = GpuId{gpu_index};
  node->rank_index = gpu_index;
  node->timeline = scenario_.timeline;
  node->iterations = this;
  node->meter = std::make_unique<observe::ActivityMeter>(warmup_);
  if (records_usage()) node->usage = std::make_unique<observe::UsageSeries>();
  for (const PlacedFiller& placed : placed_[gpu_index]) {
    auto instance = std::make_unique<FillerInstance>(warmup_, scenario_.timeline);
    instance->gpu = node->id;
    instance->filler = placed.filler;
    instance->mode = mode_of(placed.filler);
    node->fillers.push_back(std::move(instance));
  }
  const std::vector<policy::ClientInfo> clients = client_infos(*node);
  schedule::GpuPlan plan;
  if (scenario_.policy != nullptr) {
    node->policy = scenario_.policy->make(*scenario_.parameters);
    BUBBLESIM_ASSIGN_OR_RETURN(
        plan, schedule::plan_gpu(*scenario_.policy, *node->policy, loaded_.device, clients));
  } else {
    plan = schedule::plan_without_policy(clients);
  }
  unified_memory_ = unified_memory_ || plan.decided.sharing.unified_memory;
  node->gpu = std::make_unique<gpu::Gpu>(*node->engine, loaded_.device, plan.sharing);
  if (scenario_.policy != nullptr) {
    if (scenario_.timeline != nullptr) {
      node->holds = std::make_unique<HoldRecorder>(node->id, *scenario_.timeline);
    }
    const schedule::BubbleTable* bubbles =
        scenario_.bubbles == nullptr ? nullptr : &(*scenario_.bubbles)[gpu_index];
    node->driver = std::make_unique<schedule::PolicyDriver>(
        *node->engine, *node->gpu, *scenario_.policy, *node->policy, bubbles, node->holds.get());
  }
  if (scenario_.training) {
    const Bytes resident = plan.decided.resident.front();
    add_training(*node, {plan.clients.front(), clients.front().memory, resident});
  } else if (node->driver) {
    node->driver->attach(nullptr);
  }
  for (std::size_t i = 0; i < node->fillers.size(); ++i) {
    node->fillers[i]->client = ClientId{static_cast<std::uint32_t>(i + 1)};
    node->fillers[i]->admitted = plan.decided.admissions[i + 1].admitted;
    node->fillers[i]->reason = plan.decided.admissions[i + 1].reason;
    const Bytes resident = plan.decided.resident[i + 1];
    add_filler(*node, i, {plan.clients[i + 1], clients[i + 1].memory, resident});
  }
  for (std::size_t i = 0; i < clients.size(); ++i) {
    if (!plan.decided.admissions[i].admitted || (i == 0 && !scenario_.training)) continue;
    node->memory_known = node->memory_known && clients[i].memory_known;
    if (clients[i].queued) continue;
    node->memory = node->memory + plan.decided.resident[i];
    node->memory_of.push_back(clients[i].id);
  }
  if (scenario_.timeline != nullptr) {
    scenario_.timeline->name_gpu(node->id, "GPU " + std::to_string(gpu_index));
    for (const auto& client : clients) {
      scenario_.timeline->name_client(node->id, client.id, client.name);
    }
  }
  nodes_.push_back(std::move(node));
  return {};
}

std::vector<policy::ClientInfo> Simulation::client_infos(const GpuNode& node) const {
  std::vector<policy::ClientInfo> clients;
  const RunConfig& config = loaded_.config;
  policy::ClientInfo training;
  training.role = policy::Role::kTraining;
  training.name = "training rank " + std::to_string(loaded_.training->ranks[node.id.index()].rank);
  const std::optional<Bytes> memory = training_memory(node.id.index());
  training.memory = scenario_.training ? memory.value_or(Bytes{}) : Bytes{};
  training.memory_known = memory.has_value();
  clients.push_back(training);
  for (const auto& instance : node.fillers) {
    const FillerConfig& filler = config.fillers[instance->filler];
    policy::ClientInfo info;
    info.id = ClientId{static_cast<std::uint32_t>(clients.size())};
    info.role = role_of(filler);
    info.queued = instance->mode == observe::FillerMode::kJobs;
    if (scenario_.profiles != nullptr && scenario_.policy != nullptr &&
        scenario_.policy->needs.kernel_durations) {
      info.pass = (*scenario_.profiles)[instance->filler].pass;
    }
    info.name = filler.name;
    info.memory = filler.memory.value_or(Bytes{});
    info.memory_known = filler.memory.has_value();
    clients.push_back(info);
  }
  return clients;
}

void Simulation::add_training(GpuNode& node, const ClientPlace& client) {
  const program::Program& program = loaded_.training->ranks[node.rank_index];
  node.monitors.push_back(std::make_unique<ClientMonitor>(node, ClientId{0}, nullptr));
  workload::RunSetup setup;
  setup.client = client.setup;
  setup.repeat = workload::Repeat::kLoop;
  setup.perturbation.jitter_cv = loaded_.config.training.jitter_cv;
  setup.perturbation.seed = loaded_.config.seed;
  for (const Straggler& straggler : loaded_.config.training.stragglers) {
    if (straggler.rank == program.rank) setup.perturbation.slowdown = straggler.slowdown;
  }
  setup.rendezvous = &rendezvous_;
  setup.gate = node.driver.get();
  setup.observer = node.monitors.back().get();
  node.runs.push_back(
      std::make_unique<workload::ProgramRun>(*node.engine, *node.gpu, program, setup));
  node.contact->expect(program);
  node.training = true;
  if (node.driver) {
    node.driver->attach(node.runs.back().get(), client.memory, client.resident);
  }
}

void Simulation::add_filler(GpuNode& node, std::size_t index, const ClientPlace& client) {
  FillerInstance& instance = *node.fillers[index];
  if (!instance.admitted) {
    if (node.driver) node.driver->attach(nullptr);
    return;
  }
  const FillerConfig& config = loaded_.config.fillers[instance.filler];
  node.monitors.push_back(std::make_unique<ClientMonitor>(node, instance.client, &instance));
  workload::RunSetup setup;
  setup.client = client.setup;
  setup.repeat = workload::Repeat::kOnePass;
  setup.gate = node.driver.get();
  setup.observer = node.monitors.back().get();
  node.runs.push_back(std::make_unique<workload::ProgramRun>(
      *node.engine, *node.gpu, *loaded_.fillers[instance.filler], setup));
  node.filler_clients.push_back(node.runs.back()->client());
  if (node.driver) {
    node.driver->attach(node.runs.back().get(), client.memory, client.resident);
  }
  if (instance.filler < loaded_.tables.size() && loaded_.tables[instance.filler]) {
    instance.service = std::make_unique<workload::ContinuousService>(
        *node.runs.back(), *loaded_.tables[instance.filler], instance);
    return;
  }
  instance.service = std::make_unique<workload::Service>(*node.engine, *node.runs.back(),
                                                         config.batching, instance);
}

Result<void> Simulation::build_arrivals() {
  for (const std::uint32_t filler : scenario_.fillers) {
    const FillerConfig& config = loaded_.config.fillers[filler];
    if (config.mode != observe::FillerMode::kOnline) continue;
    std::vector<FillerInstance*> instances;
    for (const auto& node : nodes_) {
      for (const auto& instance : node->fillers) {
        if (instance->filler == filler) instances.push_back(instance.get());
      }
    }
    if (instances.empty()) continue;
    BUBBLESIM_ASSIGN_OR_RETURN(
        auto process,
        workload::make_arrivals(*config.arrivals, RandomStream(loaded_.config.seed,
                                                               "arrivals of " + config.name)));
    routers_.push_back(std::make_unique<ArrivalRouter>(conductor_.shared(), std::move(process),
                                                       std::move(instances), warmup_));
  }
  return {};
}

Result<void> Simulation::advance() {
  for (const auto& node : nodes_) {
    if (node->training) {
      node->runs.front()->start_pass(kSimStart + node->runs.front()->program().start_offset);
    }
    if (node->driver) node->driver->start();
  }
  for (const auto& node : nodes_) {
    for (const auto& instance : node->fillers) {
      if (instance->admitted && instance->mode == observe::FillerMode::kOffline) {
        instance->service->start_offline(kSimStart);
      }
    }
  }
  for (const auto& router : routers_) router->start();
  if (queue_) queue_->start();
  const Duration limit = loaded_.config.duration.value_or(scenario_.limit);
  const SimTime last = limit == Duration::max() ? SimTime::max() : kSimStart + limit;
  BUBBLESIM_RETURN_IF_ERROR(run_until(last));
  note_passed(scenario_.expected);
  if (auto fault = policy_fault()) return tl::unexpected<Error>(*std::move(fault));
  if (queue_ && queue_->fault()) return tl::unexpected<Error>(*queue_->fault());
  if (conductor_.stopped()) {
    end_ = conductor_.now();
    return {};
  }
  const bool idle = !conductor_.next_due().has_value();
  const bool held = std::any_of(nodes_.begin(), nodes_.end(), [](const auto& node) {
    return node->driver && node->driver->session().still_held() > 0;
  });
  if (idle && !held && scenario_.training) {
    return fail("the training job stops at " + format_duration(conductor_.now() - kSimStart) +
                ": a dependency is never met");
  }
  end_ = last == SimTime::max() ? conductor_.now() : last;
  if (!loaded_.config.duration && scenario_.training) counters_.add(kIterationsNotReached);
  return {};
}

// In a window GPUs run beside each other: of several faults the earliest counts.
std::optional<Error> Simulation::policy_fault() const {
  const GpuNode* first = nullptr;
  for (const auto& node : nodes_) {
    if (!node->driver || !node->driver->session().fault()) continue;
    if (first == nullptr || node->engine->now() < first->engine->now()) first = node.get();
  }
  if (first == nullptr) return std::nullopt;
  return *first->driver->session().fault();
}

void Simulation::on_iteration_ended(std::uint32_t rank_index) {
  if (!loaded_.config.iterations) return;
  const auto& times = nodes_[rank_index]->monitors.front()->iterations;
  if (times.size() != *loaded_.config.iterations) return;
  BUBBLESIM_CHECK(nodes_[rank_index]->engine->in_order(), "a rank ends earlier than it can");
  if (++ranks_at_goal_ == nodes_.size()) nodes_[rank_index]->engine->stop();
}

}  // namespace bubblesim::run
