#include "sim/app/crash_notes.hpp"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "sim/policy/session/call_mark.hpp"
#include "sim/sweep/run_journal.hpp"

namespace bubblesim::app {
namespace {

constexpr std::array kSignals{SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

// A handler is handed nothing: what was there before must be reachable without an object.
std::array<struct sigaction, kSignals.size()> replaced;
volatile std::sig_atomic_t end_code = -1;  // of a process that its own watch ends; -1: none does

constexpr unsigned kSecondsToEnd = 5;  // for a thread that a signal does not reach

void say(const char* text) noexcept {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text, std::strlen(text));
}

void say_policy(int signal) noexcept {
  const policy::CallMark* mark = policy::CallMark::of_this_thread();
  if (mark == nullptr || mark->call() == nullptr) return;
  std::array<char, 24> ns{};  // digits of 64 bits, and an end
  std::to_chars(ns.data(), ns.data() + ns.size() - 1, to_ns(mark->now()));
  for (const char* part : {"bubblesim: SIG", sigabbrev_np(signal), " in policy ", mark->policy(),
                           ", call ", mark->call(), ", at ", static_cast<const char*>(ns.data()),
                           " ns of simulated time\n"}) {
    say(part);
  }
}

void note(int signal, siginfo_t* info, void*) noexcept {
  // By kill(2), of another process: no run's doing.
  const bool sent = info->si_code == SI_USER;
  if (!sent && end_code < 0) say_policy(signal);
  if (const char* key = sent ? nullptr : sweep::RunJournal::mark_crash()) {
    say("bubblesim: the run ");
    say(key);
    say(" brings the program down; started again, the sweep records it as failed and goes on\n");
  }
  if (end_code >= 0) _exit(end_code);
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
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &replaced[i]);
}

CrashNotes::~CrashNotes() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &replaced[i], nullptr);
}

void end_by_thread(pthread_t thread, int code) {
  end_code = code;
  pthread_kill(thread, SIGABRT);
  sleep(kSecondsToEnd);
  std::_Exit(code);
}

}  // namespace bubblesim::app
