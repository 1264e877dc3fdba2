// The gate's life in a process: settings, the link that its first launch makes, forks and exits.
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "capture/live/interpose/calls.hpp"
#include "capture/live/interpose/gate_link.hpp"

namespace bubblesim::capture::interpose {
namespace {

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Removes and returns the first line.
std::string take_line(std::string& text) {
  std::string line = text.substr(0, text.find('\n'));
  text.erase(0, line.size() + 1);
  return line;
}

/// The settings of each gate, one a GPU. Never destroyed, as all objects here.
const std::vector<GateSettings>& settings() {
  static const auto* const read = [] {
    auto* const gates = new std::vector<GateSettings>;
    std::string names = environment(kEnvGate), folders = environment(kEnvGateFolder);
    while (!names.empty()) {
      gates->push_back({take_line(names), environment(kEnvGateClient), take_line(folders),
                        environment(kEnvGateCompletions) == "1"});
    }
    return gates;
  }();
  return *read;
}

using Links = std::vector<Link*>;

// Both are initialised before any initialiser runs: a library's initialiser may launch.
constinit std::atomic<const Links*> current{nullptr};
constinit std::mutex first_opening;
constinit std::mutex* opening = &first_opening;

// A forked child is another process: rings, threads and locks are the parent's, in whatever state
// they were.
void begin_anew() noexcept {
  current.store(nullptr);
  opening = new std::mutex;
}

/// Calls `act` with each link, if the first launch has made them.
template <class Act>
void with_all(Act act) {
  const Links* const known = current.load(std::memory_order_acquire);
  for (std::size_t i = 0; known != nullptr && i < known->size(); ++i) act(*(*known)[i]);
}

/// Opens the links at the first call; waits only for another thread that opens them.
const Links& links() {
  if (const Links* known = current.load(std::memory_order_acquire)) return *known;
  const std::lock_guard lock(*opening);
  if (const Links* known = current.load(std::memory_order_acquire)) return *known;
  auto* const made = new Links;
  for (const GateSettings& gate : settings()) made->push_back(new Link(gate));
  // The driver registered its own exit function earlier, so that one runs after this one.
  static const int watched =
      std::atexit([] { with_all([](Link& link) { link.stop_looking(); }); });
  static_cast<void>(watched);
  current.store(made, std::memory_order_release);
  return *made;
}

/// The link of the GPU on which the calling thread launches; null: no gate is known to watch it.
Link* link_here() {
  static thread_local std::size_t last = 0;  // where the thread launched last
  const Links& all = links();
  bool elsewhere = true;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t place = (last + i) % all.size();
    const OwnGpu::Where where = all[place]->where();
    elsewhere = elsewhere && where == OwnGpu::Where::kElsewhere;
    if (where != OwnGpu::Where::kHere) continue;
    last = place;
    return all[place];
  }
  if (elsewhere) all.front()->note_elsewhere();
  return nullptr;
}

bool read_settings() {
  if (settings().empty()) return false;
  return ::pthread_atfork(nullptr, nullptr, &begin_anew) == 0;
}

/// Read early: a program may clear its environment, or change it while others read.
__attribute__((constructor)) void read_at_start() { static_cast<void>(gate_is_wanted()); }

__attribute__((destructor)) void leave_at_exit() {
  with_all([](Link& link) { link.leave(); });
}

}  // namespace

bool gate_is_wanted() noexcept {
  static const bool wanted = read_settings();
  return wanted;
}

// The gate's errors must not end a program: a launch that it cannot handle goes ungated.
void before_launch(SeenLaunch& launch) noexcept try {
  launch.link = link_here();
  if (launch.link != nullptr) launch.link->before_launch(launch);
} catch (...) {
}

void context_ends(Handle context) noexcept try {
  with_all([context](Link& link) { link.context_ends(context); });
} catch (...) {
}

void after_launch(const SeenLaunch& launch, CuResult result) noexcept try {
  if (launch.link != nullptr) launch.link->after_launch(launch, result);
} catch (...) {
}

/// For programs that mark their iterations: they call it at the end of each, found by
/// dlsym(RTLD_DEFAULT, "bubblesim_iteration"). The first call marks the beginning.
BUBBLESIM_GATE_EXPORT void bubblesim_iteration() noexcept try {
  if (!gate_is_wanted()) return;
  const Inside inside;
  if (Link* const link = link_here()) link->iteration();
} catch (...) {
}

}  // namespace bubblesim::capture::interpose
