// The library's entry into a process: the function that the CUDA driver calls, and the handlers of
// a fork and of the exit. Errors in this file never fail the job.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <list>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "capture/protocol/capture_request.hpp"
#include "capture/record/host/host_event.hpp"
#include "capture/record/process/control_server.hpp"
#include "capture/record/process/job_identity.hpp"
#include "capture/record/process/recorder.hpp"

extern "C" __attribute__((visibility("default"))) int InitializeInjection() noexcept;

namespace bubblesim::capture {
namespace {

/// How long the exit of a job may wait for its last records.
constexpr Duration kLongestExit = std::chrono::seconds(10);

/// Made once a process and never destroyed: threads of the job may use it to the last moment.
struct Life {
  Life(RecorderSettings settings, std::string folder)
      : recorder(*new Recorder(std::move(settings))), server(recorder, std::move(folder)) {}
  ~Life() = delete;

  Recorder& recorder;
  ControlServer server;
  Result<std::optional<StartRequest>> request;
};

std::atomic<Life*> life{nullptr};
std::atomic<bool> handlers_set{false};

void at_exit() noexcept {
  Life* const here = life.load();
  if (here == nullptr) return;
  here->recorder.stop(StopReason::kExiting);
  if (!here->recorder.wait_idle(kLongestExit)) say("gave up waiting for the last records at exit");
  here->server.remove_path();
}

// The child has this thread only. Inherited objects belong to the parent: they are left as they
// are, locks and all, and forgotten. If the child uses CUDA, it is injected anew.
void in_forked_child() noexcept {
  forget_host_threads();
  Life* const parents = life.exchange(nullptr);
  if (parents == nullptr) return;
  parents->recorder.abandon();
  parents->server.close_descriptors();
}

void control(Life& here) noexcept {
  try {
    ::pthread_setname_np(::pthread_self(), "bubblesim-ctl");
    const bool listening = here.server.listen();
    if (!here.request) {
      say("cannot start: " + here.request.error().text());
    } else if (*here.request) {
      if (auto started = here.recorder.start(**here.request, StartOrigin::kEnvironment); !started) {
        say("cannot start: " + started.error().text());
      }
    }
    if (listening) here.server.serve();
  } catch (...) {
    // No more commands are accepted; a recording under way ends by its limits or at the exit.
    here.server.close_descriptors();
  }
}

/// Runs `start` with every signal blocked that another thread of the job could take: threads
/// started in it inherit that. Signals of a thread's own faults stay unblocked.
template <class Start>
void without_signals(Start start) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  for (const int own : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS}) {
    ::sigdelset(&all, own);
  }
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    start();
  } catch (const std::system_error& fault) {
    say(std::string("the system gives no thread: ") + fault.what());
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

/// Like setenv, which however may free the list that another thread's getenv is reading: here the
/// old list is never freed.
void add_to_environment(const char* name, const char* value) {
  if (::getenv(name) != nullptr) return;
  std::size_t count = 0;
  while (environ != nullptr && environ[count] != nullptr) ++count;
  static auto& lists = *new std::list<std::vector<char*>>;
  std::vector<char*>& grown = lists.emplace_back(environ, environ + count);
  grown.insert(grown.end(), {::strdup((std::string(name) + "=" + value).c_str()), nullptr});
  __atomic_store_n(&environ, grown.data(), __ATOMIC_RELEASE);
}

void offer_to_libraries() {
  Dl_info own{};
  if (::dladdr(reinterpret_cast<void*>(&InitializeInjection), &own) == 0) return;
  for (const char* name : {"NVTX_INJECTION64_PATH", "NCCL_PROFILER_PLUGIN"}) {
    add_to_environment(name, own.dli_fname);
  }
}

void set_handlers() {
  if (handlers_set.exchange(true)) return;
  ::pthread_atfork(nullptr, nullptr, &in_forked_child);
  // Registered again when CUPTI is ready (session_began): handlers run in reverse order, and ours
  // must run before CUPTI's. This one is for jobs that end while CUPTI is being set up.
  std::atexit([] { at_exit(); });
}

void come_to_life() {
  const Environment env = process_environment();
  RecorderSettings settings;
  settings.job = identify_job(env);
  settings.cupti = env(kEnvCupti).value_or("");
  settings.cuda_home = env("CUDA_HOME").value_or(env("CUDA_PATH").value_or(""));
  const std::string only = env(kEnvOnly).value_or("");
  if (!only.empty() && only != settings.job.executable) return;
  static std::atomic<bool> registered{false};
  settings.session_began = [] {
    if (!registered.exchange(true)) std::atexit([] { at_exit(); });
  };
  auto* here = new Life(std::move(settings), env(kEnvSocketFolder).value_or(""));
  here->request = request_from_environment(env);
  Life* none = nullptr;
  if (!life.compare_exchange_strong(none, here)) return;  // a second call; the first one counts
  offer_to_libraries();
  set_handlers();
  without_signals([here] { std::thread([here] { control(*here); }).detach(); });
}

}  // namespace
}  // namespace bubblesim::capture

extern "C" int InitializeInjection() noexcept {
  try {
    if (bubblesim::capture::life.load() == nullptr) bubblesim::capture::come_to_life();
  } catch (...) {
    // Without memory, for example: the job goes on without a recorder.
  }
  return 1;
}
