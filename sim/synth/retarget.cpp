#include "sim/synth/retarget.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>

#include "sim/model/kernel_time.hpp"
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

// The whole array of a collective of `ranks` ranks with `input` bytes each: an all-gather's is the
// sum over ranks, a barrier's one element.
double array_bytes(traces::CollectiveKind kind, std::uint64_t input, std::uint32_t ranks) {
  if (kind == traces::CollectiveKind::kBarrier) return 4;
  const double bytes = static_cast<double>(input);
  return kind == traces::CollectiveKind::kAllGather ? bytes * ranks : bytes;
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
    const std::uint64_t kept = change_collectives(target, recorded);
    if (kept > 0) say(count_of(kept, "collective") + " cannot be modelled: recorded times kept");
    return {};
  }

  // Returns how many keep their recorded times.
  std::uint64_t change_collectives(CollectiveModel& target,
                                   std::optional<CollectiveModel>& recorded) {
    std::uint64_t kept = 0;
    const std::vector<std::vector<Op*>> parts = parts_of_collectives(kept);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].empty()) continue;
      JoinedCollective& joined = job().collectives[i];
      const auto kind = network_kind(joined.kind);
      if (!kind || !is_data_parallel(joined) ||
          !change_collective(*kind, joined, parts[i], target, recorded)) {
        ++kept;
        continue;
      }
      result_.counters.add(recorded ? kCollectivesScaled : kCollectivesModelled);
    }
    result_.counters.add(kCollectivesKept, kept);
    return kept;
  }

  std::vector<std::vector<Op*>> parts_of_collectives(std::uint64_t& unjoined) {
    std::vector<std::vector<Op*>> parts(job().collectives.size());
    for (Program& program : job().ranks) {
      for (Op& op : program.ops) {
        if (op.kind != program::WorkKind::kCollective) continue;
        if (op.collective == kNoIndex) {
          ++unjoined;
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
    double array = array_bytes(joined.kind, joined.bytes, recorded_replicas_);
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
      joined.participants = std::max(1U, joined.participants);  // 0 if its ranks were left out
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

std::optional<network::CollectivePattern> network_kind(traces::CollectiveKind kind) {
  using From = traces::CollectiveKind;
  using To = network::CollectivePattern;
  switch (kind) {
    case From::kAllReduce:
    case From::kBarrier: return To::kAllReduce;
    case From::kAllGather: return To::kAllGather;
    case From::kReduceScatter: return To::kReduceScatter;
    case From::kBroadcast:
    case From::kReduce: return To::kBroadcast;
    case From::kAllToAll: return To::kAllToAll;
    case From::kUnknown:
    case From::kSend:
    case From::kRecv:
    case From::kSendRecv: return std::nullopt;
  }
  return std::nullopt;
}

CollectiveModel::CollectiveModel(hardware::ClusterSpec cluster, std::uint32_t ranks)
    : topology_(std::move(cluster)), group_(network::strided_group(0, ranks)) {}

Result<CollectiveModel> CollectiveModel::make(hardware::ClusterSpec cluster, std::uint32_t ranks,
                                              std::vector<std::string>& notes) {
  if (ranks > cluster.gpus()) {
    const std::string has = cluster.name + " has " + std::to_string(cluster.gpus()) + " GPUs";
    if (cluster.nics.count == 0) {
      return fail("found " + std::to_string(ranks) + " ranks, but cluster " + has +
                  " and no network between nodes; expected at most " +
                  std::to_string(cluster.gpus()));
    }
    const std::uint32_t nodes = (ranks + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
    notes.push_back("cluster " + has + "; taken with " + std::to_string(nodes) + " nodes");
    cluster = hardware::with_nodes(std::move(cluster), nodes);
  }
  return CollectiveModel(std::move(cluster), ranks);
}

Duration CollectiveModel::time(network::CollectivePattern kind, double array,
                               std::vector<std::uint32_t> listed) {
  network::Group group = group_;
  group.listed = listed;
  const auto [place, fresh] = times_.try_emplace({kind, array, std::move(listed)});
  if (fresh) {
    const Bytes bytes{static_cast<std::uint64_t>(std::llround(array))};
    place->second = topology_.solo_time(topology_.plan(kind, bytes, group));
  }
  return place->second;
}

std::optional<double> CollectiveModel::array_for(network::CollectivePattern kind, Duration span) {
  double low = 1;
  double high = 1e13;  // an array that no GPU holds
  if (time(kind, low) > span) return std::nullopt;
  while (high > low * 1.001) {
    const double middle = std::sqrt(low * high);
    (time(kind, middle) > span ? high : low) = middle;
  }
  return low;
}

namespace {

constexpr double kMostArray = 1e15;  // bytes that no job holds: a petabyte

/// Nothing: kind or size does not say what is moved.
std::optional<std::pair<network::CollectivePattern, double>> moved_by(
    const traces::UntimedCollective& untimed) {
  using traces::CollectiveKind;
  const bool pair =
      untimed.kind == CollectiveKind::kSend || untimed.kind == CollectiveKind::kRecv;
  const auto kind =
      pair ? network::CollectivePattern::kSendRecv : network_kind(untimed.kind);
  if (!kind) return std::nullopt;
  const double array =
      array_bytes(untimed.kind, untimed.bytes, static_cast<std::uint32_t>(untimed.ranks.size()));
  if (array < 1 || array > kMostArray) return std::nullopt;
  return std::pair(*kind, array);
}

}  // namespace

traces::CollectiveTimes collective_times(hardware::ClusterSpec cluster) {
  // The cluster takes the job's size when it is known; every copy of the function has one model.
  const auto model = std::make_shared<std::optional<CollectiveModel>>();
  return [cluster = std::move(cluster),
          model](const traces::UntimedCollective& untimed) -> Result<Duration> {
    if (!*model) {
      std::vector<std::string> notes;
      BUBBLESIM_ASSIGN_OR_RETURN(*model, CollectiveModel::make(cluster, untimed.world, notes));
    }
    const auto moved = moved_by(untimed);
    if (!moved) return Duration{};
    return (*model)->time(moved->first, moved->second,
                          {untimed.ranks.begin(), untimed.ranks.end()});
  };
}

namespace {

using model::Precision;

// The first word found decides: "bf16" stands before "f16", which it contains.
constexpr std::array<std::pair<std::string_view, Precision>, 14> kWords{{
    {"bf16", Precision::kBf16},
    {"bfloat16", Precision::kBf16},
    {"e4m3", Precision::kFp8},
    {"fp8", Precision::kFp8},
    {"tf32", Precision::kTf32},
    {"s1688", Precision::kTf32},
    {"fp16", Precision::kFp16},
    {"f16", Precision::kFp16},
    {"half", Precision::kFp16},
    {"hgemm", Precision::kFp16},
    {"h884", Precision::kFp16},
    {"s884", Precision::kFp16},
    {"sgemm", Precision::kFp32},
    {"ffma", Precision::kFp32},
}};

model::BoundBy bound_by(program::KernelClass kernel_class) {
  switch (kernel_class) {
    case program::KernelClass::kCompute: return model::BoundBy::kCompute;
    case program::KernelClass::kMemory: return model::BoundBy::kMemory;
    case program::KernelClass::kUnknown: return model::BoundBy::kUnknown;
  }
  return model::BoundBy::kUnknown;
}

}  // namespace

std::optional<Precision> precision_of(std::string_view kernel_name) {
  for (const auto& [word, precision] : kWords) {
    if (kernel_name.find(word) != std::string_view::npos) return precision;
  }
  return std::nullopt;
}

KernelRatio kernel_ratio(RooflineDevice from, RooflineDevice to) {
  return [from = std::move(from), to = std::move(to)](std::string_view name,
                                                      program::KernelClass kernel_class) {
    return model::roofline_ratio(bound_by(kernel_class),
                                 precision_of(name).value_or(Precision::kBf16),
                                 {from.gpu, from.efficiency}, {to.gpu, to.efficiency});
  };
}

}  // namespace bubblesim::synth
