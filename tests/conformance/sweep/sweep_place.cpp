#include "tests/conformance/sweep/sweep_place.hpp"

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>

extern char** environ;

namespace bubblesim::app_test {
namespace {

constexpr auto kLongest = std::chrono::minutes{2};
constexpr auto kTick = std::chrono::milliseconds{2};

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// The signals of a test are those of the program, whatever the test was started under.
class DefaultSignals {
 public:
  DefaultSignals() {
    posix_spawnattr_init(&attributes_);
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGABRT, SIGXFSZ}) sigaddset(&signals, signal);
    posix_spawnattr_setsigdefault(&attributes_, &signals);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF);
  }
  ~DefaultSignals() { posix_spawnattr_destroy(&attributes_); }
  DefaultSignals(const DefaultSignals&) = delete;
  DefaultSignals& operator=(const DefaultSignals&) = delete;

  [[nodiscard]] const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

}  // namespace

Json small_sweep(int repetitions) {
  Json base = parse_json(R"({
    "name": "small", "duration": "500ms", "warmup": "100ms",
    "training": {"trace": "traces/samples/training", "memory": "24GB",
                 "samples_per_iteration": 32},
    "fillers": [{"name": "encoder", "mode": "online",
                 "program": {"trace": "traces/samples/inference.json.gz"},
                 "requests_per_pass": 8, "max_batch": 8, "max_wait": "5ms", "memory": "2GB",
                 "arrivals": {"process": "poisson", "rate_per_s": 200}}],
    "policies": ["exclusive"]})");
  return {{"name", "small"},
          {"base", std::move(base)},
          {"axes", parse_json(R"([{"pointer": "/policies/0", "values": ["exclusive", "mps"]}])")},
          {"repetitions", repetitions}};
}

void write_sweep(const Workplace& place, const Json& sweep) {
  place.write("sweep.json", sweep.dump(2));
}

std::string exported(const Workplace& place, const std::string& store) {
  const Outcome rows = place.bubblesim("results " + store + " export");
  EXPECT_EQ(rows.code, 0) << rows.err;
  return rows.out;
}

Json last_event(const std::string& out) {
  const auto lines = lines_of(out);
  return lines.empty() ? Json() : parse_json(lines.back());
}

RunningProgram::RunningProgram(const Workplace& place, const std::string& name,
                               const std::string& arguments, const std::string& before)
    : place_(place), name_(name) {
  std::string shell = "sh";
  std::string option = "-c";
  // `exec`: the process is the program itself.
  std::string line = "cd '" + place.path("") + "' && " + before + " && exec .bin/bubblesim " +
                     arguments + " >" + name + ".out 2>" + name + ".err </dev/null";
  const std::array<char*, 4> words{shell.data(), option.data(), line.data(), nullptr};
  const DefaultSignals signals;
  if (posix_spawnp(&pid_, "sh", nullptr, signals.get(), words.data(), environ) != 0) pid_ = -1;
}

RunningProgram::~RunningProgram() {
  if (pid_ <= 0 || ended()) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void RunningProgram::send(int signal) const {
  if (pid_ > 0) kill(pid_, signal);
}

bool RunningProgram::ended() {
  if (code_ >= 0 || pid_ <= 0) return true;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return false;
  code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return true;
}

bool RunningProgram::says(const std::string& text, std::size_t times) {
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < kLongest) {
    const bool over = ended();
    if (count_of(place_.read(name_ + ".out"), text) >= times) return true;
    if (over) return false;
    std::this_thread::sleep_for(kTick);
  }
  return false;
}

Outcome RunningProgram::wait() {
  const auto start = std::chrono::steady_clock::now();
  while (!ended() && std::chrono::steady_clock::now() - start < kLongest) {
    std::this_thread::sleep_for(kTick);
  }
  return {code_, place_.read(name_ + ".out"), place_.read(name_ + ".err")};
}

}  // namespace bubblesim::app_test
