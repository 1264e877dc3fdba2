// A policy or a run that brings the program down is named: on standard error, and a sweep's run in
// the journal of runs in flight, so that the next start goes on without it.
#pragma once

#include <pthread.h>

#include <array>
#include <csignal>

namespace bubblesim::app {

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
