#include "capture/live/interpose/gate_link.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "capture/clock/host_clock.hpp"
#include "capture/live/interpose/own_place.hpp"

namespace bubblesim::capture::interpose {
namespace {

using std::chrono::steady_clock;

/// A thread that takes part in a clock. It ends its part before or just after the gate takes back
/// the thread's row, with no code of the program in between.
struct ThreadPart {
  std::unique_ptr<ClockPart> part;
  const Link* link = nullptr;
  ~ThreadPart();
};

/// Whether this thread is ending. Never destroyed: destructors may ask to the last moment.
thread_local bool on_its_way_out = false;
ThreadPart::~ThreadPart() { on_its_way_out = true; }
thread_local ThreadPart thread_part;

}  // namespace

Link::Link(const GateSettings& settings)
    : settings_(settings), counts_(open_counts(settings.folder, settings.client)) {
  char* end = nullptr;
  const unsigned long id = std::strtoul(settings_.client.c_str(), &end, 10);
  if (settings_.client.empty() || *end != '\0' || id >= kMostGateClients) {
    note(settings_.folder, settings_.client,
         "goes ungated: " + std::string(kEnvGateClient) + " is no client's number");
    return;
  }
  id_ = ClientId{static_cast<std::uint32_t>(id)};
  turn_ = id == 0 ? Turn::kTraining : Turn::kFiller;
  clock_ = wall_clock();
  gpu_ = std::make_unique<OwnGpu>(settings_.gate, id_);
}

void Link::note_elsewhere() {
  if (!was_elsewhere_.exchange(true)) count(counts_.processes_elsewhere);
}

void Link::open_gate() {
  join();
  // Only a Link takes a place, and this process has no other Link: a place that is its own already
  // was taken before an exec.
  const bool executed = give_up_own_place(settings_.gate, id_);
  auto client = GateClient::open(settings_.gate, id_, *clock_);
  if (!client) {
    count(counts_.ungated_processes);
    note(settings_.folder, settings_.client, "goes ungated: " + client.error().text());
    return;
  }
  client_ = std::move(*client);
  is_open_ = true;
  if (!executed) count(counts_.processes);
  note(settings_.folder, settings_.client, "is gated");
}

bool Link::join() {
  if (on_its_way_out) return false;
  if (thread_part.link == this) return true;
  thread_part.part.reset();
  thread_part.part = clock_->join(turn_);
  thread_part.link = this;
  return true;
}

Completions& Link::completions() {
  std::call_once(follows_, [this] {
    completions_ = new Completions([this](const Completions::Ended& ended) { return tell(ended); });
  });
  return *completions_.load();
}

bool Link::tell(const Completions::Ended& ended) {
  const Use use(*this);
  if (!use || !join()) return true;
  // A completion that was lost would leave the client busy for ever in the policy's view.
  if (settings_.completions && !client_->has_room()) return false;
  count(counts_.completions);
  if (ended.guessed) count(counts_.completions_guessed);
  if (settings_.completions) {
    client_->completed(ended.info.kind, ended.info.launch, ended.info.operations);
  }
  return true;
}

void Link::count_launch(const policy::LaunchInfo& info, const Passage& passage, Duration spent) {
  switch (info.kind) {
    case program::WorkKind::kKernel: count(counts_.kernels); break;
    case program::WorkKind::kCollective: count(counts_.collectives); break;
    default: count(counts_.copies);
  }
  count(counts_.blocks, info.blocks);
  if (passage.gate_open) count(counts_.undecided);
  if (passage.held) count(counts_.held);
  count_time(passage.held, spent);
}

void Link::count_time(bool held, Duration spent) {
  count(held ? counts_.held_ns : counts_.passing_ns, static_cast<std::uint64_t>(to_ns(spent)));
}

Duration Link::wait_for_room(const policy::LaunchInfo& info) {
  if (client_->window() == 0 || info.kind == program::WorkKind::kCollective) return {};
  const auto began = steady_clock::now();
  const Completions::Room room = completions().wait_for_room(
      [this] { return client_->window(); }, [this] { client_->look_for_host(); });
  if (room == Completions::Room::kAtOnce) return {};
  const Duration waited = steady_clock::now() - began;
  count(counts_.window_waits);
  if (room == Completions::Room::kGivenUp) count(counts_.window_passed);
  count(counts_.window_ns, static_cast<std::uint64_t>(to_ns(waited)));
  return waited;
}

void Link::before_launch(SeenLaunch& launch) {
  std::call_once(opens_, [this] { open_gate(); });
  const Use use(*this);
  if (!use) return;
  if (!join()) {
    count_launch(launch.info, {.gate_open = true}, Duration{});
    return;
  }
  const Duration waited = wait_for_room(launch.info);
  const Passage passage = client_->launch(launch.info);
  launch.held = passage.held;
  count_launch(launch.info, passage, Duration{steady_clock::now() - launch.began} - waited);
}

void Link::after_launch(const SeenLaunch& launch, CuResult result) {
  const Use use(*this);
  if (!use || !join() || (!settings_.completions && client_->window() == 0)) return;
  const auto began = steady_clock::now();
  SeenLaunch done = launch;
  done.info.launch = client_->last_launch();
  completions().follow(done, result != kCuSuccess);
  count_time(launch.held, steady_clock::now() - began);
}

void Link::iteration() {
  std::call_once(opens_, [this] { open_gate(); });
  const Use use(*this);
  if (!use || !join()) return;
  const std::int64_t now = steady_clock::now().time_since_epoch().count();
  const std::int64_t began = iteration_began_.exchange(now);
  if (began == 0) return;  // the first call marks the start of the first iteration
  count(counts_.iterations);
  client_->iteration_ended(Duration{steady_clock::duration{now - began}});
}

void Link::context_ends(Handle context) {
  if (Completions* const known = completions_.load()) known->forget(context);
}

void Link::stop_looking() {
  if (Completions* const known = completions_.load()) known->stop();
}

void Link::leave() {
  constexpr std::chrono::milliseconds kPatience{5};
  constexpr std::chrono::microseconds kLook{100};
  left_ = true;
  if (!is_open_) return;
  // Threads at the gate are about to go on, or held, perhaps for long; the client waits for them.
  for (const auto end = steady_clock::now() + kPatience;
       users_ > 0 && steady_clock::now() < end;) {
    std::this_thread::sleep_for(kLook);
  }
  give_up_own_place(settings_.gate, id_);
}

}  // namespace bubblesim::capture::interpose
