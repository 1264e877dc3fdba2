// What the recorder's writer thread costs: activity buffers to records, records to the file.
//
// A kernel is its activity record and the record of the call that launched it, as a training step
// has them: 400 names, 1500 shapes, noisy gaps and durations, one stream in ten another; with every
// 25 a copy, every 10 an event record and a wait for it. Buffers are of 4 MB; the walker has CUPTI
// 13.0's distances, and is the real library's where "cupti:1" and one is installed.
#include <algorithm>
#include <benchmark/benchmark.h>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "capture/record/decode/activity_decoder.hpp"
#include "capture/record/store/trace_store.hpp"
#include "sim/base/random.hpp"
#include "tests/fakes/cupti/record_walk.hpp"

namespace bubblesim::capture {
namespace {

constexpr std::uint32_t kNames = 400;
constexpr std::uint32_t kShapes = 1500;
constexpr std::uint32_t kStepKernels = 5000;
constexpr std::uint32_t kKernels = 1'000'000;
constexpr std::size_t kBufferWords = (std::size_t{4} << 20U) / sizeof(std::uint64_t);

std::uint64_t around(RandomStream& random, double mean, double deviation) {
  return static_cast<std::uint64_t>(mean * std::max(0.1, random.normal(1.0, deviation)));
}

/// The activity buffers of a recording, filled once.
class Recording {
 public:
  explicit Recording(bool with_events) : with_events_(with_events) {
    add_steps();
    for (std::uint32_t i = 0; i < kKernels; ++i) launch(i);
  }

  std::vector<std::vector<std::uint64_t>> buffers;
  std::vector<std::size_t> used;  ///< words
  std::uint64_t records = 0;

 private:
  template <class Record>
  void add(const Record& record) {
    const std::size_t words = stride_of(record.kind, kVersion13) / sizeof(std::uint64_t);
    if (buffers.empty() || used.back() + words > kBufferWords) {
      buffers.emplace_back(kBufferWords);
      used.push_back(0);
    }
    std::memcpy(buffers.back().data() + used.back(), &record, sizeof(record));
    used.back() += words;
    ++records;
  }

  void add_steps() {
    for (std::uint32_t i = 0; i < kNames; ++i)
      names_.push_back("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_7Functor" +
                       std::to_string(i) + "E");
    for (std::uint32_t i = 0; i < kStepKernels; ++i) {
      cupti::KernelRecord kernel{};
      const auto shape = static_cast<std::uint32_t>(random_.uniform() * kShapes);
      kernel.kind = cupti::kKindConcurrentKernel;
      kernel.end = static_cast<std::uint64_t>(random_.exponential(20'000)) + 1'000;
      kernel.name = names_[static_cast<std::size_t>(random_.uniform() * kNames)].c_str();
      kernel.context = 1;
      kernel.stream = random_.uniform() < 0.1 ? 20 : 7;
      for (const std::uint32_t side : {0U, 1U, 2U}) kernel.grid[side] = kernel.block[side] = 1;
      kernel.grid[0] = shape + 1;
      kernel.grid[1] = 1 + shape % 7;
      kernel.block[0] = 128U << (shape % 3);
      kernel.registers_per_thread = 64;
      step_.push_back(kernel);
    }
  }

  void launch(std::uint32_t i) {
    host_ += around(random_, 6'000, 0.4);
    const std::uint64_t took = around(random_, 3'500, 0.2);
    add(cupti::ApiRecord{cupti::kKindRuntime, 211, host_, host_ + took, 9, 77 + i / 2500 % 2,
                         1000 + 3 * i, 0});
    cupti::KernelRecord kernel = step_[i % kStepKernels];
    device_ = std::max(device_, host_ + 4'000) + around(random_, 900, 0.3);
    kernel.start = device_;
    device_ += around(random_, static_cast<double>(kernel.end), 0.03);
    kernel.end = device_;
    kernel.correlation = 1000 + 3 * i;
    add(kernel);
    if (with_events_ && i % 10 == 0) add_wait(i);
    if (with_events_ && i % 25 == 0) add_copy(i);
  }

  void add_wait(std::uint32_t i) {
    const std::uint64_t at = host_ + 4'500;
    add(cupti::ApiRecord{cupti::kKindRuntime, 135, at, at + 700, 9, 77, 1001 + 3 * i, 0});
    cupti::CudaEventRecord event{};
    event.kind = cupti::kKindCudaEvent;
    event.correlation = 1001 + 3 * i;
    event.context = 1;
    event.stream = 7;
    event.event_sync = i / 10 + 1;
    add(event);
    add(cupti::ApiRecord{cupti::kKindRuntime, 147, at + 900, at + 1'500, 9, 77, 1002 + 3 * i, 0});
    add(cupti::SynchronizationRecord{cupti::kKindSynchronization, cupti::kSyncStreamWaitEvent,
                                     at + 1'000, at + 1'200, 1002 + 3 * i, 1, 20, 5, i / 10 + 1,
                                     0, 0});
  }

  void add_copy(std::uint32_t i) {
    add(cupti::CopyRecord{cupti::kKindMemcpy, cupti::kCopyHostToDevice, cupti::kMemoryPinned,
                          cupti::kMemoryDevice, 1, 65'536, device_ + 10, device_ + 3'010, 0, 1, 20,
                          1000 + 3 * i});
  }

  bool with_events_;
  RandomStream random_{1, "capture_decode_bench"};
  std::vector<std::string> names_;
  std::vector<cupti::KernelRecord> step_;
  std::uint64_t host_ = 1'700'000'000'000'000'000;
  std::uint64_t device_ = host_;
};

Recording& recording(bool with_events) {
  static Recording plain(false);
  static Recording full(true);
  return with_events ? full : plain;
}

CuptiApi api_for(bool real) {
  CuptiApi api;
  if (real) {
    auto found = find_cupti("");
    if (found && found->version / 100 == 1300) return *found;
    return api;
  }
  api.version = kVersion13;
  api.get_next_record = next_record<kVersion13>;
  return api;
}

std::string bench_path() {
  return (std::filesystem::temp_directory_path() / "bubblesim_capture_decode_bench.btr").string();
}

/// All that the writer thread does.
void decode_and_write(benchmark::State& state) {
  Recording& recorded = recording(state.range(0) != 0);
  const CuptiApi api = api_for(state.range(1) != 0);
  if (api.get_next_record == nullptr) return state.SkipWithError("no libcupti of CUDA 13.0");
  RecordedBatch batch;
  for (auto _ : state) {
    auto store = TraceStore::create(bench_path(), RankId{0});
    if (!store) return state.SkipWithError("cannot create the file");
    ActivityDecoder decoder(api, store->tables());
    bool good = true;
    for (std::size_t i = 0; i < recorded.buffers.size(); ++i) {
      decoder.decode(reinterpret_cast<std::uint8_t*>(recorded.buffers[i].data()),
                     recorded.used[i] * sizeof(std::uint64_t), batch);
      good &= store->append(batch).has_value();
    }
    good &= store->finish(decoder.counters()).has_value();
    if (!good) return state.SkipWithError("cannot write");
  }
  state.counters["records/s"] =
      benchmark::Counter(static_cast<double>(recorded.records) *
                             static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
  state.counters["bytes/kernel"] =
      static_cast<double>(std::filesystem::file_size(bench_path())) / kKernels;
  std::remove(bench_path().c_str());
}

BENCHMARK(decode_and_write)
    ->ArgNames({"events", "cupti"})
    ->Args({0, 0})
    ->Args({0, 1})
    ->Args({1, 0})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace bubblesim::capture
