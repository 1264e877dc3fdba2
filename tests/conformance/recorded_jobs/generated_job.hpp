// Small training jobs as PyTorch's profiler would have recorded them, made from a few numbers, so
// that the true iteration time is known.
//
// Each rank has one host thread, which launches the kernels of an iteration one after another onto
// one stream, the last of them an all-reduce that ends on all ranks together. A launch takes effect
// when it is called, and holds the thread while the stream has `queue` operations that have not
// ended. Kernel durations are drawn once per rank, so all iterations after the warm-up are alike.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "sim/base/time.hpp"

namespace bubblesim::testing {

struct GeneratedJob {
  std::uint64_t seed = 1;
  std::uint32_t ranks = 2;
  std::uint32_t iterations = 6;      ///< recorded ones, with a marker each if `marks`
  std::uint32_t kernels = 60;        ///< of an iteration, without the all-reduce
  Duration kernel{100'000};          ///< mean; drawn between half and one and a half of it
  Duration think{2'000};             ///< of the host before each launch
  Duration call{4'000};              ///< of a launch that is not held
  Duration all_reduce{300'000};      ///< from the last rank's arrival on
  std::uint32_t queue = 1024;        ///< operations that a stream holds; a launch beyond waits
  bool synchronises = true;          ///< the host waits for the device at the end of an iteration
  Duration pause{};                  ///< of the host at the end of an iteration: data loading
  bool marks = true;                 ///< whether iterations are marked
  std::uint32_t before_window = 0;   ///< iterations before the recording begins
  Duration first_wait{};             ///< the recording begins with a wait for a copy, which other,
                                     ///< unrecorded work holds up; 0, or 10 us at least
  std::uint32_t warmups = 0;         ///< recorded iterations whose host takes ten times as long
  Duration idle_before{};            ///< idle time after a first recorded call
};

constexpr Duration kLaunchLag{3'000};   // from a launch's call to the kernel's start on an idle GPU
constexpr Duration kGap{1'000};         // between kernels of one stream
constexpr Duration kReturn{2'000};      // from the last kernel's end to the wait's return
constexpr Duration kCopyCall{20'000};
constexpr int kWarmupFactor = 10;
// Iterations that are made beyond those that are recorded, so that the last one has a successor.
constexpr std::uint32_t kAfter = 1;

struct Call {
  const char* name;
  Duration start{};
  Duration end{};
  std::uint64_t correlation = 0;
};

struct Kernel {
  Duration start{};
  Duration end{};
  std::uint64_t correlation = 0;
  std::uint32_t place = 0;      ///< in its iteration
  std::uint64_t iteration = 0;
};

/// What happened on one rank, since the start of the job.
struct RankHistory {
  std::vector<Duration> durations;  ///< of the kernels of an iteration
  std::vector<Call> calls;
  std::vector<Kernel> kernels;
  std::vector<Duration> begins;     ///< of iterations on the host
  Duration host{};
};

inline Duration draw(std::mt19937_64& random, Duration mean) {
  const auto parts = static_cast<std::int64_t>(random() % 1001);
  return mean / 2 + mean * parts / 1000;
}

inline std::vector<RankHistory> ranks_of(const GeneratedJob& job) {
  std::mt19937_64 random(job.seed);
  std::vector<RankHistory> ranks(job.ranks);
  for (RankHistory& rank : ranks) {
    for (std::uint32_t i = 0; i < job.kernels; ++i) {
      rank.durations.push_back(draw(random, job.kernel));
    }
  }
  return ranks;
}

/// One launch and the start of what it launches.
inline void launch(const GeneratedJob& job, int slowness, std::uint64_t iteration,
                   std::uint32_t place, RankHistory& rank) {
  const std::uint64_t correlation = 10 + 2 * rank.kernels.size();
  rank.host += job.think * slowness;
  const Duration begin = rank.host;
  rank.host += job.call * slowness;
  if (rank.kernels.size() >= job.queue) {
    rank.host = std::max(rank.host, rank.kernels[rank.kernels.size() - job.queue].end);
  }
  rank.calls.push_back({"cudaLaunchKernel", begin, rank.host, correlation});
  const Duration queued = rank.host - job.call * slowness + kLaunchLag;
  const Duration free = rank.kernels.empty() ? Duration{} : rank.kernels.back().end + kGap;
  rank.kernels.push_back({std::max(queued, free), {}, correlation, place, iteration});
}

inline void end_iteration(const GeneratedJob& job, RankHistory& rank) {
  if (job.synchronises) {
    const Duration begin = rank.host + job.think;
    rank.host = std::max(begin + job.call, rank.kernels.back().end + kReturn);
    rank.calls.push_back({"cudaDeviceSynchronize", begin, rank.host, 11 + 2 * rank.kernels.size()});
  }
  rank.host += job.pause;
}

inline std::vector<RankHistory> history_of(const GeneratedJob& job) {
  std::vector<RankHistory> ranks = ranks_of(job);
  const std::uint32_t first = job.before_window;
  const std::uint32_t all = first + job.iterations + kAfter;
  for (std::uint32_t iteration = 0; iteration < all; ++iteration) {
    const bool warms_up = iteration >= first && iteration < first + job.warmups;
    const int slowness = warms_up ? kWarmupFactor : 1;
    for (RankHistory& rank : ranks) {
      rank.begins.push_back(rank.host);
      for (std::uint32_t place = 0; place <= job.kernels; ++place) {
        launch(job, slowness, iteration, place, rank);
        Kernel& kernel = rank.kernels.back();
        if (place < job.kernels) kernel.end = kernel.start + rank.durations[place];
      }
    }
    Duration arrived{};
    for (const RankHistory& rank : ranks) arrived = std::max(arrived, rank.kernels.back().start);
    for (RankHistory& rank : ranks) {
      rank.kernels.back().end = arrived + job.all_reduce;
      end_iteration(job, rank);
    }
  }
  return ranks;
}

/// Events of one file; times are cut at the window's begin, as a profiler that starts there does.
class File {
 public:
  File(const GeneratedJob& job, std::uint32_t rank, Duration begin)
      : begin_(begin), before_(job.idle_before + job.first_wait + kCopyCall) {
    text_ = fmt::format(
        R"({{"schemaVersion":1,"deviceProperties":[{{"id":0,"name":"NVIDIA A100-SXM4-80GB",)"
        R"("totalGlobalMem":85899345920,"computeMajor":8,"computeMinor":0,"numSms":108}}],)"
        R"("distributedInfo":{{"backend":"nccl","rank":{},"world_size":{}}},"traceEvents":[)",
        rank, job.ranks);
    if (job.first_wait > Duration{}) add_first_wait(job.first_wait);
    if (job.idle_before > Duration{}) {
      // A moment of setting up, then nothing until the first mark.
      add(R"("cat":"cuda_runtime","name":"cudaGetDevice","pid":9,"tid":9)", begin - before_,
          begin - before_ + Duration{1'000}, R"("correlation":1)");
    }
  }

  void call(const Call& call) {
    if (call.start < begin_) return;
    add(fmt::format(R"("cat":"cuda_runtime","name":"{}","pid":9,"tid":9)", call.name), call.start,
        call.end, fmt::format(R"("correlation":{})", call.correlation));
  }

  void kernel(const Kernel& kernel, std::uint32_t kernels, std::uint32_t ranks) {
    if (kernel.start < begin_) return;
    const bool reduces = kernel.place == kernels;
    std::string args = fmt::format(
        R"("device":0,"context":1,"stream":7,"correlation":{},"registers per thread":32,)"
        R"("shared memory":0,"grid":[{},1,1],"block":[256,1,1])",
        kernel.correlation, reduces ? 16 : 216);
    if (reduces && ranks > 1) {
      args += fmt::format(
          R"(,"Collective name":"allreduce","In msg nelems":1048576,"Out msg nelems":1048576,)"
          R"("dtype":"Float","Group size":{},"Process Group Name":"0","Seq":{})",
          ranks, kernel.iteration + 1);
    }
    const std::string name =
        reduces ? "ncclDevKernel_AllReduce_Sum_f32_RING_LL" : fmt::format("k{}", kernel.place);
    add(fmt::format(R"("cat":"kernel","name":"{}","pid":0,"tid":7)", name), kernel.start,
        kernel.end, args);
  }

  void mark(std::uint64_t number, Duration from, Duration to) {
    add(fmt::format(R"("cat":"user_annotation","name":"ProfilerStep#{}","pid":9,"tid":9)", number),
        from, to, "");
  }

  [[nodiscard]] std::string take() && {
    return std::move(text_) + R"(],"baseTimeNanoseconds":1700000000000000000})";
  }

 private:
  // A copy that unrecorded work holds up, and the wait for it.
  void add_first_wait(Duration wait) {
    constexpr Duration kCopy{1'500};
    const Duration begin = begin_ - wait;
    add(R"("cat":"cuda_runtime","name":"cudaMemcpyAsync","pid":9,"tid":9)", begin - kCopyCall,
        begin, R"("correlation":3)");
    add(R"("cat":"gpu_memcpy","name":"Memcpy HtoD","pid":0,"tid":7)",
        begin_ - kReturn - kCopy, begin_ - kReturn,
        R"("device":0,"context":1,"stream":7,"correlation":3,"bytes":4096)");
    add(R"("cat":"cuda_runtime","name":"cudaStreamSynchronize","pid":9,"tid":9)", begin, begin_,
        R"("correlation":5)");
  }

  void add(const std::string& what, Duration from, Duration to, const std::string& args) {
    const std::int64_t start = (from - begin_ + before_).count() + 1'000'000;
    text_ += fmt::format(R"({}{{"ph":"X",{},"ts":{}.{:03},"dur":{}.{:03},"args":{{{}}}}})",
                         any_ ? "," : "", what, start / 1000, start % 1000,
                         (to - from).count() / 1000, (to - from).count() % 1000, args);
    any_ = true;
  }

  Duration begin_;
  Duration before_;  ///< what was recorded before the first iteration
  bool any_ = false;
  std::string text_;
};

/// The files of the job's ranks, compact JSON.
inline std::vector<std::string> kineto_files(const GeneratedJob& job) {
  const std::vector<RankHistory> ranks = history_of(job);
  std::vector<std::string> files;
  for (std::uint32_t number = 0; number < job.ranks; ++number) {
    const RankHistory& rank = ranks[number];
    const std::uint32_t first = job.before_window;
    const std::uint32_t last = first + job.iterations;
    const Duration window_end = rank.begins[last];
    File file(job, number, rank.begins[first]);
    for (std::uint32_t i = first; job.marks && i < last; ++i) {
      file.mark(i, rank.begins[i], rank.begins[i + 1]);
    }
    for (const Call& call : rank.calls) {
      if (call.start < window_end) file.call(call);
    }
    for (const Kernel& kernel : rank.kernels) {
      if (kernel.iteration < last) file.kernel(kernel, job.kernels, job.ranks);
    }
    files.push_back(std::move(file).take());
  }
  return files;
}

/// Writes them into a folder; the paths.
inline std::vector<std::string> write_files(const GeneratedJob& job, const std::string& folder) {
  std::vector<std::string> paths;
  for (const std::string& text : kineto_files(job)) {
    paths.push_back(folder + "/rank" + std::to_string(paths.size()) + ".json");
    std::ofstream(paths.back(), std::ios::binary) << text;
  }
  return paths;
}

/// From the begin of one iteration to the begin of the next, once the host is as far ahead of the
/// device as it gets.
inline Duration steady_iteration(const GeneratedJob& job) {
  constexpr std::uint32_t kFill = 64;  // iterations until host and device keep one pace
  GeneratedJob longer = job;
  longer.before_window = kFill;
  longer.warmups = 0;
  longer.iterations = 4;
  const std::vector<RankHistory> ranks = history_of(longer);
  const std::vector<Duration>& begins = ranks.front().begins;
  return begins.back() - begins[begins.size() - 2];
}

}  // namespace bubblesim::testing
