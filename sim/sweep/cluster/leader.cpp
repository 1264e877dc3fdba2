#include "sim/sweep/cluster/leader.hpp"

#include <type_traits>
#include <utility>

#include "sim/sweep/execute.hpp"

namespace bubblesim::sweep {
namespace {

constexpr Duration kLookEvery = std::chrono::milliseconds{100};

}  // namespace

Duration steady_now() {
  return std::chrono::duration_cast<Duration>(
      std::chrono::steady_clock::now().time_since_epoch());
}

Leader::Leader(Transport& transport, const std::vector<store::PlannedRun>& runs,
               LeaderOptions options, LeaderPorts ports)
    : transport_(transport), options_(std::move(options)), ports_(std::move(ports)), queue_(runs) {
  queue_.set_threads(kLeaderRank, options_.threads);
  summary_.threads = options_.threads;
}

std::optional<store::PlannedRun> Leader::next_here() {
  const store::PlannedRun* run = queue_.wait_for_run();
  if (run == nullptr) return std::nullopt;
  ports_.started(*run);
  return *run;
}

void Leader::done_here(store::RunRecord&& record, Duration took) {
  if (queue_.finish(record.run.index) != nullptr) ports_.done(std::move(record), took);
}

LeaderSummary Leader::lead() {
  const Duration now = steady_now();
  for (int rank = 1; rank < transport_.size(); ++rank) workers_[rank].heard = now;
  while (!is_over() || !all_parted()) {
    if (const auto message = transport_.receive(kLongestReceive)) take(*message);
    answer_parked();
    if (steady_now() - looked_ < kLookEvery) continue;
    looked_ = steady_now();
    look_for_lost();
    if (!stopping_ && ports_.stopped()) {
      stopping_ = true;
      queue_.stop();
    }
    ports_.tick();
  }
  return summary_;
}

void Leader::take(const Message& message) {
  auto note = decode_note(message.bytes);
  if (!note || !workers_.contains(message.from)) {
    ++summary_.damaged;
    return;
  }
  Worker& worker = workers_[message.from];
  worker.heard = steady_now();
  const int from = message.from;
  std::visit(
      [this, from](auto&& content) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(content)>, ClusterAnswer>) {
          take(from, std::forward<decltype(content)>(content));
        }
      },
      *std::move(note));
}

void Leader::take(int from, const Ask& ask) {
  Worker& worker = workers_[from];
  if (ask.number <= worker.number) return;  // come twice
  worker.number = ask.number;
  if (worker.state == Worker::State::kUnknown || worker.state == Worker::State::kLost) {
    if (!accept(from, ask)) refuse(from, "runs version " + ask.version + " of the program, not " +
                                             options_.version);
  }
  std::set<std::uint64_t> held;
  for (const HeldRun& run : ask.held) {
    held.insert(run.index);
    if (run.started) tell_started(run.index);
  }
  give_up(queue_.has_only(from, held), "was given out again and again and never came back");
  if (ask.leaving) queue_.set_threads(from, 0);
  worker.parked.reset();
  if (!answer(from, ask)) worker.parked = ask;
}

// False: the rank is idle and there is nothing for it; it hears at once when there is.
bool Leader::answer(int rank, const Ask& ask) {
  ClusterAnswer answer{ask.number, order_for(rank), options_.sweep, {}};
  if (answer.order == LeaderOrder::kGoOn && !ask.leaving) {
    for (const store::PlannedRun* run : queue_.give(rank, ask.idle, ask.spare)) {
      answer.runs.push_back(*run);
    }
    if (answer.runs.empty() && ask.held.empty()) return false;
  }
  transport_.send(rank, encode(ClusterNote(answer)));
  if (answer.order == LeaderOrder::kPart || answer.order == LeaderOrder::kPartAlone) {
    workers_[rank].state = Worker::State::kParted;
  }
  return true;
}

void Leader::answer_parked() {
  for (auto& [rank, worker] : workers_) {
    const bool working = worker.state == Worker::State::kWorking;
    if (working && worker.parked && answer(rank, *worker.parked)) worker.parked.reset();
  }
}

void Leader::take(int from, Delivery&& delivery) {
  const store::PlannedRun* run = queue_.finish(delivery.record.run.index);
  if (run == nullptr) {
    ++summary_.come_twice;
    return;
  }
  if (run->key != delivery.record.run.key) {
    return give_up({run}, "came back from " + name_of(from) + " with another key");
  }
  ++summary_.done_elsewhere;
  tell_started(run->index);
  told_.erase(run->index);
  ports_.done(std::move(delivery.record), delivery.took);
}

void Leader::tell_started(std::uint64_t index) {
  const store::PlannedRun* run = queue_.planned(index);
  if (run != nullptr && told_.insert(index).second) ports_.started(*run);
}

void Leader::take(int from, const ClusterRefusal& refusal) { refuse(from, refusal.reason); }

// A rank that was thought lost may come back; what it had is elsewhere by then.
bool Leader::accept(int rank, const Ask& ask) {
  Worker& worker = workers_[rank];
  if (worker.state == Worker::State::kLost) {
    --summary_.lost;
    ports_.warn(name_of(rank) + " is back");
  } else {
    ++summary_.workers;
    summary_.threads += ask.threads;
  }
  worker.state = Worker::State::kWorking;
  worker.host = ask.host;
  queue_.set_threads(rank, ask.threads);
  return ask.version == options_.version;
}

void Leader::refuse(int rank, const std::string& reason) {
  Worker& worker = workers_[rank];
  if (worker.state == Worker::State::kRefused) return;
  worker.state = Worker::State::kRefused;
  ++summary_.refused;
  queue_.set_threads(rank, 0);
  ports_.warn(name_of(rank) + " is given no runs: " + reason);
}

LeaderOrder Leader::order_for(int rank) const {
  if (is_over()) return summary_.lost > 0 ? LeaderOrder::kPartAlone : LeaderOrder::kPart;
  const bool refused = workers_.at(rank).state == Worker::State::kRefused;
  return stopping_ || refused ? LeaderOrder::kStop : LeaderOrder::kGoOn;
}

void Leader::look_for_lost() {
  const Duration now = steady_now();
  for (auto& [rank, worker] : workers_) {
    if (worker.state == Worker::State::kLost || worker.state == Worker::State::kParted) continue;
    if (transport_.gone(rank)) {
      lose(rank, "has ended");
    } else if (now - worker.heard > options_.silence) {
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options_.silence);
      lose(rank, "has said nothing for " + std::to_string(seconds.count()) + " s");
    }
  }
}

void Leader::lose(int rank, const std::string& how) {
  const std::size_t had = queue_.held_by(rank);
  workers_[rank].state = Worker::State::kLost;
  ++summary_.lost;
  summary_.parting = Parting::kAlone;
  ports_.warn(name_of(rank) + " " + how + "; it had " + std::to_string(had) +
              " runs, which others do");
  give_up(queue_.lose(rank), "was lost twice with the rank that was at it, at last " +
                                 name_of(rank) + ", which " + how);
}

void Leader::give_up(const std::vector<const store::PlannedRun*>& runs, const std::string& why) {
  ExecuteOptions as_executed;
  as_executed.sweep = options_.sweep;
  as_executed.version = options_.version;
  for (const store::PlannedRun* run : runs) {
    store::RunRecord record = failed_record(*run, as_executed, "the run " + why);
    record.host = options_.host;
    ports_.done(std::move(record), std::nullopt);
  }
}

bool Leader::is_over() const {
  return queue_.all_done() || (stopping_ && queue_.held() == 0);
}

bool Leader::all_parted() const {
  for (const auto& [rank, worker] : workers_) {
    if (worker.state != Worker::State::kParted && worker.state != Worker::State::kLost) {
      return false;
    }
  }
  return true;
}

std::string Leader::name_of(int rank) const {
  const std::string& host = workers_.at(rank).host;
  return "rank " + std::to_string(rank) + (host.empty() ? "" : " (" + host + ")");
}

}  // namespace bubblesim::sweep
