// Recordings of pipelines as PyTorch's versions describe them, every meeting known.
//
// What they write, by their source (ProcessGroupNCCL.cpp, ParamCommsUtils.hpp, profiler/util.cpp)
// and the pull requests of pytorch/pytorch that changed it:
//   1.13, 2.1  a range "nccl:send" around a launch; kernels carry nothing
//   2.2        a range "nccl:send 0->1", of places in the group (111811); here without more
//   2.4        kernels carry name, size, group, ranks; no peer
//   2.7, 2.9   kernels and operators carry "Src Rank" or "Dst Rank" too (130812), operators "Rank",
//              a peer's place (129528)
//   2026       and "Seq" (177148): of a group's collectives, which a batch of sends on this rank
//              advances, too (startCoalescing); of its sends and receives on this rank
// Before 2.4 batches have a range of each send and receive, from it on an operator of each
// (record_param_comms); the kernel of a batch is launched after them and carries nothing (issue
// 194693). Lists of ranks that are not evenly apart are empty ("[]").
// A group has a communicator and a stream. Single sends have those of their two ranks, batched ones
// the group's (getKeySendRecv in ProcessGroupNCCL.cpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace bubblesim::run::testing {

enum class Torch { k1_13, k2_1, k2_2, k2_4, k2_7, k2_9, k2026 };
enum class Sends { kSingle, kBatched };
enum class Groups { kOne, kPerNeighbour };  ///< communicators of a pipeline
enum class Names { kUnique, kShared };      ///< shared: as of split_group, one name for all
/// kSome: kernels take up to 255 us longer, ends of a meeting are up to 3 us apart.
enum class Noise { kNone, kSome };

struct Job {
  Torch torch = Torch::k2_7;
  std::uint32_t stages = 2, tensor = 1, data = 1;
  Sends sends = Sends::kSingle;
  Groups groups = Groups::kOne;
  Names names = Names::kUnique;
  Noise noise = Noise::kNone;
};

struct Group {
  std::string name;
  std::vector<std::uint32_t> ranks;
  [[nodiscard]] std::size_t place(std::uint32_t rank) const {
    return static_cast<std::size_t>(std::ranges::find(ranks, rank) - ranks.begin());
  }
};

/// Times in whole microseconds. Each iteration: two micro-batches forward, then backward; in
/// batches, an exchange between neighbours; gradients' norm summed over a pipeline that is one
/// group; gradients summed over replicas.
class Recording {
 public:
  static constexpr std::int64_t kCompute = 1'000, kTransfer = 60, kIteration = 40'000;
  static constexpr int kComputeStream = 7;

  explicit Recording(const Job& job) : job_(job), ranks_(job.stages * job.tensor * job.data) {
    for (std::uint32_t own = 0; own < ranks_.size(); ++own) ranks_[own].noise = own;
    for (std::uint32_t iteration = 0; iteration < 3; ++iteration) add_iteration(iteration);
  }

  /// The files' texts, by rank.
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> texts;
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      texts.push_back(fmt::format(
          R"({{"schemaVersion": 1, "deviceProperties": [{{"id": 0, )"
          R"("name": "NVIDIA A100-SXM4-80GB", "numSms": 108, )"
          R"("totalGlobalMem": 85000000000}}], )"
          R"("distributedInfo": {{"backend": "nccl", "rank": {}, "world_size": {}}}, )"
          R"("traceEvents": [{}]}})",
          rank, ranks_.size(), fmt::join(ranks_[rank].events, ",\n")));
    }
    return texts;
  }
  struct End {
    const char* name;  // "send", "recv"
    std::uint32_t partner;
  };
  struct Kernel {
    std::string name;
    int stream = 0, meeting = -1;  // -1: none
    std::int64_t called = 0, start = 0, end = 0;
    std::vector<std::uint32_t> communicator;  // its ranks; empty: none
    std::vector<End> ends;                    // of sends and receives
  };
  /// Of a rank, in order of launch.
  [[nodiscard]] const std::vector<Kernel>& kernels(std::uint32_t rank) const {
    return ranks_[rank].kernels;
  }
  [[nodiscard]] std::uint32_t rank_count() const {
    return static_cast<std::uint32_t>(ranks_.size());
  }
  [[nodiscard]] int meeting_count() const { return meeting_; }

 private:
  struct Rank {
    std::vector<std::string> events;
    std::vector<Kernel> kernels;
    std::int64_t host = 0, compute = 0, comm = 0;
    int correlation = 0, last = kComputeStream;  // the stream that was launched on
    std::uint32_t noise = 0;
    std::map<std::string, int> collectives, transfers;  // of groups, so far
    std::map<std::string, int> streams;                 // of communicators
  };

  [[nodiscard]] std::uint32_t rank(std::uint32_t d, std::uint32_t p, std::uint32_t t) const {
    return (d * job_.stages + p) * job_.tensor + t;
  }
  [[nodiscard]] std::string name(const char* kind, std::uint32_t number) const {
    return job_.names == Names::kShared ? kind : fmt::format("{}{}", kind, number);
  }

  // The norm of a pipeline's gradients is summed over its stages, if they are one group.
  [[nodiscard]] bool has_norm() const { return job_.stages > 2 && job_.groups == Groups::kOne; }

  Group pipeline(std::uint32_t d, std::uint32_t p, std::uint32_t t) const {
    Group group{name("pipe", 1000 * d + t), {}};
    for (std::uint32_t stage = 0; stage < job_.stages; ++stage) {
      group.ranks.push_back(rank(d, stage, t));
    }
    if (job_.groups == Groups::kOne) return group;
    return {name("pair", 1000 * (1000 * d + p) + t), {rank(d, p, t), rank(d, p + 1, t)}};
  }

  void event(Rank& on, const char* category, const std::string& name, std::int64_t at,
             std::int64_t lasts, const std::string& args) {
    const bool device = std::string_view(category) == "kernel";
    on.events.push_back(fmt::format(
        R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": {}, "tid": {}, "ts": {}, "dur": {}.000,)"
        R"( "args": {{{}}}}})",
        category, name, device ? 0 : 100, device ? 7 : 1, at, lasts, args));
  }

  static int stream_of(Rank& on, const std::vector<std::uint32_t>& ranks) {
    if (ranks.empty()) return kComputeStream;
    const int next = kComputeStream + 13 + static_cast<int>(on.streams.size());
    return on.streams.try_emplace(fmt::format("{}", fmt::join(ranks, ",")), next).first->second;
  }

  // Below `bound`, a power of two.
  std::int64_t noise(std::uint32_t own, std::uint32_t bound) {
    if (job_.noise == Noise::kNone) return 0;
    std::uint32_t& state = ranks_[own].noise;
    state = state * 1'664'525 + 1'013'904'223;
    return (state >> 16U) % bound;
  }

  // The kernel waits for what the rank launched before.
  void launch(Rank& on, Kernel kernel, const std::string& args) {
    kernel.stream = stream_of(on, kernel.communicator);
    kernel.called = on.host + 3;
    const int wait = ++on.correlation, record = ++on.correlation, call = ++on.correlation;
    const int other = std::exchange(on.last, kernel.stream);
    event(on, "cuda_runtime", "cudaEventRecord", on.host, 1,
          fmt::format(R"("correlation": {})", record));
    event(on, "cuda_runtime", "cudaStreamWaitEvent", on.host + 1, 1,
          fmt::format(R"("correlation": {})", wait));
    event(on, "cuda_sync", "Stream Wait Event", on.host + 1, 0,
          fmt::format(R"("cuda_sync_kind": "Stream Wait Event", "stream": {}, )"
                      R"("wait_on_stream": {}, "wait_on_cuda_event_record_corr_id": {}, )"
                      R"("wait_on_cuda_event_id": {}, "device": 0, "correlation": {})",
                      kernel.stream, other, record, record, wait));
    event(on, "cuda_runtime", "cudaLaunchKernel", kernel.called, 2,
          fmt::format(R"("correlation": {})", call));
    event(on, "kernel", kernel.name, kernel.start, kernel.end - kernel.start,
          fmt::format(R"("device": 0, "stream": {}, "correlation": {}, "grid": [2, 1, 1], )"
                      R"("block": [256, 1, 1]{})", kernel.stream, call, args));
    on.kernels.push_back(std::move(kernel));
    on.host += 8;
  }

  [[nodiscard]] bool names_kernels() const { return job_.torch >= Torch::k2_4; }
  [[nodiscard]] std::string kernel_of(const char* what) const {
    return names_kernels() ? fmt::format("ncclDevKernel_{}(ncclDevKernelArgsStorage<4096ul>)", what)
                           : fmt::format("ncclKernel_{}_RING_LL_Sum_float(ncclWorkElem)", what);
  }

  // What a kernel or an operator carries; `partner` of sends and receives.
  std::string args(const Group& group, const char* what, const End* end, int number,
                   bool of_operator) const {
    const std::uint32_t apart = group.ranks[1] - group.ranks[0];
    bool even = true;
    for (std::size_t i = 1; i < group.ranks.size(); ++i) {
      even = even && group.ranks[i] - group.ranks[i - 1] == apart;
    }
    std::string text = fmt::format(
        R"(, "Collective name": "{}", "In msg nelems": 4096, "Out msg nelems": 4096, )"
        R"("Group size": {}, "dtype": "Half", "Process Group Name": "{}", )"
        R"("Process Group Description": "undefined", "Process Group Ranks": "[{}]")",
        what, group.ranks.size(), group.name,
        even ? fmt::format("{}", fmt::join(group.ranks, ", ")) : "");
    if (end != nullptr && job_.torch >= Torch::k2_7) {
      if (even) {
        text += fmt::format(R"(, "{}": {})", end->name[0] == 's' ? "Dst Rank" : "Src Rank",
                            end->partner);
      }
      if (of_operator) text += fmt::format(R"(, "Rank": {})", group.place(end->partner));
    }
    if (job_.torch == Torch::k2026) text += fmt::format(R"(, "Seq": {})", number);
    return text;
  }

  // A range or an operator; the calls within take 8 us each.
  void announce(Rank& on, std::uint32_t own, const Group& group, const End& end,
                std::int64_t lasts) {
    const bool send = end.name[0] == 's';
    const std::string range =
        job_.torch <= Torch::k2_1
            ? fmt::format("nccl:{}", end.name)
            : fmt::format("nccl:{} {}{}{}", end.name, group.place(own), send ? "->" : "<-",
                          group.place(end.partner));
    const bool batched = job_.sends == Sends::kBatched;
    if (names_kernels()) {
      event(on, "cpu_op", "record_param_comms", on.host - 2, lasts + 3,
            R"("External id": 1)" + args(group, end.name, &end, on.transfers[group.name], true));
    }
    if (!batched || !names_kernels()) {
      event(on, "user_annotation", range, on.host - 1, lasts + 1, "");
    }
  }

  // What one kernel of `own` sends and receives.
  void transfer(std::uint32_t own, const Group& group, const std::vector<End>& ends,
                std::int64_t start, std::int64_t end) {
    Rank& on = ranks_[own];
    ++on.transfers[group.name];
    on.host += 3;
    if (job_.sends == Sends::kBatched) ++on.collectives[group.name];
    Kernel kernel{kernel_of("SendRecv"), 0, meeting_, 0, start, end, group.ranks, ends};
    if (job_.sends == Sends::kSingle) {
      const std::uint32_t to = ends[0].partner;
      kernel.communicator = {std::min(own, to), std::max(own, to)};
      announce(on, own, group, ends[0], 8);
      launch(on, kernel,
             names_kernels() ? args(group, ends[0].name, &ends[0], on.transfers[group.name], false)
                             : "");
    } else {
      for (const End& each : ends) {
        announce(on, own, group, each, 2);
        on.host += 10;
      }
      const std::int64_t before = on.host;
      launch(on, kernel, "");
      if (names_kernels()) event(on, "user_annotation", "nccl:coalesced", before - 1, 10, "");
    }
    on.host += 4;
    on.comm = end;
  }

  void send(const Group& group, std::uint32_t from, std::uint32_t to) {
    const std::int64_t sent = std::max({ranks_[from].comm, ranks_[from].compute, ready(from)});
    const std::int64_t received = std::max(ranks_[to].comm, ready(to));
    const std::int64_t end = std::max(sent, received) + kTransfer;
    transfer(from, group, {{"send", to}}, sent, end + noise(from, 4));
    transfer(to, group, {{"recv", from}}, received, end + noise(to, 4));
    ++meeting_;
  }
  void exchange(const Group& group, std::uint32_t a, std::uint32_t b) {
    const std::int64_t first = std::max({ranks_[a].comm, ranks_[a].compute, ready(a)});
    const std::int64_t second = std::max({ranks_[b].comm, ranks_[b].compute, ready(b)});
    const std::int64_t end = std::max(first, second) + kTransfer;
    transfer(a, group, {{"send", b}, {"recv", b}}, first, end + noise(a, 4));
    transfer(b, group, {{"recv", a}, {"send", a}}, second, end + noise(b, 4));
    ++meeting_;
  }

  // A kernel may start when its launch, some calls from now, has returned.
  [[nodiscard]] std::int64_t ready(std::uint32_t rank) const { return ranks_[rank].host + 60; }

  void compute(std::uint32_t own) {
    Rank& on = ranks_[own];
    const std::int64_t start = std::max({on.compute, on.comm, ready(own)});
    on.compute = start + kCompute + noise(own, 256);
    launch(on, {"gemm", 0, -1, 0, start, on.compute, {}, {}}, "");
  }

  void all_reduce(const Group& group) {
    std::int64_t last = 0;
    for (const std::uint32_t own : group.ranks) {
      last = std::max({last, ranks_[own].comm, ranks_[own].compute, ready(own)});
    }
    for (const std::uint32_t own : group.ranks) {
      Rank& on = ranks_[own];
      const std::int64_t start = std::max({on.comm, on.compute, ready(own)});
      const int number = ++on.collectives[group.name];
      const std::int64_t end = last + kTransfer + noise(own, 4);
      on.host += 3;
      event(on, "user_annotation", "nccl:all_reduce", on.host - 1, 9, "");
      Kernel kernel{kernel_of("AllReduce_Sum_f16_RING_LL"), 0, meeting_, 0, start, end,
                    group.ranks, {}};
      launch(on, std::move(kernel),
             names_kernels() ? args(group, "allreduce", nullptr, number, false) : "");
      on.comm = end;
      on.compute = std::max(on.compute, on.comm);
    }
    ++meeting_;
  }

  void stage(std::uint32_t d, std::uint32_t p) {
    for (std::uint32_t t = 0; t < job_.tensor; ++t) compute(rank(d, p, t));
    if (job_.tensor == 1) return;
    Group group{name("tensor", 1000 * d + p), {}};
    for (std::uint32_t t = 0; t < job_.tensor; ++t) group.ranks.push_back(rank(d, p, t));
    all_reduce(group);
  }

  void replica(std::uint32_t d) {
    for (int batch = 0; batch < 2; ++batch) {
      for (std::uint32_t p = 0; p < job_.stages; ++p) {
        stage(d, p);
        for (std::uint32_t t = 0; t < job_.tensor && p + 1 < job_.stages; ++t) {
          send(pipeline(d, p, t), rank(d, p, t), rank(d, p + 1, t));
        }
      }
    }
    for (int batch = 0; batch < 2; ++batch) {
      for (std::uint32_t p = job_.stages; p-- > 0;) {
        stage(d, p);
        for (std::uint32_t t = 0; t < job_.tensor && p > 0; ++t) {
          send(pipeline(d, p - 1, t), rank(d, p, t), rank(d, p - 1, t));
        }
      }
    }
    for (std::uint32_t p = 0; p + 1 < job_.stages && job_.sends == Sends::kBatched; ++p) {
      for (std::uint32_t t = 0; t < job_.tensor; ++t) {
        exchange(pipeline(d, p, t), rank(d, p, t), rank(d, p + 1, t));
      }
    }
    for (std::uint32_t t = 0; t < job_.tensor && has_norm(); ++t) all_reduce(pipeline(d, 0, t));
  }

  void add_iteration(std::uint32_t iteration) {
    const std::int64_t begin = 1'000'000 + iteration * kIteration;
    for (std::uint32_t own = 0; own < ranks_.size(); ++own) {
      // Ranks begin apart, but for those of a tensor group.
      const std::int64_t at = begin + 97 * (own / job_.tensor % 7) + 13 * (own % job_.tensor);
      ranks_[own].host = ranks_[own].compute = ranks_[own].comm = at;
      event(ranks_[own], "user_annotation", fmt::format("ProfilerStep#{}", iteration), begin,
            kIteration - 10, "");
    }
    for (std::uint32_t d = 0; d < job_.data; ++d) replica(d);
    for (std::uint32_t own = 0; job_.data > 1 && own < job_.stages * job_.tensor; ++own) {
      Group group{name("data", own), {}};
      for (std::uint32_t d = 0; d < job_.data; ++d) {
        group.ranks.push_back(d * job_.stages * job_.tensor + own);
      }
      all_reduce(group);
    }
    for (Rank& on : ranks_) {
      event(on, "cuda_runtime", "cudaDeviceSynchronize", on.host,
            std::max(on.compute, on.comm) + 20 - on.host,
            fmt::format(R"("correlation": {})", ++on.correlation));
    }
  }

  Job job_;
  std::vector<Rank> ranks_;
  int meeting_ = 0;
};

}  // namespace bubblesim::run::testing
