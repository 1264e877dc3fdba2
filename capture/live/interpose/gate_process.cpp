// The gate's life in a process: settings, the link that its first launch makes, forks and exits.
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string>

#include "capture/live/interpose/calls.hpp"
#include "capture/live/interpose/gate_link.hpp"

namespace bubblesim::capture::interpose {
namespace {

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Never destroyed, as everything here.
const GateSettings& settings() {
  static const GateSettings* const read = new GateSettings{
      environment(kEnvGate), environment(kEnvGateClient), environment(kEnvGateFolder),
      environment(kEnvGateCompletions) == "1"};
  return *read;
}

// Both are there before any initialiser has run: a library's may launch.
constinit std::atomic<Link*> current{nullptr};
constinit std::mutex first_opening;
constinit std::mutex* opening = &first_opening;

// A forked child is another process: what the parent has is the parent's, its rings, its threads,
// its locks as they happened to be.
void begin_anew() noexcept {
  current.store(nullptr);
  opening = new std::mutex;
}

/// Opening waits for nobody but another thread that opens.
Link& link() {
  if (Link* known = current.load(std::memory_order_acquire)) return *known;
  const std::lock_guard lock(*opening);
  if (Link* known = current.load(std::memory_order_acquire)) return *known;
  Link* const made = new Link(settings());
  // The driver's own such function was registered before, at its initialisation, so comes after.
  static const int watched = std::atexit([] {
    if (Link* const known = current.load()) known->stop_looking();
  });
  static_cast<void>(watched);
  current.store(made, std::memory_order_release);
  return *made;
}

bool read_settings() {
  if (settings().gate.empty()) return false;
  return ::pthread_atfork(nullptr, nullptr, &begin_anew) == 0;
}

/// Early: a program may clear its environment, or change it while others read.
__attribute__((constructor)) void read_at_start() { static_cast<void>(gate_is_wanted()); }

__attribute__((destructor)) void leave_at_exit() {
  if (Link* const known = current.load()) known->leave();
}

}  // namespace

bool gate_is_wanted() noexcept {
  static const bool wanted = read_settings();
  return wanted;
}

// Nothing of ours may end a program: what cannot be done is left out.
void before_launch(SeenLaunch& launch) noexcept try {
  link().before_launch(launch);
} catch (...) {
}

void context_ends(Handle context) noexcept try {
  if (Link* const known = current.load()) known->context_ends(context);
} catch (...) {
}

void after_launch(const SeenLaunch& launch, CuResult result) noexcept try {
  link().after_launch(launch, result);
} catch (...) {
}

/// For programs that mark their iterations: at the end of each, by
/// dlsym(RTLD_DEFAULT, "bubblesim_iteration"). The first call marks the beginning.
BUBBLESIM_GATE_EXPORT void bubblesim_iteration() noexcept try {
  if (!gate_is_wanted()) return;
  const Inside inside;
  link().iteration();
} catch (...) {
}

}  // namespace bubblesim::capture::interpose
