#include "sim/sweep/cluster/worker.hpp"

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "sim/base/data_file.hpp"
#include "sim/base/json.hpp"
#include "sim/sweep/cluster/notes.hpp"
#include "sim/sweep/named_files.hpp"
#include "sim/sweep/run_key.hpp"

namespace bubblesim::sweep {
namespace {

/// The leader reads files and plans before it answers anybody.
constexpr Duration kPlanning = std::chrono::hours{1};
/// Runs beyond those that threads are at, a thread: answers take a few milliseconds.
constexpr std::size_t kSparePerThread = 2;

std::uint64_t index_of(const ClusterNote& ended) {
  const auto* delivery = std::get_if<Delivery>(&ended);
  return delivery != nullptr ? delivery->record.run.index : std::get<ClusterRefusal>(ended).index;
}

/// Between the thread that talks and those that do runs.
class Desk {
 public:
  Desk(const WorkerPorts& ports, std::size_t threads) : ports_(ports), threads_(threads) {}

  /// For threads that do runs.
  std::optional<store::PlannedRun> next() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ended_ || !waiting_.empty(); });
      if (waiting_.empty()) return std::nullopt;
      store::PlannedRun run = std::move(waiting_.front());
      waiting_.pop_front();
      running_[run.index] = steady_now();
      news_ = true;
      lock.unlock();
      std::string obstacle = ports_.obstacle(run);
      if (obstacle.empty()) return run;
      lock.lock();
      running_.erase(run.index);
      outbox_.emplace_back(ClusterRefusal{run.index, std::move(obstacle)});
    }
  }

  void done(store::RunRecord&& record) {
    const std::scoped_lock lock(mutex_);
    const auto started = running_.find(record.run.index);
    const Duration took = steady_now() - started->second;
    running_.erase(started);
    outbox_.emplace_back(Delivery{took, std::move(record)});
    news_ = true;
  }

  /// For the thread that talks.
  void add(std::vector<store::PlannedRun>&& runs) {
    const std::scoped_lock lock(mutex_);
    for (store::PlannedRun& run : runs) waiting_.push_back(std::move(run));
    changed_.notify_all();
  }
  void drop_waiting() {
    const std::scoped_lock lock(mutex_);
    news_ = news_ || !waiting_.empty();
    waiting_.clear();
  }
  void end() {
    const std::scoped_lock lock(mutex_);
    waiting_.clear();
    ended_ = true;
    changed_.notify_all();
  }
  [[nodiscard]] std::vector<ClusterNote> take_outbox() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(outbox_, {});
  }
  [[nodiscard]] bool has_news() const {
    const std::scoped_lock lock(mutex_);
    return news_;
  }
  /// What has ended since take_outbox() is held still: its delivery comes after the ask.
  [[nodiscard]] Ask ask() {
    const std::scoped_lock lock(mutex_);
    news_ = false;
    Ask ask;
    ask.threads = static_cast<std::uint32_t>(threads_);
    for (const auto& [index, since] : running_) ask.held.push_back({index, true});
    for (const store::PlannedRun& run : waiting_) ask.held.push_back({run.index, false});
    for (const ClusterNote& note : outbox_) ask.held.push_back({index_of(note), true});
    const std::size_t room = threads_ * (1 + kSparePerThread);
    const std::size_t busy = running_.size() + waiting_.size();
    ask.idle = static_cast<std::uint32_t>(busy < threads_ ? threads_ - busy : 0);
    ask.spare = static_cast<std::uint32_t>(busy < room ? room - busy - ask.idle : 0);
    return ask;
  }

 private:
  const WorkerPorts& ports_;
  std::size_t threads_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<store::PlannedRun> waiting_;
  std::map<std::uint64_t, Duration> running_;  // by index: since when
  std::vector<ClusterNote> outbox_;
  bool news_ = false;
  bool ended_ = false;
};

/// The thread that talks.
class Talker {
 public:
  Talker(Transport& transport, const WorkerOptions& options, const WorkerPorts& ports)
      : transport_(transport), options_(options), ports_(ports),
        desk_(ports, options.execute.threads), heard_(steady_now()) {}

  ClusterWorkerEnd talk() {
    std::optional<ClusterWorkerEnd> end;
    while (!end) {
      for (const ClusterNote& note : desk_.take_outbox()) send(note);
      ask_if_due();
      if (const auto message = transport_.receive(kLongestReceive)) end = take(*message);
      if (!end && leader_is_lost()) end = ClusterWorkerEnd::kLeaderLost;
    }
    desk_.end();
    if (executor_.joinable()) executor_.join();
    return *end;
  }

 private:
  void send(const ClusterNote& note) { transport_.send(kLeaderRank, encode(note)); }

  void ask_if_due() {
    const Duration now = steady_now();
    const bool leaving = ports_.stopped();
    if (leaving) desk_.drop_waiting();
    const bool asks_again = waits_for_answer_ && now - asked_ > options_.ask_again;
    const bool due = !waits_for_answer_ && (desk_.has_news() || now - asked_ >= kBeat);
    if (!asks_again && !due) return;
    Ask ask = desk_.ask();
    ask.number = ++number_;
    ask.host = options_.host;
    ask.version = options_.execute.version;
    ask.leaving = leaving;
    send(ClusterNote(std::move(ask)));
    asked_ = now;
    waits_for_answer_ = true;
  }

  std::optional<ClusterWorkerEnd> take(const Message& message) {
    auto note = decode_note(message.bytes);
    if (!note) return std::nullopt;
    heard_ = steady_now();
    answered_ = true;
    auto* answer = std::get_if<ClusterAnswer>(&*note);
    // The leader knows from the ask that came after it that this one's runs were not taken.
    if (answer == nullptr || answer->number != number_ || !waits_for_answer_) return std::nullopt;
    waits_for_answer_ = false;
    switch (answer->order) {
      case LeaderOrder::kPart: return ClusterWorkerEnd::kTogether;
      case LeaderOrder::kPartAlone: return ClusterWorkerEnd::kAlone;
      case LeaderOrder::kStop: desk_.drop_waiting(); break;
      case LeaderOrder::kGoOn:
        if (!answer->runs.empty()) begin(answer->sweep);
        desk_.add(std::move(answer->runs));
        break;
    }
    return std::nullopt;
  }

  void begin(const std::string& sweep) {
    if (executor_.joinable()) return;
    executor_ = std::thread([this, sweep] {
      ExecuteOptions execute = options_.execute;
      execute.sweep = sweep;
      SweepPorts runs;
      runs.next = [this] { return desk_.next(); };
      runs.done = [this](store::RunRecord&& record) { desk_.done(std::move(record)); };
      runs.stopped = [] { return false; };
      ports_.execute(execute, runs);
    });
  }

  [[nodiscard]] bool leader_is_lost() {
    const Duration silence = answered_ ? options_.silence : kPlanning;
    return transport_.gone(kLeaderRank) || steady_now() - heard_ > silence;
  }

  Transport& transport_;
  const WorkerOptions& options_;
  const WorkerPorts& ports_;
  Desk desk_;
  std::thread executor_;
  Duration heard_;
  Duration asked_{};
  std::uint64_t number_ = 0;
  bool waits_for_answer_ = false;
  bool answered_ = false;  // ever
};

std::string text_of(const Errors& faults) {
  std::string text;
  for (const Error& fault : faults) text += (text.empty() ? "" : "; ") + fault.text();
  return text;
}

std::string names_of_files(const std::string& config) {
  std::string text;
  Json json = Json::parse(config, nullptr, false);
  each_name(json, [&text](Json& name, NamedKind, const std::string&) {
    if (is_file_path(name.get<std::string>())) {
      text += (text.empty() ? "" : ", ") + name.get<std::string>();
    }
  });
  return text;
}

}  // namespace

ClusterWorkerEnd work_for_leader(Transport& transport, const WorkerOptions& options,
                          const WorkerPorts& ports) {
  return Talker(transport, options, ports).talk();
}

std::function<std::string(const store::PlannedRun&)> check_of_files(const ExecuteOptions& options,
                                                             const std::string& configs) {
  // Shared: the function may be copied.
  auto files = std::make_shared<FileHashes>();
  return [files, configs, version = options.version](const store::PlannedRun& run) -> std::string {
    const auto content = run_content(Json::parse(run.config, nullptr, false), configs, *files);
    if (!content) return text_of(content.error());
    if (run_key(*content, run.seed, version) == run.key) return {};
    return "files that run " + std::to_string(run.index) +
           " depends on have another content here than where the sweep was planned: " +
           names_of_files(run.config) + ", or configs that it names by id in " + configs;
  };
}

}  // namespace bubblesim::sweep
