#include "sim/synth/retarget.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/synth/collective_model.hpp"
#include "sim/workload/estimated_shape.hpp"

namespace bubblesim::synth {
namespace {

using workload::JobProgram;
using workload::JoinedCollective;
using program::kNoIndex;
using program::Op;
using program::Program;

std::string count_of(std::uint64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

class Retargeter {
 public:
  Retargeter(JobProgram job, const RetargetSpec& spec) : spec_(spec) {
    result_.job = std::move(job);
  }

  Result<Retargeted> run() {
    if (job().ranks.empty()) return fail("found a job of no rank, expected at least one");
    BUBBLESIM_RETURN_IF_ERROR(find_groups());
    if (spec_.device) change_device();
    if (changes_network()) BUBBLESIM_RETURN_IF_ERROR(change_network());
    change_ranks();
    for (const auto& [name, entry] : result_.counters) job().counters.add(name, entry);
    return std::move(result_);
  }

 private:
  JobProgram& job() { return result_.job; }
  [[nodiscard]] std::uint32_t ranks() const {
    return static_cast<std::uint32_t>(result_.job.ranks.size());
  }
  // Joining leaves ranks out whose recording lacks the collective or contradicts it; the size of
  // the group says whose it is.
  [[nodiscard]] bool is_data_parallel(const JoinedCollective& joined) const {
    return !joined.point_to_point && std::max(joined.participants, joined.group_size) >= ranks();
  }
  [[nodiscard]] bool changes_replicas() const { return result_.replicas != recorded_replicas_; }
  [[nodiscard]] bool changes_network() const {
    return changes_replicas() || spec_.cluster.has_value();
  }
  void say(std::string text) { result_.extrapolated.push_back(std::move(text)); }

  // How many replicas were there, and can their number change?
  Result<void> find_groups() {
    std::uint64_t of_some = 0;
    for (const JoinedCollective& joined : job().collectives) {
      if (joined.transfer != kNoIndex) {
        return fail("found a job whose collectives are modelled, expected a captured one");
      }
      if (is_data_parallel(joined)) {
        recorded_replicas_ =
            std::max({recorded_replicas_, joined.participants, joined.group_size});
      } else {
        ++of_some;
      }
    }
    const bool parallel = recorded_replicas_ > 0;
    recorded_replicas_ = std::max(recorded_replicas_, ranks());
    result_.replicas = spec_.replicas == 0 ? recorded_replicas_ : spec_.replicas;
    if (!changes_replicas()) return {};
    const std::string asked = "found " + count_of(result_.replicas, "replica") +
                              " asked of a job recorded with " +
                              std::to_string(recorded_replicas_) + ", ";
    if (of_some > 0) {
      return fail(asked + "with " + count_of(of_some, "operation") +
                  " between some ranks only; expected a job that is data-parallel alone, or " +
                  std::to_string(recorded_replicas_) + " replicas");
    }
    if (!parallel) {
      return fail(asked + "in which no collective was found on all ranks; expected the traces of "
                          "at least two ranks of a data-parallel job");
    }
    if (!spec_.cluster && !spec_.recorded_cluster) {
      return fail(asked + "but no cluster is named; expected one, to model its collectives on");
    }
    return {};
  }

  void change_device() {
    say("kernels run on " + spec_.device->device.name +
        ": recorded times scaled by the class of the kernel's name; launch shapes, host and copy "
        "times are those recorded");
    for (Program& program : job().ranks) {
      scale_kernels(program);
      profile_again(program);
    }
  }

  void scale_kernels(Program& program) {
    std::map<std::pair<NameId, program::KernelClass>, double> ratios;
    for (Op& op : program.ops) {
      if (op.kind == program::WorkKind::kCollective) continue;
      if (op.kind == program::WorkKind::kCopy) {
        result_.counters.add(kCopiesKept);
        continue;
      }
      const program::KernelClass kernel_class =
          op.profile == kNoIndex ? program::KernelClass::kMemory
                                 : program.profiles[op.profile].kernel_class;
      const auto [place, fresh] = ratios.try_emplace({op.name, kernel_class});
      if (fresh) {
        const bool named = op.name.index() < program.names.size();
        place->second = spec_.device->ratio(
            named ? std::string_view(program.names[op.name]) : std::string_view(), kernel_class);
      }
      op.duration = scale(op.duration, place->second);
      result_.counters.add(kKernelsScaled);
    }
  }

  void profile_again(Program& program) {
    if (program.shapes.size() != program.profiles.size()) {
      result_.counters.add(kProfilesKept, program.profiles.size());
      return;
    }
    for (std::size_t i = 0; i < program.profiles.size(); ++i) {
      program.profiles[i] =
          program::profile_kernel(workload::launch_needs(program.shapes[i]),
                              program.profiles[i].kernel_class, spec_.device->device);
    }
  }

  Result<void> change_network() {
    const hardware::ClusterSpec& cluster = spec_.cluster ? *spec_.cluster : *spec_.recorded_cluster;
    BUBBLESIM_ASSIGN_OR_RETURN(
        CollectiveModel target,
        CollectiveModel::make(cluster, result_.replicas, result_.extrapolated));
    std::optional<CollectiveModel> recorded;
    if (spec_.recorded_cluster) {
      BUBBLESIM_ASSIGN_OR_RETURN(recorded,
                                 CollectiveModel::make(*spec_.recorded_cluster, recorded_replicas_,
                                                       result_.extrapolated));
    }
    say("collectives of all ranks are taken as data-parallel, and run among " +
        count_of(result_.replicas, "rank") + " of " + cluster.name +
        (recorded ? ": recorded spans times the ratio of modelled times"
                  : ": modelled times, not calibrated, as the recorded cluster is not known"));
    change_collectives(target, recorded);
    const std::uint64_t kept = result_.counters.count(kCollectivesKept.name);
    if (kept > 0) say(count_of(kept, "collective") + " cannot be modelled: recorded times kept");
    return {};
  }

  void change_collectives(CollectiveModel& target, std::optional<CollectiveModel>& recorded) {
    const std::vector<std::vector<Op*>> parts = parts_of_collectives();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].empty()) continue;
      JoinedCollective& joined = job().collectives[i];
      const auto kind = network_kind(joined.kind);
      if (!kind || !is_data_parallel(joined) ||
          !change_collective(*kind, joined, parts[i], target, recorded)) {
        result_.counters.add(kCollectivesKept);
        continue;
      }
      result_.counters.add(recorded ? kCollectivesScaled : kCollectivesModelled);
    }
  }

  std::vector<std::vector<Op*>> parts_of_collectives() {
    std::vector<std::vector<Op*>> parts(job().collectives.size());
    for (Program& program : job().ranks) {
      for (Op& op : program.ops) {
        if (op.kind != program::WorkKind::kCollective) continue;
        if (op.collective == kNoIndex) {
          result_.counters.add(kCollectivesKept);
        } else {
          parts[op.collective].push_back(&op);
        }
      }
    }
    return parts;
  }

  // False: it cannot be modelled.
  bool change_collective(network::CollectivePattern kind, const JoinedCollective& joined,
                         const std::vector<Op*>& parts, CollectiveModel& target,
                         std::optional<CollectiveModel>& recorded) {
    double array = array_bytes(kind, joined.bytes, recorded_replicas_);
    if (joined.kind == traces::CollectiveKind::kBarrier) array = 4;
    if (array == 0) {
      if (!recorded) return false;
      const auto found = recorded->array_for(kind, longest(parts));
      if (!found) return false;
      array = *found;
      result_.counters.add(kBytesInferred);
    }
    const Duration now = target.time(kind, array);
    if (!recorded) {
      for (Op* op : parts) op->duration = now;
      return true;
    }
    const Duration then = recorded->time(kind, array);
    if (then <= Duration{}) return false;
    for (Op* op : parts) op->duration = scale(op->duration, to_seconds(now) / to_seconds(then));
    return true;
  }

  static Duration longest(const std::vector<Op*>& parts) {
    Duration span{};
    for (const Op* op : parts) span = std::max(span, op->duration);
    return span;
  }

  // More ranks repeat the recorded ones in turn; fewer leave the last ones out.
  void change_ranks() {
    if (!changes_replicas()) return;
    const std::uint32_t before = ranks();
    const bool folded = spec_.copies == Copies::kFolded;
    const std::uint32_t after = folded ? std::min(before, result_.replicas) : result_.replicas;
    name_ranks(before);
    job().ranks.resize(std::min(before, after));
    job().ranks.reserve(after);
    for (std::uint32_t i = before; i < after; ++i) {
      job().ranks.push_back(job().ranks[i % before]);
    }
    for (std::uint32_t i = 0; i < after; ++i) job().ranks[i].rank = i;
    count_participants();
  }

  void count_participants() {
    for (JoinedCollective& joined : job().collectives) {
      joined.participants = 0;
      joined.group_size = result_.replicas;
    }
    for (const Program& program : job().ranks) {
      for (const Op& op : program.ops) {
        if (op.collective != kNoIndex) ++job().collectives[op.collective].participants;
      }
    }
    for (JoinedCollective& joined : job().collectives) {
      joined.participants = std::max(1U, joined.participants);  // nobody's, if left out
    }
  }

  void name_ranks(std::uint32_t before) {
    if (result_.replicas < before) {
      result_.counters.add(kRanksDropped, before - result_.replicas);
      say("the job has " + count_of(result_.replicas, "rank") + ": the last " +
          std::to_string(before - result_.replicas) + " recorded ones are left out");
    } else if (result_.replicas > before) {
      result_.counters.add(kRanksCopied, result_.replicas - before);
      say("the job has " + count_of(result_.replicas, "rank") + ": " +
          count_of(result_.replicas - before, "rank") + " repeat the " + std::to_string(before) +
          " recorded ones in turn" +
          (spec_.copies == Copies::kFolded ? " and are folded into them" : ""));
    }
    say("each rank's batch, arrays of collectives, and shards of parameters or optimiser are "
        "those recorded");
  }

  const RetargetSpec& spec_;
  Retargeted result_;
  std::uint32_t recorded_replicas_ = 0;  ///< captured or not
};

}  // namespace

Result<Retargeted> retarget(JobProgram job, const RetargetSpec& spec) {
  return Retargeter(std::move(job), spec).run();
}

}  // namespace bubblesim::synth
