#include "capture/control/recorder_watch.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "capture/control/process_info.hpp"
#include "sim/base/units.hpp"

namespace bubblesim::capture {
namespace {

// "12.34 s": for people.
std::string seconds_text(Duration span) {
  return format_duration(std::chrono::duration_cast<std::chrono::milliseconds>(span));
}

}  // namespace

RecorderWatch::RecorderWatch(pid_t job, std::string output, std::string socket_folder)
    : job_(job), output_(std::move(output)) {
  // Short: a recorder that is slow must not hold up what waits for the job.
  options_.timeout = std::chrono::milliseconds(200);
  options_.socket_folder = std::move(socket_folder);
}

void RecorderWatch::look() {
  const auto listed = list_recorders(options_.socket_folder);
  if (listed.empty()) return;
  std::set<pid_t> family{job_};
  for (const pid_t pid : descendants(job_)) family.insert(pid);
  const uid_t own = geteuid();
  for (const ListedRecorder& recorder : listed) {
    const bool related = family.contains(recorder.pid) || !recorder.address.text.starts_with('@');
    if (!related || (own != 0 && recorder.user != own)) continue;
    auto status = RecorderClient(recorder, options_).ask(status_command());
    if (!status) continue;
    if (!family.contains(recorder.pid) && !status->output.starts_with(output_ + "/")) continue;
    seen_[status->pid] = std::move(*status);
  }
}

std::string RecorderWatch::progress() const {
  if (seen_.empty()) return {};
  std::size_t recording = 0;
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  for (const auto& [pid, status] : seen_) {
    if (status.state == RecorderState::kRecording) ++recording;
    records += status.records;
    bytes += status.bytes;
  }
  return std::to_string(recording) + " of " + std::to_string(seen_.size()) +
         " recording, " + std::to_string(records) + " records, " +
         std::to_string(bytes / 1'000'000) + " MB";
}

DriverState driver_state() {
  void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return DriverState::kMissing;
  dlclose(library);
  return DriverState::kFound;
}

std::string why_nothing(const std::map<std::int64_t, RecorderStatus>& seen, DriverState driver,
                        const JobFacts& facts) {
  for (const auto& [pid, status] : seen) {
    if (status.state == RecorderState::kFailed || !status.message.empty()) {
      return "the recorder of process " + std::to_string(pid) + " (" + status.executable +
             ") says: " + (status.message.empty() ? "the start failed" : status.message);
    }
  }
  if (facts.at_a_time || facts.delay >= facts.ran) {
    return "the job ended after " + seconds_text(facts.ran) +
           ", before the recording was to begin";
  }
  if (driver == DriverState::kMissing) {
    return "no NVIDIA driver was found here (libcuda.so.1), without which nothing can use CUDA";
  }
  if (!seen.empty()) {
    return "recorders were there, but nothing ran on the GPU while they recorded; the job ran " +
           seconds_text(facts.ran);
  }
  return "no recorder was seen in the job, which ran " + seconds_text(facts.ran) +
         ": nothing initialised CUDA, or it ended before a recording could begin. A line "
         "\"bubblesim capture: ...\" above would say more";
}

}  // namespace bubblesim::capture
