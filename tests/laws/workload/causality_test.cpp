// Causality by counterfactuals: one thing changes, what depends on it moves by exactly what it
// should, and nothing else moves. Every operation's start and end is checked. Times in us.
#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "sim/workload/what_if.hpp"
#include "tests/unit/sim/workload/program_maker.hpp"

namespace bubblesim::workload {
namespace {

using traces::HostCallKind;

Spans with(const std::string& change, const program::Program& program) {
  JobProgram job;
  job.ranks.push_back(program);
  apply(*parse_what_if(change), job);
  return replayed(job.ranks.front());
}

/// Launches at 0, 100 and 200 (each 2 long), kernels of 20 that start 10 later: the device waits
/// for the host.
program::Program host_bound() {
  TraceBuilder job;
  for (const std::int64_t called : {0, 100, 200}) {
    job.kernel({called, called + 2, called + 10, called + 30});
  }
  return must_build(job.trace());
}

/// Launches at 0, 4 and 8 (each 2 long), kernels of 50, 60 and 40 with gaps of 2: the host waits
/// for nobody, the device has always more to do.
program::Program device_bound() {
  TraceBuilder job;
  job.kernel({.called = 0, .returned = 2, .start = 10, .end = 60, .name = "gemm"})
      .kernel({.called = 4, .returned = 6, .start = 62, .end = 122, .name = "layer_norm"})
      .kernel({.called = 8, .returned = 10, .start = 124, .end = 164, .name = "gemm"});
  return must_build(job.trace());
}

/// A kernel that is longer.
struct Longer {
  std::size_t op;
  std::int64_t by;
};

struct Row {
  std::string_view name;
  std::variant<Longer, const char*> change;  ///< or a text of --what-if
  Spans spans;
};

void expect_changes(const program::Program& program, const std::vector<Row>& rows) {
  for (const auto& [name, change, spans] : rows) {
    SCOPED_TRACE(name);
    const auto* longer = std::get_if<Longer>(&change);
    EXPECT_EQ(longer != nullptr ? replayed_with_longer(program, longer->op, longer->by)
                                : with(std::get<const char*>(change), program),
              spans);
  }
}

TEST(Causality, WhereTheDeviceWaitsForTheHost) {
  expect_changes(host_bound(), {
      {"recorded", Longer{0, 0}, {{10, 30}, {110, 130}, {210, 230}}},
      // 80 longer, the first kernel ends at 110, as the second would start.
      {"a longer kernel in a gap moves nobody", Longer{0, 79}, {{10, 109}, {110, 130}, {210, 230}}},
      {"nor as it fills the gap", Longer{0, 80}, {{10, 110}, {110, 130}, {210, 230}}},
      // 180 longer, it ends at 210: the second runs until 230, and the third after it.
      {"beyond the gap all move", Longer{0, 180}, {{10, 210}, {210, 230}, {230, 250}}},
      {"faster kernels start none earlier", "kernels=4", {{10, 15}, {110, 115}, {210, 215}}},
      // Calls of 2 and pauses of 98 halve: launches at 0, 50 and 100.
      {"a faster host moves every launch", "host=2", {{10, 30}, {60, 80}, {110, 130}}},
      // Pauses of 196, calls of 4.
      {"a slower host moves every launch", "host=0.5", {{10, 30}, {210, 230}, {410, 430}}}});
  // The pause before the second launch is 98; without it, it comes at 2, and waits for the first
  // kernel's end at 30; the third comes at 102.
  program::Program program = host_bound();
  program.threads[0].steps[2].think = {};
  EXPECT_EQ(replayed(program), (Spans{{10, 30}, {30, 50}, {112, 132}}));
}

TEST(Causality, WhereTheHostRunsAhead) {
  const Spans recorded{{10, 60}, {62, 122}, {124, 164}};
  expect_changes(device_bound(), {
      {"recorded", Longer{0, 0}, recorded},
      {"all behind a longer kernel move as much", Longer{0, 7}, {{10, 67}, {69, 129}, {131, 171}}},
      {"and none before it", Longer{1, 7}, {{10, 60}, {62, 129}, {131, 171}}},
      // The kernels named gemm halve: 25 and 20. The other one starts 25 earlier, and lasts its 60.
      {"a faster class moves what is behind it", "compute=2", {{10, 35}, {37, 97}, {99, 119}}},
      {"so do faster names", "kernel:gemm=2", {{10, 35}, {37, 97}, {99, 119}}},
      {"and the other class", "memory=2", {{10, 60}, {62, 92}, {94, 134}}},
      {"a faster host moves nothing", "host=2", recorded},
      // Launches at 0, 16 and 32 instead of 0, 4 and 8: still before the stream is free.
      {"nor does a slower one while the device is busy", "host=0.25", recorded}});
  // With pauses of 70, launches come at 0, 72 and 144. 10 later, at 82 and at 154, the kernels
  // before have ended (60 + 2, 142 + 2).
  program::Program program = device_bound();
  for (std::size_t step : {2U, 3U}) program.threads[0].steps[step].think = short_us(70);
  EXPECT_EQ(replayed(program), (Spans{{10, 60}, {82, 142}, {154, 194}}));
}

/// Stream 0: A [10, 60], B [62, 122]. Stream 1: C waits for A (3 later), [63, 93]; D [95, 115].
/// A pause of the host until B's end is noticed at 127, then E on stream 0 at [140, 150].
TraceBuilder two_streams() {
  TraceBuilder job(0, 1, 2);
  job.kernel({0, 2, 10, 60}).kernel({4, 6, 62, 122}).kernel({8, 10, 63, 93, 1})
      .kernel({12, 14, 95, 115, 1}).stream_sync(16, 127).kernel({130, 132, 140, 150}).edge(0, 2);
  return job;
}

TEST(Causality, OfStreams) {
  expect_changes(must_build(two_streams().trace()), {
      {"recorded", Longer{0, 0}, {{10, 60}, {62, 122}, {63, 93}, {95, 115}, {140, 150}}},
      // A: its stream, the edge, the wait and what is launched after it.
      {"an edge carries a delay to the other stream", Longer{0, 5},
       {{10, 65}, {67, 127}, {68, 98}, {100, 120}, {145, 155}}},
      // B: the other stream does not care.
      {"what has no edge does not move", Longer{1, 5},
       {{10, 60}, {62, 127}, {63, 93}, {95, 115}, {145, 155}}},
      // C: D follows it; stream 0 and the host wait for neither.
      {"a wait for one stream ignores the other", Longer{2, 500},
       {{10, 60}, {62, 122}, {63, 593}, {595, 615}, {140, 150}}},
      // A of 25: B from 37 to 97, C from 38 to 68, D from 70 to 90, the wait until 102, E 13 later.
      {"a shorter kernel pulls every dependent forward", Longer{0, -25},
       {{10, 35}, {37, 97}, {38, 68}, {70, 90}, {115, 125}}}});
}

/// Two ranks: a kernel, a collective, a kernel. Rank 0 computes until 60, rank 1 until 100; the
/// collective runs from 102 to 142 (rank 0's waits from 62 on); then kernels of 20.
std::vector<TraceBuilder> two_ranks() {
  std::vector<TraceBuilder> ranks;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const std::int64_t computed = rank == 0 ? 60 : 100;
    TraceBuilder trace(rank);
    trace.kernel({0, 2, 10, computed})
        .collective({.called = 4, .returned = 6, .start = computed + 2, .end = 142,
                     .name = "ncclAllReduce"}, {})
        .kernel({8, 10, 144, 164});
    ranks.push_back(trace);
  }
  return ranks;
}

std::vector<Spans> replayed(const JobProgram& job, const std::vector<Perturbation>& how = {}) {
  std::vector<Spans> result;
  for (const RunRecorder& run : run_once(job, how)) result.push_back(run.spans());
  return result;
}

std::vector<Spans> with(const std::string& change) {
  JobProgram job = must_build_job(two_ranks());
  apply(*parse_what_if(change), job);
  return replayed(job);
}

/// The spans of both ranks, whose kernel of `rank` is longer.
std::vector<Spans> with_longer(std::size_t rank, std::int64_t by) {
  JobProgram job = must_build_job(two_ranks());
  job.ranks[rank].ops[0].duration += us(by);
  return replayed(job);
}

TEST(Causality, OfRanks) {
  struct OfRanks {
    std::string_view name;
    std::vector<Spans> found;
    Spans rank0, rank1;
  };
  for (const auto& [name, found, rank0, rank1] : {
           OfRanks{"recorded", with_longer(0, 0),
                   {{10, 60}, {62, 142}, {144, 164}}, {{10, 100}, {102, 142}, {144, 164}}},
           // Rank 0 has 40 of slack: 40 longer moves its collective's start only.
           {"a rank within its slack moves nobody else", with_longer(0, 40),
            {{10, 100}, {102, 142}, {144, 164}}, {{10, 100}, {102, 142}, {144, 164}}},
           {"beyond it, it moves the other", with_longer(0, 41),
            {{10, 101}, {103, 143}, {145, 165}}, {{10, 100}, {102, 143}, {145, 165}}},
           {"the late rank's delay reaches the other", with_longer(1, 7),
            {{10, 60}, {62, 149}, {151, 171}}, {{10, 107}, {109, 149}, {151, 171}}},
           // Rank 1's kernels at double speed: 45 and 10. It arrives at 57, rank 0 at 62: 102.
           {"with one rank faster the other binds", with("kernels@1=2"),
            {{10, 60}, {62, 102}, {104, 124}}, {{10, 55}, {57, 102}, {104, 114}}},
           // The link at half speed: 40 become 80, from the meeting at 102.
           {"a slower link lengthens what follows the meeting", with("link=0.5"),
            {{10, 60}, {62, 182}, {184, 204}}, {{10, 100}, {102, 182}, {184, 204}}},
           // One end of the link: rank 1's kernel ends later, rank 0's does not.
           {"one rank's slower link is its own", with("link@1=0.5"),
            {{10, 60}, {62, 142}, {144, 164}}, {{10, 100}, {102, 182}, {184, 204}}},
           // A straggler of 1.5 is rank 1: 135 and 30.
           {"a straggler holds the other",
            replayed(must_build_job(two_ranks()), {{}, {.slowdown = 1.5}}),
            {{10, 60}, {62, 187}, {189, 209}}, {{10, 145}, {147, 187}, {189, 219}}}}) {
    EXPECT_EQ(found, (std::vector<Spans>{rank0, rank1})) << name;
  }
}

}  // namespace
}  // namespace bubblesim::workload
