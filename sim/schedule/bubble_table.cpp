#include "sim/schedule/bubble_table.hpp"

#include <algorithm>
#include <boost/pending/disjoint_sets.hpp>

#include "sim/workload/lone_job.hpp"

namespace bubblesim::schedule {
namespace {

using program::kNoIndex;

/// Bytes that a program holds, from its marks.
class HeldMemory {
 public:
  explicit HeldMemory(const program::Program& program) : marks_(program.memory) {}

  [[nodiscard]] bool known() const { return !marks_.empty(); }

  /// The least that is held between operation `after` and operation `next`; where `next` is not
  /// the later one, the pass begins anew in between.
  [[nodiscard]] std::uint64_t least(std::uint32_t after, std::uint32_t next) const {
    if (next > after) return least_of(held_at(after), position(after), position(next));
    const std::uint64_t end = least_of(held_at(after), position(after), marks_.size());
    return least_of(end, 0, position(next));
  }

 private:
  /// Marks up to operation `op`, that one's included.
  [[nodiscard]] std::size_t position(std::uint32_t op) const {
    const auto place = std::upper_bound(
        marks_.begin(), marks_.end(), op,
        [](std::uint32_t wanted, const program::MemoryMark& mark) { return wanted < mark.op; });
    return static_cast<std::size_t>(place - marks_.begin());
  }
  /// Before the first mark of a pass what the last one left is held.
  [[nodiscard]] std::uint64_t held_at(std::uint32_t op) const {
    const std::size_t marks = position(op);
    return marks == 0 ? marks_.back().bytes : marks_[marks - 1].bytes;
  }
  [[nodiscard]] std::uint64_t least_of(std::uint64_t held, std::size_t first,
                                       std::size_t last) const {
    for (std::size_t i = first; i < last; ++i) held = std::min(held, marks_[i].bytes);
    return held;
  }

  const std::vector<program::MemoryMark>& marks_;
};

/// Operations of a pass that its threads launch.
std::uint64_t launched_by(const program::Program& program) {
  std::uint64_t count = 0;
  for (const program::ThreadProgram& thread : program.threads) {
    for (const program::Step& step : thread.steps) count += step.count;
  }
  return count;
}

/// Measures one rank: a bubble opens when its last running kernel ends. Those of the device's
/// second pass count, wherever its host is: each operation begins once in it.
class BubbleMeter final : public workload::RunObserver {
 public:
  BubbleMeter(const program::Program& program, const std::vector<bool>& peers, Bytes memory,
              std::uint32_t& unfinished)
      : held_(program), peers_(peers), memory_(memory), unfinished_(unfinished),
        begun_(program.ops.size()), left_(launched_by(program)) {
    if (left_ == 0) --unfinished_;
  }

  void on_op_started(workload::ProgramRun& run, std::uint32_t index, SimTime now) override {
    const program::Op& op = run.program().ops[index];
    const bool second = ++begun_[index] == 2;
    if (op.kind == program::WorkKind::kCollective) {
      pass(now);
      ++(is_peer(op) ? transfers_ : others_);
    }
    if (op.kind == program::WorkKind::kKernel && running_++ == 0 && second) close(index, now);
    if (second && --left_ == 0 && --unfinished_ == 0) run.engine().stop();
  }

  void on_op_finished(const workload::OpRecord& record) override {
    const program::Op& op = record.run->program().ops[record.op];
    if (op.kind == program::WorkKind::kCollective) {
      pass(record.end);
      --(is_peer(op) ? transfers_ : others_);
      last_is_peer_ = is_peer(op);
      return;
    }
    if (op.kind != program::WorkKind::kKernel || --running_ > 0) return;
    last_op_ = record.op;
    idle_since_ = passed_ = record.end;
    peers_only_ = {};
    last_is_peer_ = false;
  }

  BubbleTable take() {
    std::ranges::stable_sort(table_, {}, &policy::MeasuredBubble::after_op);
    return std::move(table_);
  }

 private:
  [[nodiscard]] bool is_peer(const program::Op& op) const {
    return op.collective != kNoIndex && peers_[op.collective];
  }

  /// Counts the gap up to `now`.
  void pass(SimTime now) {
    if (transfers_ > 0 && others_ == 0) peers_only_ += now - passed_;
    passed_ = now;
  }

  // A send may be under way in any gap, as in one of a tensor-parallel exchange: that is no wait
  // for the pipeline. Where a peer is waited for, nothing but its transfer runs for the most part
  // of the gap (an exchange may follow), or, beside gradients, it is what ends last.
  [[nodiscard]] bool waits_for_peer(Duration gap) const {
    return last_is_peer_ || 2 * peers_only_ >= gap;
  }

  void close(std::uint32_t next, SimTime now) {
    if (last_op_ == kNoIndex || now - idle_since_ < kShortestBubble) return;
    pass(now);
    policy::BubbleInfo info{now - idle_since_, {}, waits_for_peer(now - idle_since_)};
    if (held_.known()) {
      const std::uint64_t held = std::min(held_.least(last_op_, next), memory_.value);
      info.free_memory = Bytes{memory_.value - held};
    }
    table_.push_back({last_op_, info});
  }

  HeldMemory held_;
  const std::vector<bool>& peers_;
  Bytes memory_;
  std::uint32_t& unfinished_;
  std::uint32_t running_ = 0;
  std::uint32_t transfers_ = 0;  ///< waits for peers under way
  std::uint32_t others_ = 0;     ///< other collectives under way
  std::vector<std::uint32_t> begun_;  ///< by operation: how often it has begun
  std::uint64_t left_;                ///< launched operations that have not begun twice
  std::uint32_t last_op_ = kNoIndex;
  SimTime idle_since_{};
  SimTime passed_{};
  Duration peers_only_{};      ///< of the gap so far: only waits for peers were under way
  bool last_is_peer_ = false;  ///< the last collective that ended in the gap
  BubbleTable table_;
};

/// By collective: the ranks that take part, ascending.
std::vector<std::vector<std::size_t>> ranks_of_collectives(const workload::JobProgram& job) {
  std::vector<std::vector<std::size_t>> ranks(job.collectives.size());
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    for (const program::Op& op : job.ranks[rank].ops) {
      if (op.collective == kNoIndex) continue;
      auto& members = ranks[op.collective];
      if (members.empty() || members.back() != rank) members.push_back(rank);
    }
  }
  return ranks;
}

}  // namespace

std::vector<bool> pipeline_collectives(const workload::JobProgram& job) {
  const auto ranks = ranks_of_collectives(job);
  boost::disjoint_sets_with_storage<> pipelines(job.ranks.size());
  for (std::size_t c = 0; c < ranks.size(); ++c) {
    if (!job.collectives[c].point_to_point) continue;
    for (std::size_t i = 1; i < ranks[c].size(); ++i) pipelines.union_set(ranks[c][0], ranks[c][i]);
  }
  std::vector<bool> peers(ranks.size());
  std::vector<std::size_t> roots;
  for (std::size_t c = 0; c < ranks.size(); ++c) {
    roots.clear();
    for (const std::size_t rank : ranks[c]) roots.push_back(pipelines.find_set(rank));
    std::sort(roots.begin(), roots.end());
    peers[c] = job.collectives[c].point_to_point ||
               std::adjacent_find(roots.begin(), roots.end()) != roots.end();
  }
  return peers;
}

Result<std::vector<BubbleTable>> measure_bubbles(const workload::JobProgram& job,
                                                 const hardware::GpuSpec& spec) {
  auto unfinished = static_cast<std::uint32_t>(job.ranks.size());
  const std::vector<bool> peers = pipeline_collectives(job);
  std::vector<BubbleMeter> meters;
  meters.reserve(job.ranks.size());
  for (const program::Program& rank : job.ranks) {
    meters.emplace_back(rank, peers, spec.memory, unfinished);
  }
  workload::LoneJob lone(job, spec, {workload::Repeat::kLoop, 0, {}},
                         workload::pointers_to(meters));
  if (unfinished > 0) lone.run();
  if (unfinished > 0) {
    return fail("the training job stops when it runs alone: a dependency is never met");
  }
  std::vector<BubbleTable> tables;
  for (BubbleMeter& meter : meters) tables.push_back(meter.take());
  return tables;
}

}  // namespace bubblesim::schedule
