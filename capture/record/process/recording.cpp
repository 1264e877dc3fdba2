// One recording, from its request to the last chunk, on a thread of its own.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "capture/record/cupti/session.hpp"
#include "capture/record/decode/activity_decoder.hpp"
#include "capture/record/process/counters.hpp"
#include "capture/record/process/host_link.hpp"
#include "capture/record/process/output_file.hpp"
#include "capture/record/process/recorder.hpp"
#include "capture/record/store/trace_store.hpp"
#include "traces/names/collective_names.hpp"

namespace bubblesim::capture {
namespace {

constexpr Duration kNap = std::chrono::milliseconds(50);
constexpr Duration kTick = std::chrono::milliseconds(500);
constexpr Duration kBetweenClocks = std::chrono::seconds(1);
/// Time for CUPTI's set-up before an appointed time.
constexpr Duration kPreparing = std::chrono::seconds(5);
/// The last stretch before an appointed time is waited for in small steps.
constexpr Duration kStep = std::chrono::microseconds(200);
constexpr std::int64_t kLeastStepNs = 1'000'000;
constexpr const char* kByIterations = "iterations";
/// The set-up of CUPTI may take longer than this many iterations.
constexpr std::uint32_t kFewIterations = 10;
/// Bounds what is held in memory: some 300 MB.
constexpr std::uint64_t kMostHeld = std::uint64_t{4} << 20U;

std::uint64_t count(const RecordedBatch& batch) {
  return batch.calls.size() + batch.ops.size() + batch.syncs.size() + batch.markers.size() +
         batch.memory.size() + batch.stalls.size() + batch.notes.size();
}

/// A numbered iteration that has ended. A collective's call ends the iteration of the previous one.
struct Iteration {
  std::int64_t number;
  TraceTime end;
};

std::optional<Iteration> iteration_of(const HostEvent& event, CountedBy counted) {
  if (counted == CountedBy::kCollectives) {
    const auto* const call = std::get_if<CollectiveEvent>(&event);
    if (call == nullptr || !call->leads) return std::nullopt;
    return Iteration{static_cast<std::int64_t>(call->sequence) - 1, call->start};
  }
  const auto* const range = std::get_if<RangeEvent>(&event);
  if (range == nullptr || range->duration == Duration{}) return std::nullopt;
  const traces::MarkerClass what = traces::classify_marker(range->name);
  if (what.kind != traces::MarkerKind::kIteration || what.number < 0) return std::nullopt;
  return Iteration{what.number, range->start + range->duration};
}

/// The start of the latest record that has a time.
TraceTime latest_of(const RecordedBatch& batch) {
  TraceTime latest = TraceTime::min();
  const auto look = [&latest](const auto& records) {
    for (const auto& record : records) latest = std::max(latest, record.start);
  };
  look(batch.calls), look(batch.ops), look(batch.markers), look(batch.notes), look(batch.stalls);
  for (const traces::ClockPair& pair : batch.clocks) latest = std::max(latest, pair.at);
  return latest;
}

std::string joined(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += (text.empty() ? "" : "; ") + sentence;
  return text;
}

/// How often and how long the end waits for buffers that callbacks have not handed over.
constexpr int kLastLooks = 100;
constexpr Duration kBetweenLooks = std::chrono::microseconds(200);
/// How long the GPU may take for work launched before the end: a full launch queue is hundreds of
/// milliseconds of a large model's kernels.
constexpr std::chrono::milliseconds kBuffersLimit{1000};
/// Each flush takes the job's buffers away: the longer the wait, the rarer the flushes.
constexpr std::chrono::milliseconds kFirstPause{5}, kLongestPause{80};

std::uint64_t writer_microseconds() {
  timespec spent{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return static_cast<std::uint64_t>(spent.tv_sec) * 1'000'000 +
         static_cast<std::uint64_t>(spent.tv_nsec) / 1'000;
}

class Recording {
 public:
  Recording(StartRequest request, StartOrigin origin, RecordingShare& share)
      : request_(std::move(request)), origin_(origin), share_(share) {}
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording() {
    share_.file_descriptor.store(-1);
    if (session_ == nullptr) return;
    // After an exception.
    close_host_link();
    share_.buffers.recall();
    session_.reset();
    share_.buffers.close();
  }

  /// See run_recording().
  bool run() {
    if (!wait_for_start(request_.start_at_unix_s ? kPreparing : Duration{}))
      return stopped_early("stopped before its time had come");
    begun_ = !request_.first_iteration;
    if (!begun_ && !wait_for_iteration())
      return stopped_early("stopped before its first iteration had come");
    share_.board.edit([](RecorderStatus& status) { status.state = RecorderState::kStarting; });
    if (auto opened = open(); !opened) {
      fail_with(opened.error().text());
      return false;
    }
    share_.settings.session_began();
    if (request_.start_at_unix_s) wait_prepared();
    record();
    share_.records = false;
    repeats_ = share_.stop.load() == Stop::kSignalled ||
               (request_.every && !stop_wanted() && reason_to_end() == kByIterations);
    close();
    return repeats_ && fault_.empty();
  }

 private:
  [[nodiscard]] bool stop_wanted() const { return share_.stop.load() != Stop::kNo; }
  /// Waits until `before` the start time. False: a stop came first.
  [[nodiscard]] bool wait_for_start(Duration before) {
    const std::int64_t earliest = monotonic_ns() + to_ns(request_.delay);
    for (;;) {
      if (stop_wanted()) return false;
      // Reads the host's clock each time: it may be set during the wait.
      const std::int64_t appointed =
          request_.start_at_unix_s ? *request_.start_at_unix_s * 1'000'000'000 - realtime_ns() : 0;
      const Duration left = Duration{std::max(earliest - monotonic_ns(), appointed)} - before;
      if (left <= Duration{}) return true;
      if (session_) drain();
      share_.buffers.wake().wait(left > 2 * kNap ? kNap : std::min(left, kStep));
    }
  }
  /// Waits for the start time with CUPTI on; records from before it are left out.
  /// A stop meanwhile ends the recording without records.
  void wait_prepared() {
    decoder_->start_at(TraceTime::max());
    static_cast<void>(wait_for_start({}));
    session_->flush();
    drain();
    decoder_->start_at(read_clocks(*api_).pair.at);
  }
  /// Waits, with CUPTI off, until the iterations before the first wanted one are about to run.
  /// False: a stop came first.
  [[nodiscard]] bool wait_for_iteration() {
    HostEventQueue& events = host_queue();
    open_host_link({});
    std::uint32_t& wanted = *request_.first_iteration;
    bool near = wanted < std::min(kFewIterations, request_.every.value_or(kFewIterations)) &&
                origin_ == StartOrigin::kEnvironment;
    std::optional<Iteration> first;
    while (!near && !stop_wanted()) {
      share_.buffers.wake().wait(kNap);
      for (HostEvent event; events.pop(event);) {
        const auto iteration = iteration_of(event, request_.counted);
        if (!iteration) continue;
        if (!first) first = iteration;
        // With `every`, a passed iteration is replaced by the next multiple, as on other ranks.
        const std::int64_t past = std::min<std::int64_t>(iteration->number, ~0U) - wanted;
        if (request_.every && past >= 0)
          wanted += static_cast<std::uint32_t>(past - past % *request_.every + *request_.every);
        const std::int64_t left = wanted - iteration->number;
        const std::int64_t passed = std::max<std::int64_t>(iteration->number - first->number, 1);
        const Duration each = (iteration->end - first->end) / passed;
        // At least the next one is over before CUPTI is ready.
        near = near || left <= 2 + (each > Duration{} ? kPreparing / each : 0);
      }
    }
    close_host_link();
    return !stop_wanted();
  }
  /// Begins where the last iteration before the first wanted one ends, and counts later ones.
  void note_iteration(const HostEvent& event) {
    if (begun_ && request_.counted == CountedBy::kRanges) return;
    const auto iteration = iteration_of(event, request_.counted);
    if (!iteration) return;
    last_collective_ = iteration->number;
    if (!first_collective_ && begun_) first_collective_ = last_collective_;
    if (begun_) return;
    iteration_end_ = std::max(iteration_end_, iteration->end);
    const std::int64_t next = iteration->number + 1;
    begun_ = next >= *request_.first_iteration;
    if (!begun_) return;
    first_collective_ = last_collective_;
    counters_.add(kBegunLate, static_cast<std::uint64_t>(next - *request_.first_iteration));
    began_ns_ = monotonic_ns();
    host_->begin_at(iteration->end);
    decoder_->start_at(iteration->end);
    if (!request_.last) release();
  }
  /// Whole iterations since the first wanted one began.
  [[nodiscard]] std::uint32_t iterations() const {
    if (request_.counted == CountedBy::kRanges) return host_->iterations();
    const std::int64_t first = first_collective_.value_or(last_collective_);
    return static_cast<std::uint32_t>(last_collective_ - first);
  }
  [[nodiscard]] Result<void> open() {
    BUBBLESIM_ASSIGN_OR_RETURN(api_, find_cupti(share_.settings.cupti, share_.settings.cuda_home));
    share_.board.edit([&](RecorderStatus& status) {
      status.cupti = api_->path + " (version " + std::to_string(api_->version) + ")";
    });
    BUBBLESIM_RETURN_IF_ERROR(open_file());
    HostEventQueue& events = host_queue();
    for (HostEvent stale; events.pop(stale);) continue;
    (void)events.take_dropped();
    (void)events.take_cut();
    share_.buffers.open(api_->get_next_record);
    SessionSettings settings;
    settings.graphs =
        request_.graphs == GraphRecords::kGraph ? GraphDetail::kGraph : GraphDetail::kNode;
    settings.memory = request_.memory;
    settings.light = request_.detail == Detail::kLight;
    settings.zeroed_buffers = true;
    auto session = CuptiSession::start(*api_, settings, share_.buffers);
    if (!session) {
      share_.buffers.close();
      return tl::make_unexpected(std::move(session).error());
    }
    session_ = std::move(*session);
    reduced_ = joined(session_->reduced());
    share_.buffers.lend(*session_);
    return {};
  }
  [[nodiscard]] Result<void> open_file() {
    const JobIdentity& job = share_.settings.job;
    if (request_.every)
      request_.output += "/iterations-" + std::to_string(request_.first_iteration.value_or(0));
    BUBBLESIM_ASSIGN_OR_RETURN(
        file_, RecordingFile::claim(request_.output, job.rank, job.pid, request_.readers));
    BUBBLESIM_ASSIGN_OR_RETURN(store_, TraceStore::create(file_->path(), RankId{job.rank}));
    share_.file_descriptor.store(store_->descriptor());
    if (request_.names == Names::kHashed) store_->tables().hash_names();
    decoder_.emplace(*api_, store_->tables());
    BUBBLESIM_RETURN_IF_ERROR(describe());
    return store_->flush();
  }
  void record() {
    began_ns_ = monotonic_ns();
    const ClockReading clocks = read_clocks(*api_);
    batch_.clocks.push_back(seen_clock_ = clocks.pair);
    host_.emplace(store_->tables(), clocks.pair.at);
    open_host_link(clocks.offset);
    next_clock_ns_ = began_ns_ + to_ns(kBetweenClocks);
    share_.board.edit([&](RecorderStatus& status) {
      status.state = RecorderState::kRecording;
      status.output = file_->path();
      status.message = reduced_;
    });
    // CUPTI's records of streams at the start, with priorities, are in this thread's buffer:
    // decoded now, they come before each stream's first use.
    session_->flush();
    drain();
    std::int64_t next_tick = began_ns_ + to_ns(kTick);
    while (!stop_wanted() && reason_to_end().empty()) {
      share_.records = begun_;
      const std::int64_t now = monotonic_ns();
      Duration nap = std::min(kNap, Duration{next_tick - now});
      if (request_.duration) nap = std::min(nap, *request_.duration - Duration{now - began_ns_});
      share_.buffers.wake().wait(nap);
      watch_clock();
      drain();
      if (monotonic_ns() < next_tick) continue;
      tick();
      next_tick = std::max(next_tick + to_ns(kTick), monotonic_ns());
    }
  }
  /// Called twice a second.
  void tick() {
    session_->flush();
    if (monotonic_ns() >= next_clock_ns_) {
      read_clock();
      next_clock_ns_ = monotonic_ns() + to_ns(kBetweenClocks);
    }
    drain();
    if (writable_ && described_ != decoder_->device().name) note_write(describe());
    if (writable_) settle(store_->flush());
    publish();
  }
  /// Writes what CUPTI and the job's threads have handed over.
  void drain() {
    // Before the buffers: kernels of graphs refer to events of the time when these were captured.
    drain_host_events();
    drain_buffers();
    append();
    share_.buffers.prepare();
    if (std::string broken = share_.buffers.broken(); !broken.empty() && fault_.empty()) {
      fault_ = "CUPTI: " + broken;
    }
  }
  void drain_buffers() {
    for (BufferExchange::Done done; share_.buffers.next(done);) {
      decoder_->decode(done.buffer, done.valid, batch_);
      share_.buffers.recycle(done.buffer);
      append();
    }
  }
  void drain_host_events() {
    HostEventQueue& events = host_queue();
    // No more than there are now: producers that never pause must not keep the writer from buffers.
    std::size_t left = events.size();
    for (HostEvent event; left > 0 && events.pop(event); --left) {
      host_->add(event, batch_);
      note_iteration(event);
      if (const auto* const value = std::get_if<StreamValueEvent>(&event))
        decoder_->take_value(value->sync, value->context, value->number, batch_);
    }
  }
  void append() {
    if (holds()) return hold();
    pending_ += count(batch_);
    Result<void> done;
    if (writable_) done = store_->append(batch_);
    batch_.clear();
    if (!writable_ || !done) settle(done);
  }
  /// Whether records stay in memory: their beginning is not known yet, or the end writes them.
  [[nodiscard]] bool holds() const { return !begun_ || request_.last.has_value(); }
  void hold() {
    held_records_ += count(batch_);
    held_.push_back(std::exchange(batch_, {}));
    const TraceTime wanted = begun_ ? host_now() - *request_.last : iteration_end_;
    while (held_.size() > 1) {
      const bool old = latest_of(held_.front()) < wanted;
      if (!old && held_records_ <= kMostHeld) break;
      if (!old) counters_.add(kHeldDropped, count(held_.front()));
      held_records_ -= count(held_.front());
      held_.pop_front();
    }
  }
  /// Writes held records, but for those that the decoder leaves out as too early.
  void release() {
    held_.push_back(std::exchange(batch_, {}));
    for (RecordedBatch& held : held_) {
      batch_ = std::move(held);
      decoder_->leave_out_early(batch_);
      append();
    }
    held_.clear();
  }
  /// Counts records appended since the last call as kept in the file, or as lost.
  void settle(const Result<void>& written) {
    if (!written) note_write(written);
    if (writable_) {
      kept_ += pending_;
    } else if (pending_ > 0) {
      lost_ += pending_;
      counters_.add(kRecordsUnwritten, pending_);
    }
    pending_ = 0;
  }
  /// After the first write that fails nothing more is written; the recording ends.
  void note_write(const Result<void>& written) {
    if (written) return;
    writable_ = false;
    if (fault_.empty()) fault_ = written.error().text();
  }
  void read_clock() {
    const ClockReading clocks = read_clocks(*api_);
    batch_.clocks.push_back(clocks.pair);
    adjust_host_link(clocks.offset);
  }
  /// If the system clock was set, writes that down at once, with the reading before.
  void watch_clock() {
    const auto ahead = [](const traces::ClockPair& it) { return to_ns(it.at) - it.monotonic_ns; };
    const traces::ClockPair now = read_clocks(*api_).pair;
    const std::int64_t step = ahead(now) - ahead(seen_clock_);
    if (std::abs(step) > kLeastStepNs)
      batch_.clocks.insert(batch_.clocks.end(), {seen_clock_, now});
    seen_clock_ = now;
  }
  /// Why the recording must end; empty: it goes on.
  [[nodiscard]] std::string reason_to_end() const {
    if (!fault_.empty()) return fault_;
    if (!begun_) return {};
    if (request_.duration && monotonic_ns() - began_ns_ >= to_ns(*request_.duration))
      return "duration";
    if (request_.iterations && iterations() >= *request_.iterations) return kByIterations;
    if (request_.max_bytes && store_->bytes_written() >= *request_.max_bytes) return "bytes";
    return {};
  }
  void close() {
    share_.board.edit([](RecorderStatus& status) { status.state = RecorderState::kStopping; });
    end_session();
    end_file();
  }
  void end_session() {
    ended_ns_ = monotonic_ns();
    // The last clocks of the file are those of the stop: calls after it are not in the file.
    const traces::ClockPair stopped = read_clocks(*api_).pair;
    decoder_->stop_at(stopped.at);
    close_host_link();
    share_.buffers.recall();
    await_buffers();
    const bool whole = session_->stop(share_.stop.load() == Stop::kExiting);
    // A callback may have claimed its place in the queue without having filled it.
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
  /// Takes in records of launched work that the GPU still does.
  void await_buffers() {
    const std::int64_t limit = monotonic_ns() + to_ns(Duration(kBuffersLimit));
    auto pause = kFirstPause;
    while (share_.stop.load() != Stop::kExiting && session_->flush()) {
      drain();
      if (!session_->holds_buffers() || monotonic_ns() > limit) break;
      // Not woken by returned buffers: every flush returns a buffer while the job goes on.
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, kLongestPause);
    }
  }
  void end_file() {
    publish();
    if (kept_ + pending_ + lost_ == 0 && fault_.empty()) return end_without_file();
    if (writable_) note_write(describe());
    // From here on the descriptor's number may be that of another file.
    share_.file_descriptor.store(-1);
    // After a failed write nothing can be added: the file keeps its chunks and its partial name.
    const Result<void> finished = writable_ ? store_->finish(all_counters()) : fail(fault_);
    settle(finished);
    if (finished) {
      if (auto done = file_->complete(); !done && fault_.empty()) fault_ = done.error().text();
    }
    publish();
    share_.board.edit([&](RecorderStatus& status) {
      const RecorderState good = repeats_ ? RecorderState::kScheduled : RecorderState::kIdle;
      status.state = fault_.empty() ? good : RecorderState::kFailed;
      status.message = fault_.empty() ? reduced_ : fault_;
      status.output = file_->path();
    });
    summarise();
  }
  void end_without_file() {
    file_->discard();
    const char* const why = begun_
                                ? "nothing was recorded: no CUDA call, no range; no file was left"
                                : "nothing was recorded: the first iteration has not come";
    share_.board.edit([this, why](RecorderStatus& status) {
      status.state = repeats_ ? RecorderState::kScheduled : RecorderState::kIdle;
      status.message = why;
      status.output.clear();
    });
  }
  [[nodiscard]] Result<void> describe() {
    traces::format::RankDescription description;
    description.world_size = share_.settings.job.world_size;
    description.device = decoder_->device();
    description.provenance.source = share_.settings.job.executable;
    description.provenance.format = "bubblesim-recording";
    description.provenance.tool =
        "bubblesim " BUBBLESIM_VERSION ", CUPTI " + std::to_string(api_->version);
    description.provenance.note = reduced_;
    described_ = description.device.name;
    return store_->describe(description);
  }
  void take_losses() {
    const BufferExchange::Losses losses = share_.buffers.take_losses();
    HostEventQueue& events = host_queue();
    const std::uint64_t host_dropped = events.take_dropped();
    counters_.add(kCuptiDropped, losses.dropped);
    counters_.add(kRecordsDiscarded, losses.discarded);
    counters_.add(kBuffersLate, losses.late);
    counters_.add(kHostEventsDropped, host_dropped);
    counters_.add(kHostEventsCut, events.take_cut());
    lost_ += losses.dropped + losses.discarded + host_dropped;
  }
  [[nodiscard]] CounterSet all_counters() const {
    CounterSet all = counters_;
    all.merge(decoder_->counters());
    all.merge(host_->counters());
    return all;
  }
  void publish() {
    take_losses();
    share_.board.edit([&](RecorderStatus& status) {
      status.recorded = Duration{(ended_ns_ == 0 ? monotonic_ns() : ended_ns_) - began_ns_};
      status.records = kept_;
      status.bytes = store_->bytes_written();
      status.lost = lost_;
      status.iterations = iterations();
    });
  }
  void fail_with(const std::string& message) {
    if (file_) file_->discard();
    if (origin_ == StartOrigin::kEnvironment) say("cannot start: " + message);
    share_.board.edit([&](RecorderStatus& status) {
      status.state = RecorderState::kFailed;
      status.message = message;
      status.output.clear();
    });
  }
  bool stopped_early(const char* why) {
    share_.board.edit([why](RecorderStatus& status) {
      status.state = RecorderState::kIdle;
      status.message = why;
    });
    return false;
  }  ///< returns false
  void summarise() const {
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

  StartRequest request_;
  StartOrigin origin_;
  RecordingShare& share_;
  std::optional<CuptiApi> api_;
  std::optional<RecordingFile> file_;
  std::optional<TraceStore> store_;
  std::optional<ActivityDecoder> decoder_;
  std::optional<HostRecords> host_;
  std::unique_ptr<CuptiSession> session_;
  RecordedBatch batch_;
  std::deque<RecordedBatch> held_;
  std::uint64_t held_records_ = 0;
  bool repeats_ = false;                        ///< what run() returns
  bool begun_ = true;                           ///< the first wanted iteration has begun
  TraceTime iteration_end_ = TraceTime::min();  ///< end of the latest iteration, until then
  std::optional<std::int64_t> first_collective_;
  std::int64_t last_collective_ = 0;
  CounterSet counters_;
  std::string fault_;      ///< of the recording, once it runs
  bool writable_ = true;   ///< every write so far succeeded
  std::string described_;  ///< the device's name in the file
  std::string reduced_;
  std::int64_t began_ns_ = 0;  ///< CLOCK_MONOTONIC
  std::int64_t ended_ns_ = 0;
  std::int64_t next_clock_ns_ = 0;
  traces::ClockPair seen_clock_;
  // Counts of records about the job:
  std::uint64_t pending_ = 0;  ///< appended; the store may still hold them
  std::uint64_t kept_ = 0;     ///< in the file
  std::uint64_t lost_ = 0;
};

}  // namespace

bool run_recording(StartRequest request, StartOrigin origin, RecordingShare& share) {
  return Recording(std::move(request), origin, share).run();
}

}  // namespace bubblesim::capture
