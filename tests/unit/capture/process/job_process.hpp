// Starts a fake job with the recorder in it, talks to it, waits for it and reads its recording.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "capture/protocol/capture_request.hpp"
#include "tests/temp_folder.hpp"
#include "traces/format/trace_reader.hpp"

namespace bubblesim::capture {

/// How a job ended.
struct JobEnd {
  int code = -1;    ///< exit code; -1: a signal ended it
  int signal = 0;
  std::string error;  ///< what it wrote to stderr
};

class ScratchFolder : public TempFolder {
 public:
  [[nodiscard]] std::string file(const std::string& name) const { return path(name); }
  /// Names of the files in it, sorted.
  [[nodiscard]] std::vector<std::string> files() const;
};

using Variables = std::map<std::string, std::string>;

/// The environment of a job whose recording begins at once, into `folder`.
[[nodiscard]] Variables recording_to(const ScratchFolder& folder, Variables more = {});

class JobProcess {
 public:
  /// Starts the fake job with these verbs (tests/fakes/job/fake_verbs.hpp) and the recorder.
  JobProcess(const std::vector<std::string>& verbs, const Variables& variables);
  JobProcess(const JobProcess&) = delete;
  JobProcess& operator=(const JobProcess&) = delete;
  /// Kills the job if it still runs.
  ~JobProcess();

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Waits for a line of the job's stdout; false: the job ended or took too long.
  [[nodiscard]] bool says(const std::string& line);
  /// Lets the job's verb "hear" go on.
  void tell();
  [[nodiscard]] JobEnd wait();

  /// Sends a command over the control socket; nothing: there is no answer.
  [[nodiscard]] std::optional<RecorderStatus> command(const ControlCommand& command) const;
  [[nodiscard]] std::optional<RecorderStatus> status() const { return command({}); }
  [[nodiscard]] std::optional<RecorderStatus> stop() const;
  [[nodiscard]] std::optional<RecorderStatus> start(const std::string& output) const;
  /// Asks until the recorder is in `state`; returns the last answer.
  [[nodiscard]] RecorderStatus await(RecorderState state) const;

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  int error_ = -1;
  std::string pending_;
};

/// Runs a job to its end.
[[nodiscard]] JobEnd run_job(const std::vector<std::string>& verbs, const Variables& variables);

/// The contents of a recording; read_recording() fails the test if the file cannot be read.
struct Recorded {
  traces::RankTrace trace;
  CounterSet file_counters;  ///< losses that reading the file counted

  [[nodiscard]] std::size_t kernels(const std::string& name) const;
  [[nodiscard]] std::size_t calls(const std::string& name) const;
  [[nodiscard]] std::size_t markers(traces::MarkerKind kind) const;
};
[[nodiscard]] Recorded read_recording(const std::string& path);

/// A job that records into a folder of its own, runs to its end and is read.
class JobTest : public testing::Test {
 protected:
  const JobEnd& run(const std::vector<std::string>& verbs, const Variables& more = {}) {
    return end = run_job(verbs, recording_to(folder, more));
  }
  void succeed(const std::vector<std::string>& verbs, const Variables& more = {}) {
    EXPECT_EQ(run(verbs, more).code, 0) << end.error;
  }
  [[nodiscard]] Recorded record(const std::vector<std::string>& verbs, const Variables& more = {},
                                const std::string& file = "rank0.btr") {
    succeed(verbs, more);
    return read_recording(folder.file(file));
  }

  const ScratchFolder folder;
  JobEnd end;  ///< of the last job
};

/// Connects to the recorder of a process; -1: no recorder listens.
[[nodiscard]] int connect_to(pid_t process);

}  // namespace bubblesim::capture
