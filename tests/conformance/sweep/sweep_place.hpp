// A workplace with a small sweep over the sample job, from which tests of sweeps start, and a
// program that runs beside the test, so that it can be given signals.
#pragma once

#include <spawn.h>
#include <sys/wait.h>

#include <array>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include "tests/conformance/app/command.hpp"

extern char** environ;

namespace bubblesim::app_test {

/// Two policies with so many seeds each; a run is 500 ms of the sample job.
[[nodiscard]] inline Json small_sweep(int repetitions) {
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

/// Writes it as sweep.json.
inline void write_sweep(const Workplace& place, const Json& sweep) {
  place.write("sweep.json", sweep.dump(2));
}

/// The results in a store as text, without wall-clock times or facts of the machine: the same runs
/// give the same bytes.
[[nodiscard]] inline std::string exported(const Workplace& place, const std::string& store) {
  const Outcome rows = place.bubblesim("results " + store + " export");
  EXPECT_EQ(rows.code, 0) << rows.err;
  return rows.out;
}

/// The last line of `bubblesim sweep --json`; null if there is none.
[[nodiscard]] inline Json last_event(const std::string& out) {
  const auto lines = lines_of(out);
  return lines.empty() ? Json() : parse_json(lines.back());
}

inline constexpr auto kLongest = std::chrono::minutes{2};
inline constexpr auto kTick = std::chrono::milliseconds{2};

inline std::size_t count_of(const std::string& text, const std::string& part) {
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

/// `bubblesim ARGUMENTS` in the workplace's folder; output in the files NAME.out and NAME.err
/// there. The destructor kills it if it still runs.
class RunningProgram {
 public:
  /// `before`: shell commands that hold for the program, such as "ulimit -f 100".
  RunningProgram(const Workplace& place, const std::string& name, const std::string& arguments,
                 const std::string& before = "true")
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
  ~RunningProgram() {
    if (pid_ <= 0 || ended()) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  void send(int signal) const {
    if (pid_ > 0) kill(pid_, signal);
  }
  /// Waits until standard output holds `text` so many times. False: the program ended before, or
  /// two minutes have passed.
  [[nodiscard]] bool says(const std::string& text, std::size_t times = 1) {
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < kLongest) {
      const bool over = ended();
      if (count_of(place_.read(name_ + ".out"), text) >= times) return true;
      if (over) return false;
      std::this_thread::sleep_for(kTick);
    }
    return false;
  }
  /// Waits at most two minutes for its end. Exit code 128 + n: ended by signal n.
  [[nodiscard]] Outcome wait() {
    const auto start = std::chrono::steady_clock::now();
    while (!ended() && std::chrono::steady_clock::now() - start < kLongest) {
      std::this_thread::sleep_for(kTick);
    }
    return {code_, place_.read(name_ + ".out"), place_.read(name_ + ".err")};
  }

 private:
  [[nodiscard]] bool ended() {
    if (code_ >= 0 || pid_ <= 0) return true;
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) != pid_) return false;
    code_ = exit_code(status);
    return true;
  }

  const Workplace& place_;
  std::string name_;
  pid_t pid_ = -1;
  int code_ = -1;
};

}  // namespace bubblesim::app_test
