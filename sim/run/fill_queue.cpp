#include "sim/run/fill_queue.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/check.hpp"
#include "sim/base/units.hpp"

namespace bubblesim::run {

ClusterPlacement::ClusterPlacement(std::string policy, std::unique_ptr<policy::Placer> placer,
                                   std::vector<policy::GpuState> gpus)
    : policy_(std::move(policy)), placer_(std::move(placer)), gpus_(std::move(gpus)),
      booked_(gpus_.size()), workers_now_(gpus_.size()), workers_most_(gpus_.size()) {
  for (const policy::GpuState& gpu : gpus_) training_.push_back(gpu.used);
}

void ClusterPlacement::add_fixed(const policy::JobInfo& job, GpuId gpu) { book(job, gpu, false); }

void ClusterPlacement::book(const policy::JobInfo& job, GpuId gpu, bool placed) {
  booked_[gpu.index()].push_back({job, placed});
  update(gpu);
}

void ClusterPlacement::remove(const policy::JobInfo& job, GpuId gpu) {
  auto& booked = booked_[gpu.index()];
  booked.erase(std::ranges::find_if(
      booked, [&job](const Booked& entry) { return entry.job.id == job.id; }));
  update(gpu);
}

// From nothing each time: sums of shares do not depend on what came and went.
void ClusterPlacement::update(GpuId gpu) {
  policy::GpuState& state = gpus_[gpu.index()];
  state.used = training_[gpu.index()];
  state.request = state.limit = 0;
  state.jobs = 0;
  Bytes workers;
  std::set<std::uint32_t> counted;
  for (const Booked& booked : booked_[gpu.index()]) {
    state.jobs += booked.placed ? 1U : 0U;
    const bool worker = worker_kinds_.contains(booked.job.kind);
    if (worker && !counted.insert(booked.job.kind).second) continue;
    state.used = state.used + booked.job.memory;
    state.request += booked.job.request;
    state.limit += booked.job.limit;
    if (!worker) continue;
    const auto resident = worker_resident_.find({gpu, booked.job.kind});
    workers = workers + (resident == worker_resident_.end() ? booked.job.memory : resident->second);
  }
  workers_now_[gpu.index()] = workers;
  workers_most_[gpu.index()] = std::max(workers_most_[gpu.index()], workers);
}

bool ClusterPlacement::fits(const policy::JobInfo& job, GpuId gpu) const {
  const policy::GpuState& state = gpus_[gpu.index()];
  return unified_ || state.memory == Bytes{} || job.memory == Bytes{} ||
         state.used + job.memory <= state.memory;
}

std::vector<policy::Placement> ClusterPlacement::first_come(
    std::span<const policy::JobInfo> waiting, std::span<const std::uint32_t> allowed) const {
  std::vector<policy::Placement> placements;
  std::set<std::uint32_t> free;
  for (const std::uint32_t gpu : allowed) {
    if (gpus_[gpu].jobs == 0) free.insert(gpu);
  }
  for (const policy::JobInfo& job : waiting) {
    const auto gpu = std::ranges::find_if(
        free, [&](std::uint32_t candidate) { return fits(job, GpuId{candidate}); });
    if (gpu == free.end()) continue;
    placements.push_back({job.id, GpuId{*gpu}});
    free.erase(gpu);
  }
  return placements;
}

Result<std::vector<policy::Placement>> ClusterPlacement::place(
    std::span<const policy::JobInfo> waiting, std::span<const std::uint32_t> allowed,
    policy::Instant now) {
  std::vector<policy::Placement> placements;
  if (placer_ != nullptr) {
    std::vector<policy::GpuState> seen;
    for (const std::uint32_t gpu : allowed) seen.push_back(gpus_[gpu]);
    placements = placer_->place(waiting, seen, now);
  } else {
    placements = first_come(waiting, allowed);
  }
  BUBBLESIM_RETURN_IF_ERROR(check(placements, waiting, allowed, now));
  for (const policy::Placement& placement : placements) {
    book(*std::ranges::find(waiting, placement.job, &policy::JobInfo::id), placement.gpu, true);
  }
  return placements;
}

Result<void> ClusterPlacement::check(std::span<const policy::Placement> placements,
                                     std::span<const policy::JobInfo> waiting,
                                     std::span<const std::uint32_t> allowed,
                                     policy::Instant now) const {
  std::set<std::uint32_t> placed;
  for (const policy::Placement& placement : placements) {
    const std::string name = "job " + std::to_string(placement.job);
    if (std::ranges::find(waiting, placement.job, &policy::JobInfo::id) == waiting.end()) {
      return illegal(now, name + " is placed, which does not wait");
    }
    if (std::ranges::find(allowed, placement.gpu.value) == allowed.end()) {
      return illegal(now, name + " is placed on GPU " + std::to_string(placement.gpu.value) +
                              ", which is none of those it may use");
    }
    if (!placed.insert(placement.job).second) return illegal(now, name + " is placed twice");
  }
  return {};
}

Result<void> ClusterPlacement::check_memory(policy::Instant now) const {
  if (unified_ || placer_ == nullptr) return {};
  for (const policy::GpuState& gpu : gpus_) {
    if (gpu.jobs == 0 || gpu.memory == Bytes{} || gpu.used <= gpu.memory) continue;
    return illegal(now, format_bytes(gpu.used) + " on GPU " + std::to_string(gpu.id.value) +
                            ", which has " + format_bytes(gpu.memory));
  }
  return {};
}

void ClusterPlacement::add_counts(CounterSet& counters) const {
  if (placer_ != nullptr) placer_->add_counts(counters);
}

tl::unexpected<Error> ClusterPlacement::illegal(policy::Instant now,
                                                const std::string& reason) const {
  return fail({}, "policy " + policy_,
              "illegal placement at " + format_duration(now) + ": " + reason);
}

namespace {

/// Whether the job had missed its deadline, had met it, or neither, when the run ended.
void count_deadline(const observe::FillJob& job, Duration end, observe::FillJobs& jobs) {
  if (!job.deadline) return;
  if (job.ended) {
    ++(*job.ended <= *job.deadline ? jobs.deadlines_met : jobs.deadlines_missed);
  } else {
    ++(end > *job.deadline ? jobs.deadlines_missed : jobs.deadlines_open);
  }
}

}  // namespace

Duration work_of(std::uint64_t requests, const FillerConfig& filler,
                 const FillerProfile& profile) {
  if (profile.pass <= Duration{}) {
    if (profile.requests_per_s <= 0) return {};
    return Duration{std::llround(static_cast<double>(requests) / profile.requests_per_s * 1e9)};
  }
  const auto pass_for = [&](std::uint64_t served) {
    if (served == 0) return 0.0;
    return static_cast<double>(profile.pass.count()) * filler.batching.pass_factor(served);
  };
  const std::uint32_t batch = filler.batching.max_batch;
  const double full = static_cast<double>(requests / batch) * pass_for(batch);
  return Duration{std::llround(full + pass_for(requests % batch))};
}

policy::JobInfo job_of(std::uint32_t kind, const FillerConfig& filler) {
  policy::JobInfo job;
  job.kind = kind;
  job.name = filler.name;
  job.role = role_of(filler);
  job.memory = filler.memory.value_or(Bytes{});
  job.memory_known = filler.memory.has_value();
  job.request = filler.sm_request;
  job.limit = filler.sm_limit;
  return job;
}

FillQueue::FillQueue(engine::Engine& engine, const RunConfig& config,
                     const std::vector<FillerProfile>& profiles, ClusterPlacement& placement,
                     std::uint32_t first_id, observe::TimelineRecorder* timeline)
    : engine_(engine), placement_(placement), first_id_(first_id), timeline_(timeline),
      entity_(engine.add_entity(*this, engine::Phase::kArrival)) {
  for (std::uint32_t filler = 0; filler < config.fillers.size(); ++filler) {
    const FillerConfig& filler_config = config.fillers[filler];
    for (const FillJobConfig& fill_job : filler_config.jobs) {
      Job job{job_of(filler, filler_config), {}};
      job.info.submitted = job.state.submitted = fill_job.submitted;
      if (fill_job.deadline) job.info.deadline = fill_job.submitted + *fill_job.deadline;
      job.state.deadline = job.info.deadline;
      job.state.requests = fill_job.requests;
      if (filler < profiles.size()) {
        job.info.work = work_of(fill_job.requests, filler_config, profiles[filler]);
      }
      jobs_.push_back(std::move(job));
    }
  }
  std::ranges::stable_sort(jobs_, {}, [](const Job& job) { return job.state.submitted; });
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    jobs_[i].info.id = first_id_ + static_cast<std::uint32_t>(i);
  }
}

void FillQueue::add_worker(FillerInstance& worker) {
  gpus_[worker.filler].push_back(worker.gpu.value);
  workers_.push_back({&worker, {}, 0});
  worker.work = this;
}

void FillQueue::start() {
  if (!jobs_.empty()) engine_.schedule(entity_, kSimStart + jobs_.front().state.submitted);
}

void FillQueue::on_event(SimTime now) {
  submit(now);
  for (Worker& worker : workers_) start_next(worker, now);
  place(now);
  if (next_ < jobs_.size() && !fault_) {
    engine_.schedule(entity_, kSimStart + jobs_[next_].state.submitted);
  }
}

void FillQueue::submit(SimTime now) {
  for (; next_ < jobs_.size() && kSimStart + jobs_[next_].state.submitted <= now; ++next_) {
    waiting_.push_back(next_);
  }
}

void FillQueue::place(SimTime now) {
  std::set<std::vector<std::uint32_t>> asked;
  for (const std::size_t index : std::vector<std::size_t>(waiting_)) {
    const auto gpus = gpus_.find(jobs_[index].info.kind);
    if (gpus == gpus_.end() || !asked.insert(gpus->second).second) continue;
    if (!place_group(gpus->second, now)) return;
  }
}

bool FillQueue::place_group(const std::vector<std::uint32_t>& gpus, SimTime now) {
  std::vector<policy::JobInfo> infos;
  for (const std::size_t index : waiting_) {
    const auto group = gpus_.find(jobs_[index].info.kind);
    if (group != gpus_.end() && group->second == gpus) infos.push_back(jobs_[index].info);
  }
  const auto placements = placement_.place(infos, gpus, now - kSimStart);
  auto checked = placements ? placement_.check_memory(now - kSimStart)
                            : Result<void>(tl::unexpected<Error>(placements.error()));
  if (!checked) {
    fault_ = checked.error();
    engine_.stop();
    return false;
  }
  for (const policy::Placement& placement : *placements) {
    Job& placed = job(placement.job);
    placed.state.gpu = placement.gpu;
    placed.state.placed = now - kSimStart;
    std::erase(waiting_, placement.job - first_id_);
    Worker& worker = worker_of(placed.info.kind, placement.gpu);
    worker.queue.push_back(placement.job - first_id_);
    start_next(worker, now);
  }
  return true;
}

void FillQueue::start_next(Worker& worker, SimTime now) {
  if (worker.queue.empty()) return;
  Job& next = jobs_[worker.queue.front()];
  if (next.state.started) return;
  next.state.started = now - kSimStart;
  worker.instance->service->arrive_together(worker.next_request, next.state.requests, now);
  worker.next_request += next.state.requests;
}

void FillQueue::on_work_done(FillerInstance& instance, std::uint64_t requests, SimTime now) {
  Worker& worker = worker_of(instance.filler, instance.gpu);
  BUBBLESIM_CHECK(requests == 0 || !worker.queue.empty(), "a fill job's request without a job");
  if (requests == 0) return;
  observe::FillJob& state = jobs_[worker.queue.front()].state;
  state.requests_completed += requests;
  if (state.requests_completed == state.requests) end_job(worker, now);
}

// What follows waits for the event of this instant: all that end now have ended then.
void FillQueue::end_job(Worker& worker, SimTime now) {
  Job& ended = jobs_[worker.queue.front()];
  ended.state.ended = now - kSimStart;
  worker.queue.pop_front();
  placement_.remove(ended.info, *ended.state.gpu);
  if (timeline_ != nullptr) {
    timeline_->add({*ended.state.gpu, worker.instance->client, timeline_->intern("fill job"),
                    observe::SliceKind::kPhase, kSimStart + *ended.state.started, now});
  }
  engine_.schedule(entity_, now);
}

FillQueue::Worker& FillQueue::worker_of(std::uint32_t filler, GpuId gpu) {
  const auto found = std::ranges::find_if(workers_, [&](const Worker& worker) {
    return worker.instance->filler == filler && worker.instance->gpu == gpu;
  });
  return *found;
}

observe::FillJobs FillQueue::results(std::uint32_t filler, SimTime end) const {
  observe::FillJobs jobs;
  Duration last{};
  Duration total{};
  for (const Job& job : jobs_) {
    if (job.info.kind != filler) continue;
    const observe::FillJob& state = job.state;
    jobs.list.push_back(state);
    if (kSimStart + state.submitted >= end) continue;
    ++jobs.submitted;
    ++(state.ended ? jobs.finished : state.gpu ? jobs.running : jobs.waiting);
    count_deadline(state, end - kSimStart, jobs);
    if (!state.ended) continue;
    last = std::max(last, *state.ended);
    total += *state.ended - state.submitted;
  }
  if (jobs.finished > 0) {
    jobs.mean_completion = total / static_cast<std::int64_t>(jobs.finished);
    if (jobs.finished == jobs.list.size()) jobs.makespan = last - jobs.list.front().submitted;
  }
  return jobs;
}

}  // namespace bubblesim::run
