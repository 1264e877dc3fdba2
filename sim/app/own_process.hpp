// The program as a process: where it lies, its environment, signals, and notes of its crash.
#pragma once

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <pthread.h>
#include <string>

#include "sim/base/child_process.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::app {

[[nodiscard]] Variables inherited_environment();

/// The system's folder for temporary files: TMPDIR or /tmp; empty if it cannot be told.
[[nodiscard]] std::string temporary_folder();

/// The folder that holds the program.
[[nodiscard]] std::string program_folder();

/// A program of bubblesim's that is not `bubblesim`: beside it, installed
/// (../libexec/bubblesim), or in the build tree. The fault lists the places.
[[nodiscard]] Result<std::string> find_helper_program(const std::string& name);

// Ctrl-C, SIGQUIT, SIGTERM and SIGHUP as requests: while it lives, the first ends nothing by
// itself, the second ends the process with 130 at once. A SIGHUP that nohup has the process ignore
// stays ignored.

/// kIsCounted: a watch of the command's own ends the process at the second signal, and the third
/// does it at once.
enum class SecondSignal : std::uint8_t { kEnds, kIsCounted };

/// One at a time in a process.
class StopSignals {
 public:
  explicit StopSignals(SecondSignal second = SecondSignal::kEnds);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// How many have come.
  [[nodiscard]] int count() const;
  /// Whether one has come, for what is polled.
  [[nodiscard]] const std::atomic<bool>& stop() const;

 private:
  static constexpr std::array kSignals{SIGINT, SIGQUIT, SIGTERM, SIGHUP};

  std::array<struct sigaction, kSignals.size()> before_{};
};

// A policy or a run that brings the program down is named: on standard error, and a sweep's run in
// the journal of runs in flight, so that the next start goes on without it.

/// While it lives, SIGABRT (a failed check), SIGSEGV, SIGBUS, SIGFPE and SIGILL note their policy's
/// call and their run and then end the process as they would have. One at a time in a process.
class CrashNotes {
 public:
  CrashNotes();
  ~CrashNotes();
  CrashNotes(const CrashNotes&) = delete;
  CrashNotes& operator=(const CrashNotes&) = delete;
};

/// Ends the process with `code` as a crash of the thread would, for a thread that does not come
/// back: its run is noted.
[[noreturn]] void end_by_thread(pthread_t thread, int code);

}  // namespace bubblesim::app
