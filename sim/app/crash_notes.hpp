// A run that brings the program down is named: on standard error, and in the journal of runs in
// flight, so that the next start goes on without it.
#pragma once

#include <array>
#include <csignal>

namespace bubblesim::app {

/// While it lives, SIGABRT (a failed check), SIGSEGV, SIGBUS, SIGFPE and SIGILL note their run and
/// then end the process as they would have. One at a time in a process.
class CrashNotes {
 public:
  CrashNotes();
  ~CrashNotes();
  CrashNotes(const CrashNotes&) = delete;
  CrashNotes& operator=(const CrashNotes&) = delete;
};

}  // namespace bubblesim::app
