#include <dlfcn.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sstream>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "tests/fakes/cuda/fake_cuda.hpp"
#include "tests/fakes/job/fake_verbs.hpp"

namespace fake {
namespace {

constexpr int kProcessVerbFailed = 20;
constexpr int kForkFailed = 21;
constexpr int kChildFailed = 22;
constexpr int kStrayThread = 23;
constexpr int kTooMuchMemory = 24;
constexpr int kInChild = 25;

/// No file that the recorder had open may be open in a child: neither trace nor socket.
/// Allocates nothing: another thread may have held the allocator's lock (a sanitizer's is not
/// freed in a child) when this one forked.
bool recorder_left_descriptors() {
  std::array<char, 32> link{};
  std::array<char, 256> target{};
  for (int descriptor = 3; descriptor < 256; ++descriptor) {
    std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", descriptor);
    const ssize_t length = ::readlink(link.data(), target.data(), target.size());
    if (length <= 0) continue;
    const std::string_view name(target.data(), static_cast<std::size_t>(length));
    for (const char* part : {".btr", "eventpoll", "eventfd", "socket:"}) {
      if (name.find(part) != std::string_view::npos) return true;
    }
  }
  return false;
}

int in_child() {
  const Launch launch;
  if (fake_cuda_launch(&launch) != 3) return kInChild;  // as the driver: not initialised here
  return recorder_left_descriptors() ? kInChild + 1 : 0;
}

int wait_for(pid_t child) {
  if (child < 0) return kForkFailed;
  int status = 0;
  if (::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return kChildFailed;
  return WEXITSTATUS(status);
}

int fork_child(const std::string& end) {
  const pid_t child = ::fork();
  if (child != 0) return wait_for(child);
  const int code = in_child();
  if (end == "quit") ::_exit(code);
  std::exit(code);
}

int workers(std::uint64_t count) {
  std::atomic<int> worst{0};
  std::vector<std::thread> parents;
  for (std::uint64_t i = 0; i < count; ++i) {
    parents.emplace_back([&worst] {
      const pid_t child = ::fork();
      if (child == 0) ::_exit(in_child());
      if (const int code = wait_for(child); code != 0) worst.store(code);
    });
  }
  for (std::thread& parent : parents) parent.join();
  return worst.load();
}

/// The arguments of fake_job with other verbs; made before a fork, since a child of threads must
/// not allocate.
class OtherJob {
 public:
  explicit OtherJob(const std::string& verbs) {
    std::istringstream in(verbs);
    for (std::string word; std::getline(in, word, '+');) {
      std::replace(word.begin(), word.end(), '=', ':');
      words_.push_back(word);
    }
    for (std::string& word : words_) arguments_.push_back(word.data());
    arguments_.push_back(nullptr);
  }

  /// Replaces this program; returns only if that fails.
  int become() {
    ::execv("/proc/self/exe", arguments_.data());
    return kProcessVerbFailed;
  }

 private:
  std::vector<std::string> words_{"fake_job"};
  std::vector<char*> arguments_;
};

int spawn(const std::string& verbs) {
  OtherJob other(verbs);
  const pid_t child = ::fork();
  if (child != 0) return wait_for(child);
  ::_exit(other.become());
}

int inject(std::uint64_t times) {
  void* const library = ::dlopen(std::getenv("CUDA_INJECTION64_PATH"), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return kProcessVerbFailed;
  auto* entry = reinterpret_cast<int (*)()>(::dlsym(library, "InitializeInjection"));
  if (entry == nullptr) return kProcessVerbFailed;
  for (std::uint64_t i = 0; i < times; ++i) {
    if (entry() == 0) return kProcessVerbFailed;
  }
  return times == 0 ? ::dlclose(library) : 0;
}

int load_and_unload() {
  void* const library = ::dlopen(std::getenv("CUDA_INJECTION64_PATH"), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return kProcessVerbFailed;
  auto* entry = reinterpret_cast<int (*)()>(::dlsym(library, "InitializeInjection"));
  if (entry == nullptr || entry() == 0) return kProcessVerbFailed;
  for (int i = 0; i < 3; ++i) ::dlclose(library);
  return 0;
}

std::atomic<int> strays{0};
std::atomic<int> taken{0};

void on_signal(int) {
  std::array<char, 32> name{};
  ::pthread_getname_np(::pthread_self(), name.data(), name.size());
  taken.fetch_add(1);
  if (std::string_view(name.data()).starts_with("bubblesim")) strays.fetch_add(1);
}

int signals(std::uint64_t count) {
  struct sigaction action {};
  action.sa_handler = &on_signal;
  ::sigaction(SIGUSR1, &action, nullptr);
  // Blocked here, a signal goes to any thread that takes it: the one that waits below.
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGUSR1);
  std::atomic<bool> ready{false}, over{false};
  std::thread taker([&] {
    ready.store(true);
    while (!over.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  while (!ready.load()) std::this_thread::yield();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  for (std::uint64_t i = 0; i < count; ++i) {
    ::kill(::getpid(), SIGUSR1);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  over.store(true);
  taker.join();
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  return strays.load() == 0 && taken.load() > 0 ? 0 : kStrayThread;
}

int limit_files(std::uint64_t bytes) {
  const rlimit limit{bytes, bytes};
  return ::setrlimit(RLIMIT_FSIZE, &limit) == 0 ? 0 : kProcessVerbFailed;
}

int check_memory(std::uint64_t megabytes) {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  if (static_cast<std::uint64_t>(used.ru_maxrss) <= megabytes * 1024) return 0;
  std::fprintf(stderr, "fake_job: held %ld kB\n", used.ru_maxrss);
  return kTooMuchMemory;
}

}  // namespace

int do_process_verb(const Verb& verb, bool& known) {
  const std::string& name = verb.name;
  if (name == "fork") return fork_child(verb.text(0));
  if (name == "workers") return workers(verb.number(0, 4));
  if (name == "exec") return OtherJob(verb.text(0)).become();
  if (name == "spawn") return spawn(verb.text(0));
  if (name == "inject") return inject(verb.number(0, 1));
  if (name == "dlclose") return load_and_unload();
  if (name == "signals") return signals(verb.number(0));
  if (name == "exit") std::exit(static_cast<int>(verb.number(0)));
  if (name == "quit") ::_exit(static_cast<int>(verb.number(0)));
  if (name == "kill") return ::raise(SIGKILL);
  if (name == "limit") return limit_files(verb.number(0));
  if (name == "closed_stderr") return ::close(STDERR_FILENO);
  if (name == "rss") return check_memory(verb.number(0));
  known = false;
  return 0;
}

}  // namespace fake
