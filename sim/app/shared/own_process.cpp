#include "sim/app/shared/own_process.hpp"

#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <unistd.h>
#include <utility>

#include "sim/app/shared/app.hpp"
#include "sim/policy/session/call_mark.hpp"
#include "sim/sweep/run_journal.hpp"

namespace bubblesim::app {
namespace {

namespace fs = std::filesystem;

// From the program's folder: installed, then in a build tree.
constexpr const char* kHelperPlaces[] = {".", "../libexec/bubblesim",
                                         "../../capture/replay/process"};

}  // namespace

Variables inherited_environment() {
  Variables variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return variables;
}

std::string temporary_folder() {
  std::error_code code;
  return fs::temp_directory_path(code).string();
}

std::string program_folder() {
  std::error_code code;
  return fs::read_symlink("/proc/self/exe", code).parent_path().string();
}

Result<std::string> find_helper_program(const std::string& name) {
  std::string places;
  for (const char* place : kHelperPlaces) {
    const fs::path folder = (fs::path(program_folder()) / place).lexically_normal();
    const std::string path = (folder / name).string();
    if (::access(path.c_str(), X_OK) == 0) return path;
    places += (places.empty() ? "" : ", ") + folder.string();
  }
  return fail(name, {}, "is in none of " + places);
}

namespace {

// A handler is handed nothing: what it counts must be reachable without an object.
std::atomic<int> signal_count{0};
std::atomic<int> allowed_count{1};  // the next signal ends the process
std::atomic<bool> signalled{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void count_signal(int) noexcept {
  if (++signal_count > allowed_count) _exit(kExitInterrupted);
  signalled = true;
}

}  // namespace

StopSignals::StopSignals(SecondSignal second) {
  signal_count = 0;
  allowed_count = second == SecondSignal::kEnds ? 1 : 2;
  signalled = false;
  struct sigaction action{};
  action.sa_handler = count_signal;
  action.sa_flags = SA_RESTART;  // stores are written meanwhile
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    const bool nohup = kSignals[i] == SIGHUP && before_[i].sa_handler == SIG_IGN;
    if (!nohup) sigaction(kSignals[i], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

int StopSignals::count() const { return signal_count; }

const std::atomic<bool>& StopSignals::stop() const { return signalled; }

Ticker::Ticker(Duration pause, std::function<void()> look)
    : thread_([pause, look = std::move(look)](const std::stop_token& end) {
        std::mutex mutex;
        std::unique_lock lock(mutex);
        std::condition_variable_any wake;  // only the thread's end wakes it
        do look();
        while (!wake.wait_for(lock, end, pause, [&end] { return end.stop_requested(); }));
      }) {}

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
