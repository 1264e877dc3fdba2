// The program as a process: its folder, its environment, signals, and notes of its crash.
#pragma once

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <functional>
#include <pthread.h>
#include <string>
#include <thread>

#include "sim/base/child_process.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::app {

[[nodiscard]] Variables inherited_environment();

/// The system's folder for temporary files: TMPDIR or /tmp; empty: none found.
[[nodiscard]] std::string temporary_folder();

/// The folder that holds the program.
[[nodiscard]] std::string program_folder();

/// Finds a program of bubblesim other than `bubblesim`: beside it, installed
/// (../libexec/bubblesim), or in the build tree. The fault lists the places.
[[nodiscard]] Result<std::string> find_helper_program(const std::string& name);

// Ctrl-C, SIGQUIT, SIGTERM and SIGHUP as requests to stop. While a StopSignals lives, the first
// signal is only counted, and the second ends the process with 130 at once. A SIGHUP that nohup
// makes the process ignore stays ignored.

/// The effect of the second signal. kIsCounted: the command watches the count itself and ends the
/// process at the second signal; the third signal ends it at once.
enum class SecondSignal : std::uint8_t { kEnds, kIsCounted };

/// At most one object in a process.
class StopSignals {
 public:
  explicit StopSignals(SecondSignal second = SecondSignal::kEnds);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Number of signals received.
  [[nodiscard]] int count() const;
  /// Whether a signal was received, as a flag that long work can poll.
  [[nodiscard]] const std::atomic<bool>& stop() const;

 private:
  static constexpr std::array kSignals{SIGINT, SIGQUIT, SIGTERM, SIGHUP};

  std::array<struct sigaction, kSignals.size()> before_{};
};

/// While it lives, calls `look` on a thread of its own: at once, and again after each `pause`.
class Ticker {
 public:
  Ticker(Duration pause, std::function<void()> look);
  Ticker(const Ticker&) = delete;  // `look` knows where its owner is
  Ticker& operator=(const Ticker&) = delete;

 private:
  std::jthread thread_;
};

// A crash names the policy and the run that caused it on standard error. A sweep's run is also
// noted in the journal of runs in flight, so that the next start goes on without that run.

/// While it lives, a handler of SIGABRT (a failed check), SIGSEGV, SIGBUS, SIGFPE and SIGILL notes
/// the policy call and the run of the crashed thread; then the signal ends the process as it would
/// without the handler. At most one object in a process.
class CrashNotes {
 public:
  CrashNotes();
  ~CrashNotes();
  CrashNotes(const CrashNotes&) = delete;
  CrashNotes& operator=(const CrashNotes&) = delete;
};

/// Ends the process with `code` because `thread` hangs; its run is noted as if it had crashed.
[[noreturn]] void end_by_thread(pthread_t thread, int code);

}  // namespace bubblesim::app
