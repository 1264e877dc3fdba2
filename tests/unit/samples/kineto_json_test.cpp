// The writer's rows, one kind a test.
#include "tests/samples/kineto_json.hpp"

#include <gmock/gmock.h>

namespace bubblesim::traces {
namespace {

using ::testing::HasSubstr, ::testing::Not;

RankTrace one_stream() {
  RankTrace trace;
  trace.names.intern("");
  trace.threads = {{41, "python"}};
  trace.streams = {{7, 0}};
  return trace;
}

TEST(KinetoJson, TimesAreMicrosecondsWithEveryNanosecond) {
  RankTrace trace = one_stream();
  DeviceOp op;
  op.name = trace.names.intern("kernel \"quoted\"");
  op.start = TraceTime{Duration{1234567}};
  op.duration = Duration{5};
  op.shape = trace.shapes.intern({{3, 2, 1}, {128, 1, 1}, 32, 1024});
  op.correlation = 9;
  trace.device_ops = {op};
  const std::string json = write_kineto_json(trace);
  EXPECT_THAT(json, HasSubstr(R"("name": "kernel \"quoted\"")"));
  EXPECT_THAT(json, HasSubstr(R"("ts": 1234.567, "dur": 0.005)"));
  EXPECT_THAT(json, HasSubstr(R"("grid": [3, 2, 1], "block": [128, 1, 1])"));
}

TEST(KinetoJson, AWaitNamesTheRecordAndItsStream) {
  RankTrace trace = one_stream();
  trace.streams.push_back({20, 0});
  HostCall record;
  record.kind = HostCallKind::kEventRecord;
  record.name = trace.names.intern("cudaEventRecord");
  record.correlation = 5;
  record.stream = 0;
  record.event = 3;
  HostCall wait = record;
  wait.kind = HostCallKind::kStreamWaitEvent;
  wait.name = trace.names.intern("cudaStreamWaitEvent");
  wait.correlation = 6;
  wait.stream = 1;
  trace.host_calls = {record, wait};
  EXPECT_THAT(write_kineto_json(trace),
              HasSubstr(R"("wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 5, )"
                        R"("wait_on_cuda_event_id": 3, "stream": 20, "correlation": 6)"));
}

TEST(KinetoJson, ATransferNamesBothEndsAndItsNumber) {
  RankTrace trace = one_stream();
  trace.rank = 2;
  trace.world_size = 4;
  Collective what;
  what.kind = CollectiveKind::kRecv;
  what.bytes = 4096;
  what.group = trace.names.intern("pair");
  what.group_size = 2;
  what.peers = {0, 2};
  what.sequence = 8;
  what.sequence_recorded = true;
  trace.collectives = {what};
  DeviceOp op;
  op.kind = DeviceOpKind::kCollective;
  op.collective = 0;
  op.shape = trace.shapes.intern({});
  trace.device_ops = {op};
  const std::string json = write_kineto_json(trace);
  EXPECT_THAT(json, HasSubstr(R"("rank": 2, "world_size": 4)"));
  EXPECT_THAT(json, HasSubstr(R"("Collective name": "recv", "In msg nelems": 2048)"));
  EXPECT_THAT(json, HasSubstr(R"("Src Rank": 0, "Dst Rank": 2, "Seq": 8)"));
}

TEST(KinetoJson, ASingleRankHasNoDistributedInfo) {
  EXPECT_THAT(write_kineto_json(one_stream()), Not(HasSubstr("distributedInfo")));
}

}  // namespace
}  // namespace bubblesim::traces
