// How a recording ends: CUPTI first, then the file, then the word about it.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <thread>
#include <utility>

#include "capture/record/process/counters.hpp"
#include "capture/record/process/host_link.hpp"
#include "capture/record/process/recording.hpp"
#include "capture/record/process/say.hpp"

namespace bubblesim::capture {
namespace {

/// How long, and in which steps, callbacks that have begun may take to hand over their buffers.
constexpr int kLastLooks = 100;
constexpr Duration kBetweenLooks = std::chrono::microseconds(200);
/// How long the GPU may take for what was launched before the end: a full launch queue is hundreds
/// of milliseconds of a large model's kernels.
constexpr std::chrono::milliseconds kBuffersLimit{1000};
/// Each flush takes the job's buffers away: seldom, the longer it lasts.
constexpr std::chrono::milliseconds kFirstPause{5}, kLongestPause{80};

std::uint64_t writer_microseconds() {
  timespec spent{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return static_cast<std::uint64_t>(spent.tv_sec) * 1'000'000 +
         static_cast<std::uint64_t>(spent.tv_nsec) / 1'000;
}

}  // namespace

void Recording::close() {
  share_.board.edit([](RecorderStatus& status) { status.state = RecorderState::kStopping; });
  end_session();
  end_file();
}

void Recording::await_buffers() {
  const std::int64_t limit = monotonic_ns() + to_ns(Duration(kBuffersLimit));
  auto pause = kFirstPause;
  while (share_.stop.load() != Stop::kExiting && session_->flush()) {
    drain();
    if (!session_->holds_buffers() || monotonic_ns() > limit) break;
    // Not by the wake: every flush of a job that goes on returns a buffer, which would end it.
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

void Recording::end_session() {
  ended_ns_ = monotonic_ns();
  // The last clocks of the file are those of the stop: what was called later is not in it.
  const traces::ClockPair stopped = read_clocks(*api_).pair;
  decoder_->stop_at(stopped.at);
  close_host_link();
  share_.buffers.recall();
  await_buffers();
  const bool whole = session_->stop(share_.stop.load() == Stop::kExiting);
  // A callback may have claimed its place in the queue and not filled it yet.
  for (int i = 0; i < kLastLooks; ++i) {
    drain();
    if (share_.buffers.waiting() == 0) break;
    share_.buffers.wake().wait(kBetweenLooks);
  }
  session_.reset();
  share_.buffers.close();
  batch_.clocks.push_back(stopped);
  decoder_->finish(batch_);
  if (request_.last && begun_) {
    decoder_->start_at(stopped.at - *request_.last);
    request_.last.reset();
    release();
  }
  append();
  if (!whole) counters_.add(kStopIncomplete);
  counters_.add(kWriterMicroseconds, writer_microseconds());
}

CounterSet Recording::all_counters() const {
  CounterSet all = counters_;
  all.merge(decoder_->counters());
  all.merge(host_->counters());
  return all;
}

void Recording::end_file() {
  publish();
  if (kept_ + pending_ + lost_ == 0 && fault_.empty()) return end_without_file();
  if (writable_) note_write(describe());
  // From here on the descriptor's number may become another file's.
  share_.file_descriptor.store(-1);
  // After a failed write nothing can be added: the chunks so far are whole, and the name says it.
  const Result<void> finished = writable_ ? store_->finish(all_counters()) : fail(fault_);
  settle(finished);
  if (finished) {
    if (auto done = file_->complete(); !done && fault_.empty()) fault_ = done.error().text();
  }
  publish();
  share_.board.edit([&](RecorderStatus& status) {
    status.state = fault_.empty() ? RecorderState::kIdle : RecorderState::kFailed;
    status.message = fault_.empty() ? reduced_ : fault_;
    status.output = file_->path();
  });
  summarise();
}

void Recording::end_without_file() {
  file_->discard();
  const char* const why = begun_ ? "nothing was recorded: no CUDA call, no range; no file was left"
                                 : "nothing was recorded: the first iteration has not come";
  share_.board.edit([why](RecorderStatus& status) {
    status.state = RecorderState::kIdle;
    status.message = why;
    status.output.clear();
  });
}

void Recording::summarise() const {
  const RecorderStatus status = share_.board.copy();
  const std::int64_t milliseconds = to_ns(status.recorded) / 1'000'000;
  std::string text = "rank " + std::to_string(status.rank) + ": " +
                     std::to_string(status.records) + " records of " +
                     std::to_string(milliseconds) + " ms in " + file_->path() + " (" +
                     std::to_string(status.bytes) + " bytes)";
  if (status.lost > 0) text += "; lost: " + std::to_string(status.lost) + " records";
  if (!fault_.empty()) text += "; ended by a fault: " + fault_;
  say(text);
}

}  // namespace bubblesim::capture
