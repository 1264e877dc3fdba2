#include "sim/run/simulation.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "sim/base/units.hpp"
#include "sim/run/unmet_config.hpp"
#include "sim/workload/arrivals/arrival_process.hpp"

namespace bubblesim::run {
namespace {

bool computes_prompts_apart(const LoadedRun& loaded, std::uint32_t filler) {
  return loaded.server(filler) != nullptr && loaded.server(filler)->prefill;
}

std::uint32_t gpus_of_server(const LoadedRun& loaded, std::uint32_t filler) {
  return loaded.server(filler) == nullptr ? 1 : loaded.server(filler)->gpus();
}

// A timeline, the queue of fill jobs, prompts that go to other GPUs, servers over several and a
// power budget over a node follow all of them, event by event.
engine::ConductorSetup conductor_setup(const LoadedRun& loaded, const RunScenario& scenario) {
  engine::ConductorSetup setup = scenario.gpus;
  const auto& fillers = loaded.config.fillers;
  const bool jobs = std::ranges::any_of(fillers, [](const FillerConfig& filler) {
    return filler.mode == observe::FillerMode::kJobs;
  });
  const bool apart = std::ranges::any_of(scenario.fillers, [&](std::uint32_t filler) {
    return computes_prompts_apart(loaded, filler) || gpus_of_server(loaded, filler) > 1;
  });
  const bool budget = loaded.config.power && loaded.config.power->node_cap_w;
  if (jobs || apart || budget || scenario.timeline != nullptr) {
    setup.windows = engine::Windows::kNever;
  }
  return setup;
}

/// Tells the server's instances of each other, and of whether it starts.
void settle(ServerGpus& server, std::size_t gpus_of_member) {
  const auto refused = std::ranges::find(server.instances, false, &FillerInstance::admitted);
  for (std::size_t i = 0; i < server.instances.size(); ++i) {
    FillerInstance* const instance = server.instances[i];
    instance->group = &server;
    instance->member = static_cast<std::uint32_t>(i / gpus_of_member);
    if (refused == server.instances.end() || !instance->admitted) continue;
    instance->admitted = false;
    instance->reason = "its server was refused on GPU " + std::to_string((*refused)->gpu.value);
  }
}

}  // namespace

Simulation::Simulation(const LoadedRun& loaded, RunScenario scenario)
    : loaded_(loaded),
      scenario_(std::move(scenario)),
      machine_(loaded.device, &*loaded.training, conductor_setup(loaded, scenario_)),
      warmup_(end_of_warmup()),
      goal_(loaded.config.iterations, loaded.training->ranks.size()),
      places_(loaded, scenario_),
      end_of_warmup_(machine_.engine(), *this, &Simulation::end_warmup, engine::Phase::kObserve) {
  for (const program::Program& rank : loaded.training->ranks) {
    places_on_cluster_.push_back(rank.rank);
  }
  if (scenario_.timeline != nullptr) scenario_.timeline->settle(warmup_);
  if (!loaded.topology) return;
  shared_links_.emplace(SharedLinks{**loaded.topology, *machine_.network(), places_on_cluster_});
}

SimTime Simulation::end_of_warmup() const {
  const Duration given = loaded_.config.warmup;
  return kSimStart + (loaded_.config.precision ? std::max(given, settling_of(scenario_)) : given);
}

void Simulation::end_warmup(SimTime /*now*/) {
  for (const auto& node : nodes_) node->end_warmup();
}

std::uint64_t Simulation::gate_ns(ClientId client) const {
  if (scenario_.policy == nullptr) return 0;
  const auto& gate = loaded_.config.gate;
  const policy::GateTerms terms = policy::gate_terms(
      *scenario_.policy, *scenario_.parameters, client,
      policy::gate_costs(*scenario_.policy, *scenario_.parameters, gate ? &*gate : nullptr));
  return static_cast<std::uint64_t>((terms.asks ? terms.ask : terms.tell).count());
}

Result<observe::PolicyResult> Simulation::run() {
  BUBBLESIM_RETURN_IF_ERROR(build());
  BUBBLESIM_RETURN_IF_ERROR(build_arrivals());
  machine_.engine().schedule(end_of_warmup_.entity, warmup_);
  BUBBLESIM_RETURN_IF_ERROR(advance());
  if (end_ <= warmup_) {  // of a duration its reader checks that
    return fail("\"warmup\" leaves nothing to measure: found " +
                format_duration(warmup_ - kSimStart) + ", and \"iterations\" end after " +
                format_duration(end_ - kSimStart));
  }
  for (const auto& router : routers_) counters_.merge(router->counters());
  std::optional<observe::RunPrecision> precision;
  if (watch_) {
    precision = watch_->found();
    counters_.add(kPrecisionNotReached, watch_->unknown());
  }
  const Duration missing = settling_of(scenario_) - (warmup_ - kSimStart);
  const auto missing_ms = std::chrono::ceil<std::chrono::milliseconds>(missing).count();
  counters_.add(kNotSettled, static_cast<std::uint64_t>(std::max<std::int64_t>(0, missing_ms)));
  counters_.add(kGateCost, gate_ns(ClientId{1}));
  counters_.add(kTrainingGateCost, gate_ns(ClientId{0}));
  observe::PolicyResult result =
      collect_results({{loaded_, nodes_, warmup_, end_}, scenario_, places_, queue_.get(),
                       machine_.conductor().events(), counters_, std::move(precision)});
  collect_usage(result);
  note_power(result);
  return result;
}

Result<void> Simulation::build() {
  BUBBLESIM_RETURN_IF_ERROR(places_.decide());
  BUBBLESIM_RETURN_IF_ERROR(read_requests());
  const auto gpus = static_cast<std::uint32_t>(loaded_.training->ranks.size());
  for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) {
    BUBBLESIM_RETURN_IF_ERROR(build_node(GpuId{gpu}));
  }
  group_servers();
  for (const auto& node : nodes_) add_programs(*node);
  return build_queue();
}

Result<void> Simulation::read_requests() {
  requests_.resize(loaded_.config.fillers.size());
  arrivals_read_.resize(loaded_.config.fillers.size());
  for (const std::uint32_t filler : scenario_.fillers) {
    const synth::ServerPlan* plan = loaded_.server(filler);
    if (plan == nullptr) continue;
    BUBBLESIM_ASSIGN_OR_RETURN(
        RequestsRead read, server_requests(loaded_.config.fillers[filler], plan->scheduler));
    requests_[filler] = std::move(read.lengths);
    arrivals_read_[filler] = std::move(read.arrivals);
    counters_.merge(read.counters);
  }
  return {};
}

Result<void> Simulation::build_node(GpuId gpu) {
  GpuMeters meters{.gpu = gpu, .warmup = warmup_, .timeline = scenario_.timeline};
  if (records_usage()) meters.usage.emplace();
  if (loaded_.config.power) {
    meters.power.emplace(loaded_.device, *loaded_.config.power, warmup_);
  }
  GpuNode& node = *nodes_.emplace_back(std::make_unique<GpuNode>(std::move(meters)));
  for (const policy::JobInfo& job : places_.placed_on(gpu)) {
    node.add_instance(job.kind, places_.mode_of(job.kind));
  }
  schedule::Decider decider{.policy = scenario_.policy, .parameters = scenario_.parameters};
  if (loaded_.config.gate) decider.gate = &*loaded_.config.gate;
  if (scenario_.bubbles != nullptr) decider.bubbles = &(*scenario_.bubbles)[gpu.index()];
  share_power(node);
  BUBBLESIM_RETURN_IF_ERROR(node.open(machine_, decider, client_infos(gpu)));
  for (const auto& instance : node.instances()) {
    instance->keeps_course = loaded_.config.precision.has_value();
  }
  return {};
}

void Simulation::share_power(GpuNode& node) {
  if (!loaded_.config.power || !loaded_.config.power->node_cap_w) return;
  const network::Topology& topology = **loaded_.topology;
  const std::uint32_t server_node = topology.node_of(places_on_cluster_[node.id().index()]);
  const auto found =
      node_power_.try_emplace(server_node, loaded_.device, *loaded_.config.power, warmup_).first;
  found->second.add(*node.power());
}

// Servers over several GPUs: of a filler's GPUs, in order, each so many together. One that a policy
// refuses on a GPU starts on none.
void Simulation::group_servers() {
  for (const std::uint32_t filler : scenario_.fillers) {
    const std::size_t gpus = gpus_of_server(loaded_, filler);
    if (gpus == 1) continue;
    const std::size_t gpus_of_member = gpus / loaded_.server(filler)->members;
    const std::vector<FillerInstance*> instances = instances_of(nodes_, filler);
    for (auto first = instances.begin(); first != instances.end(); first += gpus) {
      servers_.push_back(std::make_unique<ServerGpus>(
          ServerGpus{{first, first + gpus}, *machine_.network(), {}, nullptr}));
      ServerGpus& server = *servers_.back();
      const std::span all(server.instances);
      for (std::size_t i = 0; gpus_of_member > 1 && i < gpus; i += gpus_of_member) {
        server.tensor.push_back(exchanges_among(all.subspan(i, gpus_of_member)));
      }
      if (gpus_of_member < gpus) server.experts = exchanges_among(all);
      settle(server, gpus_of_member);
    }
  }
}

std::unique_ptr<synth::ServerExchanges> Simulation::exchanges_among(
    std::span<FillerInstance* const> instances) {
  network::Group group;
  for (const FillerInstance* instance : instances) {
    group.listed.push_back(places_on_cluster_[instance->gpu.index()]);
  }
  return std::make_unique<synth::ServerExchanges>(**loaded_.topology, std::move(group),
                                                  *machine_.network());
}

void Simulation::add_programs(GpuNode& node) {
  const program::Program& rank = loaded_.training->ranks[node.id().index()];
  node.add_training(scenario_.training ? &rank : nullptr, training_setup(rank), goal_);
  const bool alone = !scenario_.training && scenario_.policy == nullptr;
  node.add_services(loaded_, requests_, alone ? &next_read_ : nullptr);
}

// Training first, whether it runs or not.
std::vector<policy::ClientInfo> Simulation::client_infos(GpuId gpu) const {
  std::vector<policy::ClientInfo> clients{rank_info(loaded_, gpu.index())};
  if (!scenario_.training) clients.front().memory = {};
  const bool told = scenario_.profiles != nullptr && scenario_.policy != nullptr &&
                    scenario_.policy->needs.kernel_durations;
  for (const policy::JobInfo& job : places_.placed_on(gpu)) {
    policy::ClientInfo info = filler_info(loaded_.config.fillers[job.kind]);
    info.id = ClientId{static_cast<std::uint32_t>(clients.size())};
    info.queued = places_.mode_of(job.kind) == observe::FillerMode::kJobs;
    if (told) info.pass = (*scenario_.profiles)[job.kind].pass;
    clients.push_back(std::move(info));
  }
  return clients;
}

workload::RunSetup Simulation::training_setup(const program::Program& rank) {
  workload::RunSetup setup;
  setup.repeat = workload::Repeat::kLoop;
  setup.perturbation = perturbation_of(loaded_.config.training, rank.rank);
  setup.perturbation.jitter_cv = loaded_.config.training.jitter_cv;
  setup.perturbation.seed = loaded_.config.seed;
  setup.rendezvous = machine_.network();
  return setup;
}

Result<void> Simulation::build_queue() {
  bool jobs = false;
  for (const auto& node : nodes_) {
    if (node->gpu().decided().sharing.unified_memory) places_.cluster().allow_oversubscription();
    for (std::size_t i = 0; i < node->instances().size(); ++i) {
      const bool worker = node->instances()[i]->mode == observe::FillerMode::kJobs;
      jobs = jobs || worker;
      if (!worker && !node->instances()[i]->admitted) places_.refuse(node->id(), i);
    }
  }
  BUBBLESIM_RETURN_IF_ERROR(places_.cluster().check_memory(Duration{}));
  if (!jobs) return {};
  static const std::vector<FillerProfile> kNotMeasured;
  queue_ = std::make_unique<FillQueue>(
      machine_.engine(), loaded_.config,
      scenario_.profiles != nullptr ? *scenario_.profiles : kNotMeasured, places_.cluster(),
      places_.next_job(), scenario_.timeline);
  for (const auto& node : nodes_) {
    for (const auto& instance : node->instances()) {
      const bool worker = instance->mode == observe::FillerMode::kJobs;
      if (!worker || !instance->admitted) continue;
      queue_->add_worker(*instance);
      places_.cluster().set_worker_resident(
          node->id(), instance->filler, node->gpu().decided().resident[instance->client.index()]);
    }
  }
  return {};
}

Result<void> Simulation::build_arrivals() {
  for (const std::uint32_t filler : scenario_.fillers) {
    const FillerConfig& config = loaded_.config.fillers[filler];
    if (config.mode != observe::FillerMode::kOnline) continue;
    std::vector<FillerInstance*> instances = instances_of(nodes_, filler);
    if (instances.empty()) continue;
    std::erase_if(instances, joins_server);
    if (computes_prompts_apart(loaded_, filler)) {
      BUBBLESIM_RETURN_IF_ERROR(split_prefill(*loaded_.server(filler), config.name, instances));
    }
    BUBBLESIM_ASSIGN_OR_RETURN(auto process, arrivals_of(filler));
    routers_.push_back(std::make_unique<ArrivalRouter>(machine_.engine(), std::move(process),
                                                       std::move(instances), warmup_));
  }
  return {};
}

Result<std::unique_ptr<workload::ArrivalProcess>> Simulation::arrivals_of(std::uint32_t filler) {
  const FillerConfig& config = loaded_.config.fillers[filler];
  if (auto& read = arrivals_read_[filler]) {
    return workload::replay_arrivals(*std::move(read),
                                     std::get<workload::FileArrivals>(*config.arrivals).speedup);
  }
  return workload::make_arrivals(
      *config.arrivals, RandomStream(loaded_.config.seed, "arrivals of " + config.name));
}

// `instances` becomes those that requests arrive at. Without a GPU to decode on, none is taken.
Result<void> Simulation::split_prefill(const synth::ServerPlan& plan, const std::string& name,
                                       std::vector<FillerInstance*>& instances) {
  const std::size_t first = plan.prefill->gpus;
  if (first >= instances.size()) {
    return fail("filler \"" + name + "\": found \"prefill\" on " + std::to_string(first) +
                " of its " + std::to_string(instances.size()) +
                " GPUs; expected fewer, so that there are some to decode on");
  }
  std::vector<FillerInstance*> decoders(instances.begin() + static_cast<std::ptrdiff_t>(first),
                                        instances.end());
  std::erase_if(decoders, [](const FillerInstance* instance) { return !instance->admitted; });
  instances.resize(first);
  if (decoders.empty()) {
    for (FillerInstance* instance : instances) instance->admitted = false;
    return {};
  }
  DecodePool& pool = *decode_pools_.emplace_back(std::make_unique<DecodePool>(decoders));
  for (FillerInstance* instance : instances) {
    if (!instance->admitted) continue;
    const bool own = plan.prefill->link.value > 0;
    kv_links_.push_back(std::make_unique<KvLink>(machine_.engine(), plan, instance->gpu, pool,
                                                 own ? nullptr : &*shared_links_));
    engine_of(*instance).compute_prompts_for(*kv_links_.back());
  }
  return {};
}

void Simulation::start() {
  for (const auto& node : nodes_) node->start();
  for (const auto& node : nodes_) {
    for (const auto& instance : node->instances()) {
      if (instance->service && instance->mode == observe::FillerMode::kOffline) {
        instance->service->start_offline(kSimStart);
      }
    }
  }
  for (const auto& router : routers_) router->start();
  if (queue_) queue_->start();
}

Result<void> Simulation::advance() {
  start();
  const Duration limit = loaded_.config.duration.value_or(scenario_.limit);
  SimTime last = limit == Duration::max() ? SimTime::max() : kSimStart + limit;
  if (loaded_.config.precision) {
    BUBBLESIM_ASSIGN_OR_RETURN(last, run_until_known());
  } else {
    BUBBLESIM_RETURN_IF_ERROR(run_until(last));
  }
  note_passed(scenario_.expected);
  if (auto fault = policy_fault()) return tl::unexpected<Error>(*std::move(fault));
  if (queue_ && queue_->fault()) return tl::unexpected<Error>(*queue_->fault());
  if (machine_.conductor().stopped()) {
    end_ = machine_.conductor().now();
    return {};
  }
  const bool idle = !machine_.conductor().next_due().has_value();
  const bool held = std::ranges::any_of(nodes_, [](const auto& node) {
    return node->gpu().session() != nullptr && node->gpu().session()->still_held() > 0;
  });
  if (idle && !held && scenario_.training) {
    return fail("the training job stops at " +
                format_duration(machine_.conductor().now() - kSimStart) +
                ": a dependency is never met");
  }
  end_ = last == SimTime::max() ? machine_.conductor().now() : last;
  if (!loaded_.config.duration && scenario_.training) counters_.add(kIterationsNotReached);
  return {};
}

// In a window GPUs run beside each other: of several faults the earliest counts.
std::optional<Error> Simulation::policy_fault() const {
  const schedule::SharedGpu* first = nullptr;
  for (const auto& node : nodes_) {
    if (!node->gpu().fault()) continue;
    if (first == nullptr || node->gpu().engine().now() < first->engine().now()) {
      first = &node->gpu();
    }
  }
  return first == nullptr ? std::nullopt : first->fault();
}

// To the look at which all is known, or the last one; returns when that is.
Result<SimTime> Simulation::run_until_known() {
  watch_.emplace(loaded_, scenario_, nodes_, warmup_);
  while (true) {
    const SimTime look = watch_->next_look();
    BUBBLESIM_RETURN_IF_ERROR(run_until(look));
    const bool ended = machine_.conductor().stopped() || !machine_.conductor().next_due();
    if (watch_->look(look) || look == watch_->last() || ended) return look;
  }
}

// Time passes in stretches; at their ends a watcher may look at results. No event runs for that,
// and the GPUs run beside each other as they do without: only no window of theirs goes on beyond a
// stretch, which changes no result.
Result<void> Simulation::run_until(SimTime last) {
  next_read_ = last;
  if (!records_usage()) return run_stretch(last);
  const observe::UsageGrid grid(scenario_.usage.interval, warmup_);
  if (!next_usage_) next_usage_ = grid.next_boundary(kSimStart);
  for (; usage_intervals_ < scenario_.usage.most && *next_usage_ < last; ++usage_intervals_) {
    if (!machine_.conductor().next_due()) return {};
    BUBBLESIM_RETURN_IF_ERROR(run_stretch(*next_usage_));
    if (machine_.conductor().stopped()) return {};
    close_usage(*next_usage_);
    next_usage_ = grid.next_boundary(*next_usage_);
  }
  return run_stretch(last);
}

// The stop is looked at between stretches of simulated time, which change nothing else; how far it
// is, is told there.
Result<void> Simulation::run_stretch(SimTime last) {
  constexpr Duration kStretch = std::chrono::milliseconds{100};
  while (scenario_.stop != nullptr || scenario_.passed_ns != nullptr) {
    if (scenario_.stop != nullptr && *scenario_.stop) {
      return fail("stopped at " + format_duration(machine_.conductor().now() - kSimStart));
    }
    const std::optional<SimTime> next = machine_.conductor().next_due();
    if (!next || *next > last || last - *next <= kStretch) break;
    machine_.conductor().run_until(*next + kStretch);
    if (machine_.conductor().stopped()) return {};
    note_passed(machine_.conductor().now() - kSimStart);
  }
  machine_.conductor().run_until(last);
  return {};
}

void Simulation::note_passed(Duration until) {
  if (scenario_.passed_ns == nullptr) return;
  until = std::min(until, scenario_.expected);
  if (until <= passed_) return;
  *scenario_.passed_ns += to_ns(until - passed_);
  passed_ = until;
}

void Simulation::close_usage(SimTime now) {
  for (const auto& node : nodes_) {
    node->close_usage(now, places_.cluster().workers_now(node->id()));
  }
}

void Simulation::note_power(observe::PolicyResult& result) const {
  for (const auto& [node, power] : node_power_) note_unmet_budget(loaded_, node, power, result);
}

// The last interval ends with the run, if the limit leaves room for it.
void Simulation::collect_usage(observe::PolicyResult& result) {
  if (!records_usage() || nodes_.empty()) return;
  const observe::UsageGrid grid(scenario_.usage.interval, warmup_);
  const std::uint64_t all = grid.count(end_);
  if (all <= scenario_.usage.most) close_usage(end_);
  for (const auto& node : nodes_) {
    result.usage.push_back({node->id(), loaded_.device.sm_count, node->take_usage()});
  }
  const std::uint64_t kept = result.usage.front().intervals.size();
  if (all <= kept) return;
  result.counters.add(observe::kUsageIntervalsDropped, (all - kept) * nodes_.size());
}

}  // namespace bubblesim::run
