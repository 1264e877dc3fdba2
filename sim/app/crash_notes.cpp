#include "sim/app/crash_notes.hpp"

#include <unistd.h>

#include <cstring>

#include "sim/sweep/run_journal.hpp"

namespace bubblesim::app {
namespace {

constexpr std::array kSignals{SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

// A handler is handed nothing: what was there before must be reachable without an object.
std::array<struct sigaction, kSignals.size()> replaced;

void say(const char* text) noexcept {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text, std::strlen(text));
}

void note(int signal, siginfo_t* info, void*) noexcept {
  // By kill(2), of another process: no run's doing.
  const bool sent = info->si_code == SI_USER;
  if (const char* key = sent ? nullptr : sweep::RunJournal::mark_crash()) {
    say("bubblesim: the run ");
    say(key);
    say(" brings the program down; started again, the sweep records it as failed and goes on\n");
  }
  // The signal comes again, and meets what was there before: a sanitizer's report, a core dump,
  // the end. A fault of the processor comes by itself, as its instruction is repeated.
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    if (kSignals[i] == signal) sigaction(signal, &replaced[i], nullptr);
  }
  if (info->si_code <= 0) raise(signal);
}

}  // namespace

CrashNotes::CrashNotes() {
  struct sigaction action{};
  action.sa_sigaction = note;
  action.sa_flags = SA_SIGINFO;
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &replaced[i]);
}

CrashNotes::~CrashNotes() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &replaced[i], nullptr);
}

}  // namespace bubblesim::app
