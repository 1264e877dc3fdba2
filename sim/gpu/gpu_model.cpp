#include "sim/gpu/gpu_model.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace bubblesim::gpu {

Gpu::Model::Model(engine::Engine& engine, Gpu& handler, const hardware::GpuSpec& spec,
                  const SharingSetup& sharing)
    : engine_(engine),
      mode_(sharing.mode),
      others_share_(sharing.others_share),
      transfers_(std::max(spec.copy_engines, 1U)),
      entity_(engine.add_entity(handler, engine::Phase::kCompletion)) {
  BUBBLESIM_CHECK(spec.sm_count > 0, "a GPU has SMs");
  shared_.spec = spec;
  shared_.processes = sharing.mode == program::SharingMode::kMps;
  shared_.even = shared_.processes && spec.client_order == hardware::ClientOrder::kEven;
  if (sharing.mode == program::SharingMode::kTimeSliced) {
    BUBBLESIM_CHECK(sharing.slice > Duration::zero(), "a time slice takes time");
    BUBBLESIM_CHECK(sharing.switch_cost >= Duration::zero(), "a switch cost is not negative");
    const SwitchCost cost{sharing.switch_cost, sharing.empty_switch.value_or(sharing.switch_cost)};
    ContextState state{
        [this](std::size_t context) {
          return 1 - contexts_[context].free_sms() / shared_.spec.sm_count;
        },
        [this](std::size_t context) {
          return std::ranges::any_of(clients_of(context), [](const ClientState& client) {
            return client.listener->has_more_launched();
          });
        }};
    slicer_.emplace(sharing.slice, cost, spec.lone_slice, std::move(state));
  }
}

bool Gpu::Model::bound() const {
  return mode_ == program::SharingMode::kIdleOnly || mode_ == program::SharingMode::kLeftover;
}

bool Gpu::Model::lives(std::size_t context) const {
  return std::find(live_.begin(), live_.end(), context) != live_.end();
}

// Adds the context of a client that was just added, if it gets one of its own.
void Gpu::Model::add_context(const ClientSetup& setup) {
  const std::size_t most = one_context() ? 1 : bound() || others_share_ ? 2 : kAllSms;
  if (contexts_.size() >= most) return;
  const SimTime now = engine_.now();
  contexts_.emplace_back(shared_, now);
  if (slicer_) {
    contexts_.back().freeze(now);
    slicer_->add_context();
    announced_.push_back(0);
    if (setup.slice > Duration::zero()) slicer_->set_slice(contexts_.size() - 1, setup.slice);
    return;
  }
  live_.push_back(contexts_.size() - 1);
  if (mode_ == program::SharingMode::kPartitioned) contexts_.back().set_bandwidth(setup.bandwidth);
  if (bound() && contexts_.size() == 1) contexts_.back().watch();
}

// Clients with a cap get SMs of their own while there are enough, from the last SM downwards, since
// other clients begin with the first. A client that finds too few left gets these and some of the
// SMs above them; the next client begins with the last SM again. SMs that no client may use are
// dark.
void Gpu::Model::note_caps() {
  const std::uint32_t all = shared_.spec.sm_count;
  double lit = 0;
  bool capped = false;
  std::uint32_t end = all;
  for (ClientState& client : shared_.clients) {
    const std::uint32_t sms = std::min(client.setup.sm_cap, all);
    lit += sms;
    if (sms == all) {
      client.sms = {0, all};
      continue;
    }
    capped = true;
    if (end == 0) end = all;
    end -= std::min(sms, end);
    client.sms = {end, end + sms};
  }
  const hardware::PartSpec& part = shared_.spec.part;
  shared_.confined = capped && (part.dram_saturating_sms > 0 || part.dark_clock_gain > 1);
  shared_.lit = std::min(1.0, lit / all);
}

ClientId Gpu::Model::add_client(const ClientSetup& setup, WorkListener& listener) {
  BUBBLESIM_CHECK(arrivals_ == 0, "clients come before the first work");
  BUBBLESIM_CHECK(setup.sm_cap >= 1, "an SM cap leaves at least one SM");
  const ClientId id{static_cast<std::uint32_t>(shared_.clients.size())};
  const bool told = mode_ == program::SharingMode::kMps ||
                    mode_ == program::SharingMode::kPartitioned;
  const std::uint32_t all = shared_.spec.sm_count;
  shared_.clients.push_back(
      {setup, &listener, std::nullopt, {}, told ? std::min(setup.sm_cap, all) : all});
  note_caps();
  shared_.usage.add_client();
  add_context(setup);
  for (Context& context : contexts_) context.set_clients(shared_.clients.size());
  return id;
}

std::span<const ClientState> Gpu::Model::clients_of(std::size_t context) const {
  const std::span<const ClientState> from = std::span(shared_.clients).subspan(context);
  return others_share_ && context + 1 == contexts_.size() ? from : from.first(1);
}

// A kernel keeps the clock at which it was submitted: it is short compared to the governor's
// period.
Duration Gpu::Model::at_clock(const Work& work) {
  if (work.kind != program::WorkKind::kKernel || work.profile == nullptr) return work.solo;
  const double clock =
      governor_ == nullptr ? shared_.spec.clock : governor_->clock_at(engine_.now());
  if (clock >= 1) return work.solo;
  const double memory =
      memory_boundness(shared_.spec.contention, work.profile->kernel_class);
  return scale(work.solo, hardware::clock_stretch(memory, clock));
}

// A grid of exactly one full wave was sized by the SMs, and its blocks process tile after tile
// (inferred). A process that sees fewer SMs (NVIDIA/k8s-device-plugin issue 679) launches fewer
// blocks, each of which lasts longer.
void Gpu::Model::size_grid(WorkState& state) const {
  state.sized_sms = 0;
  const Work& work = state.work;
  const std::uint32_t told = shared_.clients[work.client.index()].told_sms;
  const std::uint32_t all = shared_.spec.sm_count;
  if (told >= all || work.kind != program::WorkKind::kKernel || work.profile == nullptr) return;
  if (work.profile->blocks != std::uint64_t{work.profile->residency.blocks_per_sm} * all) return;
  state.sized_sms = told;
  state.work.solo = scale(work.solo, static_cast<double>(all) / told);
}

WorkId Gpu::Model::submit(const Work& work) {
  BUBBLESIM_CHECK(work.client.index() < shared_.clients.size(), "work of an unknown client");
  BUBBLESIM_CHECK(work.solo >= Duration::zero(), "work does not take negative time");
  if (expected_ > 0) --expected_;
  const WorkId id = shared_.works.allocate();
  WorkState& state = shared_.works[id];
  state.work = work;
  state.work.solo = at_clock(work);
  size_grid(state);
  state.arrival = arrivals_++;
  state.end = SimTime::max();
  state.started = state.listed = false;
  state.refills = state.behind_held = state.stalled = false;
  if (may_run_alone(state.work)) {
    begin_alone(id, engine_.now());
    return id;
  }
  leave_alone();
  if (begin_beside(id, engine_.now())) return id;
  queue(id, engine_.now());
  update(engine_.now());
  return id;
}

void Gpu::Model::queue(WorkId id, SimTime now) {
  WorkState& state = shared_.works[id];
  const Work& work = state.work;
  if (work.kind == program::WorkKind::kCopy) return transfers_.add_copy(id, work.solo);
  if (work.kind == program::WorkKind::kMemset) {
    shared_.note(Note::Kind::kStarted, id);
    return transfers_.add_memset(id, work.solo, now);
  }
  BUBBLESIM_CHECK(work.profile != nullptr, "a kernel has a profile");
  const program::KernelProfile& profile = *work.profile;
  const std::uint64_t bps = profile.residency.blocks_per_sm;
  BUBBLESIM_CHECK(profile.blocks > 0 && bps > 0, "a kernel has blocks, an SM holds at least one");
  if (work.kind == program::WorkKind::kCollective) {
    const std::uint32_t cap = shared_.clients[work.client.index()].setup.sm_cap;
    state.waves.hold(std::min(profile.blocks, bps * std::min(cap, shared_.spec.sm_count)));
  } else {
    start_waves(state, shared_.spec.sm_count);
  }
  Context& context = context_of(work.client);
  context.catch_up(now);
  context.arrive(id, now);
}

void Gpu::Model::finish_collective(WorkId id, SimTime end) {
  leave_alone();
  BUBBLESIM_CHECK(shared_.works.holds(id), "no such work");
  WorkState& state = shared_.works[id];
  BUBBLESIM_CHECK(state.work.kind == program::WorkKind::kCollective && state.started,
                  "only a started collective is finished");
  BUBBLESIM_CHECK(end >= engine_.now(), "a collective does not end in the past");
  state.end = end;
  context_of(state.work.client).touch();
  update(engine_.now());
}

void Gpu::Model::set_sm_cap(ClientId client, std::uint32_t sm_cap) {
  leave_alone();
  BUBBLESIM_CHECK(sm_cap >= 1, "an SM cap leaves at least one SM");
  context_of(client).catch_up(engine_.now());
  shared_.clients[client.index()].setup.sm_cap = sm_cap;
  note_caps();
  for (Context& context : contexts_) context.touch_rates();
  context_of(client).limit_collectives(client);
  update(engine_.now());
}

void Gpu::Model::set_priority(ClientId client, std::int32_t priority) {
  leave_alone();
  context_of(client).catch_up(engine_.now());
  shared_.clients[client.index()].setup.priority = priority;
  context_of(client).sort_waiting();
  update(engine_.now());
}

void Gpu::Model::set_slice(ClientId client, Duration slice) {
  BUBBLESIM_CHECK(slicer_ && slice > Duration::zero(), "only time slices have a length");
  slicer_->set_slice(index_of(client), slice);
}

void Gpu::Model::drive_off(ClientId client, std::optional<program::Preemption> how) {
  leave_alone();
  BUBBLESIM_CHECK(how != program::Preemption::kContextSwitch || slicer_,
                  "only time slices switch contexts");
  const SimTime now = engine_.now();
  Context& context = context_of(client);
  context.catch_up(now);
  shared_.clients[client.index()].off = how;
  if (how == program::Preemption::kReset) context.reset(client);
  context.touch();
  update(now);
}

void Gpu::Model::announce(ClientId client) {
  if (!slicer_) return;
  ++announced_[index_of(client)];
  update(engine_.now());
}

void Gpu::Model::retract(ClientId client) {
  if (!slicer_) return;
  BUBBLESIM_CHECK(announced_[index_of(client)] > 0, "what is retracted was announced");
  --announced_[index_of(client)];
  update(engine_.now());
}

bool Gpu::Model::suspended(std::size_t context) const {
  return std::ranges::any_of(clients_of(context), [](const ClientState& client) {
    return client.off == program::Preemption::kContextSwitch;
  });
}

ClientUsage Gpu::Model::usage(ClientId client) const {
  ClientUsage usage = shared_.usage.usage_of(client);
  for (const std::size_t live : live_) {
    usage.sm_seconds += contexts_[live].unsettled_sm_ns(client, engine_.now()) * 1e-9;
  }
  if (alone_) usage.sm_seconds += alone_sm_ns(client, engine_.now()) * 1e-9;
  return usage;
}

void Gpu::Model::on_event(SimTime now) {
  scheduled_ = SimTime::max();
  if (alone_) return end_alone(now);
  if (one_context() && contexts_.front().nobody_waits() && end_beside(now)) return;
  event_ = true;
  update(now);
}

void Gpu::Model::update(SimTime now) {
  needs_update_ = true;
  if (updating_) return;
  updating_ = true;
  while (needs_update_) {
    needs_update_ = false;
    step(now);
    tell(now);
  }
  updating_ = false;
  reschedule(now);
}

inline void Gpu::Model::step(SimTime now) {
  if (!transfers_.idle()) run_transfers(now);
  settle_live(now);
  if (slicer_) take_turns(now);
  for (const std::size_t live : live_) contexts_[live].place(now);
  if (bound() && contexts_.size() > 1) hand_leftover(now);
}

// The clients after the first get the SMs that it leaves. They are frozen while it leaves none.
void Gpu::Model::hand_leftover(SimTime now) {
  Context& first = contexts_.front();
  Context& others = contexts_.back();
  const bool idle_only = mode_ == program::SharingMode::kIdleOnly;
  const double sms = idle_only && first.has_kernels() ? 0 : first.free_sms();
  const bool run = sms > 0;
  if (run != lives(1)) {
    if (run) {
      live_.push_back(1);
      others.thaw(now);
    } else {
      others.freeze(now);
      live_.pop_back();
    }
  }
  if (!run) return;
  others.set_leftover(sms);
  others.place(now);
}

// Work that ends in the instant in which it was placed or ended gets an event of its own: so after
// the first round of an update, no work is due.
inline void Gpu::Model::settle_live(SimTime now) {
  for (const std::size_t live : live_) {
    Context& context = contexts_[live];
    if (event_ || context.settled() < now) context.settle(now);
  }
  event_ = false;
}

void Gpu::Model::run_transfers(SimTime now) {
  WorkId id{};
  while (transfers_.take_ended(now, id)) shared_.note(Note::Kind::kFinished, id);
  while (transfers_.take_started(now, id)) shared_.note(Note::Kind::kStarted, id);
}

// Passes the GPU on until no context has to pass it. A context whose last collective turns out to
// have ended passes it on at once.
void Gpu::Model::take_turns(SimTime now) {
  while (true) {
    note_work(now);
    slicer_->advance(now);
    std::optional<std::size_t> next = slicer_->live();
    if (next && suspended(*next)) next.reset();
    if (next ? lives(*next) : live_.empty()) return;
    for (const std::size_t live : live_) contexts_[live].freeze(now);
    live_.clear();
    if (!next) return;
    live_.push_back(*next);
    contexts_[*next].thaw(now);
    contexts_[*next].settle(now);
  }
}

// Tells the slicer which contexts have got or lost work since the last call.
void Gpu::Model::note_work(SimTime now) {
  for (std::size_t i = 0; i < contexts_.size(); ++i) {
    const bool runnable = contexts_[i].has_work() && !suspended(i);
    if (runnable && !slicer_->has_work(i)) slicer_->gets_work(i, now);
    if (!runnable && slicer_->has_work(i)) slicer_->runs_dry(i, now);
    slicer_->set_announced(i, announced_[i] > 0 && !suspended(i), now);
  }
}

void Gpu::Model::tell(SimTime now) {
  for (std::size_t i = 0; i < shared_.notes.size(); ++i) {
    const Note note = shared_.notes[i];
    const Work& work = shared_.works[note.work].work;  // dangling once the listener has submitted
    const std::uint64_t cookie = work.cookie;
    WorkListener& listener = *shared_.clients[work.client.index()].listener;
    switch (note.kind) {
      case Note::Kind::kStarted: listener.on_work_started(cookie, note.work, now); break;
      case Note::Kind::kPaused: listener.on_work_paused(cookie, now); break;
      case Note::Kind::kResumed: listener.on_work_resumed(cookie, now); break;
      case Note::Kind::kFinished: tell_finished(note.work, now); break;
    }
  }
  shared_.notes.clear();
}

void Gpu::Model::tell_finished(WorkId id, SimTime now) {
  const Work& work = shared_.works[id].work;  // dangling once the listener has submitted
  shared_.clients[work.client.index()].listener->on_work_finished(work.cookie, now);
  shared_.works.release(id);
}

// Whether the next event may be scheduled by a submission that is still to come in this instant:
// the submission comes first in any case, since no event on the GPU is due before time goes on.
bool Gpu::Model::may_wait_for_submission(SimTime now) const {
  return expected_at_ == now && scheduled_ > now && one_context() && !shared_.confined &&
         transfers_.next_end() > now && engine_.is_only_of_phase(entity_) &&
         contexts_.front().nothing_is_due(now);
}

void Gpu::Model::schedule_next(SimTime now) {
  SimTime next = transfers_.next_end();
  for (const std::size_t live : live_) {
    next = std::min(next, contexts_[live].look_ahead(now));
  }
  if (slicer_) next = std::min(next, slicer_->next());
  if (next == scheduled_) return;
  scheduled_ = next;
  if (next == SimTime::max()) {
    engine_.cancel(entity_);
  } else {
    engine_.schedule(entity_, next);
  }
}

}  // namespace bubblesim::gpu
