// Launches, waits and collectives: what belongs to what.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/unit/traces/import/samples.hpp"
#include "traces/names/collective_names.hpp"
#include "traces/names/host_call_names.hpp"

namespace bubblesim::traces {
namespace {

using sample::annotation, sample::call, sample::file, sample::kernel, sample::span;

TEST(KinetoJoin, operations_find_their_launches) {
  const auto row = [](const char* cat, const char* name, const char* ts, const char* id) {
    return span(cat, name, 1, 0, ts, "2", std::string(R"("External id": )") + id);
  };
  const std::string of_operator = R"(, "External id": 8)";
  expect_counted({
      {"by correlation",
       {call("1", "11"), call("2", "12", "cuLaunchKernel"), kernel("5", "12"), kernel("20", "11")},
       2, 2, {}, {1, 0}},
      // The only id in older recordings of AMD GPUs; beside a correlation it is an operator's.
      {"by an external id, where there is no correlation",
       {row("cuda_runtime", "hipLaunchKernel", "1", "58"),
        row("cuda_runtime", "hipLaunchKernel", "4", "60"), row("kernel", "gemm", "9", "60"),
        row("kernel", "gemm", "20", "58")},
       2, 2, {}, {1, 0}},
      {"not by an external id beside a correlation of none",
       {row("cuda_runtime", "hipLaunchKernel", "1", "58"),
        kernel("9", "-3", "gemm", R"(, "External id": 58)")},
       1, 1, {}, {kNone}},
      {"by correlation, whatever operator they are of",
       {call("1", "8"), call("2", "9", "cudaLaunchKernel", of_operator),
        kernel("5", "9", "gemm", of_operator)},
       1, 2, {}, {1}},
      {"a graph launch has many operations",
       {call("1", "3", "cudaGraphLaunch"), kernel("5", "3"), kernel("20", "3")},
       2, 1, {{"kineto_device_ops_of_graphs", 2}}, {0, 0}},
      {"orphans on both sides are counted",
       {call("1", "1"), call("2", "2"), kernel("5", "2"), kernel("7", "99")},
       2, 2, {{"kineto_device_ops_without_launch", 1}, {"kineto_launches_without_device_op", 1}},
       {1, kNone}},
      // Two merged windows: each kernel takes the latest launch before it.
      {"repeated correlations join the launch before them",
       {call("1", "5"), kernel("4", "5"), call("100", "5"), kernel("104", "5", "second")},
       2, 2, {{"kineto_correlations_renumbered", 1}}, {0, 1}},
      {"a kernel before its launch is joined and counted", {kernel("1", "5"), call("3", "5")},
       1, 1, {{"kineto_device_ops_before_launch", 1}}, {0}},
      {"calls that launch go before others of the same correlation",
       {call("1", "5"), call("2", "5", "cudaPeekAtLastError"), kernel("4", "5")},
       1, 2, {}, {0}}});
}

// Whole microseconds: the second kernel began within the microsecond of the first.
TEST(KinetoJoin, operations_of_one_time_go_by_their_launches_wherever_they_stand) {
  for (const bool swapped : {false, true}) {
    std::vector<std::string> events{kernel("5", "11", "first"), kernel("5", "12", "second")};
    if (swapped) std::swap(events[0], events[1]);
    const RankTrace trace =
        imported(file({call("1", "11"), call("2", "12"), events[0], events[1]}));
    EXPECT_EQ(trace.names[trace.device_ops[0].name], "first");
    EXPECT_EQ(trace.names[trace.device_ops[1].name], "second");
  }
}

TEST(KinetoJoin, ids_are_numbered_by_time_and_not_by_place) {
  const RankTrace trace = imported(
      file({kernel("20", "12", "late"), kernel("5", "11", "early"), call("1", "11"),
            call("2", "12")}));
  EXPECT_EQ(trace.names[NameId{0}], "");
  EXPECT_EQ(trace.names[NameId{1}], "early");
  EXPECT_EQ(trace.names[NameId{2}], "late");
}

// Both names were the thread's; the file does not say which one last.
TEST(KinetoJoin, a_renamed_thread_has_one_name_wherever_its_names_stand) {
  const auto named = [](const char* name) {
    return std::string(R"({"ph": "M", "name": "thread_name", "pid": 100, "tid": 101, "ts": 0, )") +
           R"("args": {"name": ")" + name + R"("}})";
  };
  for (const auto& [one, other] : {std::pair("a", "b"), std::pair("b", "a")}) {
    const RankTrace trace =
        imported(file({named(one), named(other), call("1", "11"), kernel("5", "11")}));
    EXPECT_EQ(trace.threads[0].name, "b");
  }
}

TEST(KinetoJoin, ten_thousand_calls_of_one_correlation_are_joined_in_linear_time) {
  std::vector<std::string> events;
  for (int i = 0; i < 10000; ++i) {
    events.push_back(call(std::to_string(10 * i + 1), "5"));
    events.push_back(kernel(std::to_string(10 * i + 2), "5"));
  }
  const RankTrace trace = imported(file(events));
  EXPECT_EQ(trace.device_ops[9999].launch, 9999U);
  EXPECT_EQ(trace.counters.count("kineto_correlations_renumbered"), 9999U);
}

TEST(KinetoJoin, recorded_stream_waits_become_exact_edges) {
  const std::string wait =
      span("cuda_sync", "Stream Wait Event", 0, 20, "4", "1",
           R"("cuda_sync_kind": "Stream Wait Event", "wait_on_stream": 7,
           "wait_on_cuda_event_record_corr_id": 2, "wait_on_cuda_event_id": 9, "stream": 20,
           "correlation": 3, "device": 0)");
  const std::string after = span("kernel", "b", 0, 20, "30", "1",
                                 R"("device": 0, "stream": 20, "correlation": 4,
                                 "grid": [1, 1, 1], "block": [1, 1, 1])");
  const RankTrace trace = imported(file(
      {call("1", "1"), kernel("10", "1", "a"), call("2", "2", "cudaEventRecord"),
       call("4", "3", "cudaStreamWaitEvent"), wait, call("5", "4"), after}));
  ASSERT_EQ(trace.edges.size(), 1U);
  EXPECT_EQ(trace.names[trace.device_ops[trace.edges[0].before.index()].name], "a");
  EXPECT_EQ(trace.names[trace.device_ops[trace.edges[0].after.index()].name], "b");
  EXPECT_FALSE(trace.edges[0].inferred);
  // The row also names what the calls do not: the event and both streams.
  EXPECT_EQ(trace.host_calls[1].kind, HostCallKind::kEventRecord);
  EXPECT_EQ(trace.host_calls[1].event, 9U);
  EXPECT_EQ(trace.streams[trace.host_calls[1].stream].system_id, 7U);
  EXPECT_EQ(trace.host_calls[2].event, 9U);
  EXPECT_EQ(trace.streams[trace.host_calls[2].stream].system_id, 20U);
}

TEST(KinetoJoin, waits_whose_event_is_unknown_make_no_edge) {
  const RankTrace trace = imported(file(
      {kernel("1"), span("cuda_sync", "Event Sync", 0, -1, "4", "1",
                         R"("cuda_sync_kind": "Event Sync", "wait_on_stream": -1,
                         "wait_on_cuda_event_record_corr_id": -1, "wait_on_cuda_event_id": 9,
                         "stream": -1, "correlation": 24, "device": 0)")}));
  EXPECT_TRUE(trace.edges.empty());
  EXPECT_EQ(trace.streams.size(), 1U);
}

constexpr const char* kRecorded =
    R"(, "Collective name": "_allgather_base", "In msg nelems": 96, "Out msg nelems": 192,
    "Group size": 2, "dtype": "BFloat16", "In split size": "[]", "Out split size": "[]",
    "Process Group Name": "3", "Process Group Ranks": "[4, 6]")";

TEST(KinetoCollectives, recorded_arguments_are_read) {
  const RankTrace trace =
      imported(file({kernel("1", "1", "ncclDevKernel_AllGather_RING_LL(x)", kRecorded)}));
  ASSERT_EQ(trace.collectives.size(), 1U);
  const Collective& record = trace.collectives[0];
  EXPECT_EQ(trace.device_ops[0].kind, DeviceOpKind::kCollective);
  EXPECT_EQ(record.kind, CollectiveKind::kAllGather);
  EXPECT_EQ(record.bytes, 192U);  // 96 elements of 2 bytes
  EXPECT_EQ(trace.names[record.group], "3");
  EXPECT_EQ(record.group_size, 2U);
  EXPECT_EQ(record.peers, (std::vector<std::uint32_t>{4, 6}));
  EXPECT_FALSE(record.sequence_recorded);
}

TEST(KinetoCollectives, a_truncated_list_of_ranks_is_completed_from_the_job) {
  const std::string cut =
      R"(, "Collective name": "allreduce", "Group size": 3, "Process Group Name": "3",
      "Process Group Ranks": "[4, ...]")";
  const std::string head =
      R"("distributedInfo": {"rank": 4, "world_size": 8, "pg_config": [{"pg_name": "3",
      "pg_size": 3, "ranks": "[4, 5, 6]"}]},)";
  const std::string event = kernel("1", "1", "ncclDevKernel_AllReduce", cut);
  const RankTrace known = imported(file({event}, head));
  EXPECT_EQ(known.collectives[0].peers, (std::vector<std::uint32_t>{4, 5, 6}));
  EXPECT_EQ(known.rank, 4U);
  EXPECT_EQ(known.world_size, 8U);
  const RankTrace unknown = imported(file({event}));
  EXPECT_TRUE(unknown.collectives[0].peers.empty());
  EXPECT_EQ(unknown.collectives[0].group_size, 3U);
  EXPECT_EQ(unknown.counters.count("kineto_group_ranks_truncated"), 1U);
}

TEST(KinetoCollectives, without_a_record_the_kernel_name_tells) {
  const RankTrace trace = imported(file(
      {kernel("30", "2", "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)"),
       kernel("1", "1", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)"),
       kernel("60", "3", "void deep_ep::internode_ll::dispatch<true, 3>(void*)")}));
  EXPECT_EQ(trace.collectives[0].kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(trace.collectives[1].kind, CollectiveKind::kSendRecv);
  EXPECT_EQ(trace.collectives[2].kind, CollectiveKind::kUnknown);
  // Numbered by order of start, not by place in the file; exchanges apart from collectives.
  EXPECT_EQ(trace.collectives[0].sequence, 0U);
  EXPECT_EQ(trace.collectives[1].sequence, 0U);
  EXPECT_EQ(trace.collectives[2].sequence, 1U);
  EXPECT_EQ(trace.counters.count("kineto_collectives_without_record"), 3U);
  EXPECT_EQ(trace.counters.count("kineto_collectives_of_unknown_kind"), 1U);
}

TEST(KinetoCollectives, the_range_around_a_launch_tells_what_send_receive_kernels_do) {
  const RankTrace trace = imported(
      file({annotation("1", "10", "nccl:all_to_all"), call("2", "1"),
            kernel("5", "1", "ncclDevKernel_SendRecv(x)"), call("50", "2"),
            kernel("55", "2", "ncclDevKernel_SendRecv(x)")}));
  EXPECT_EQ(trace.collectives[0].kind, CollectiveKind::kAllToAll);
  EXPECT_EQ(trace.collectives[1].kind, CollectiveKind::kSendRecv);
}

constexpr const char* kSendRecv = "ncclDevKernel_SendRecv(x)";

std::string of_group(const std::string& more) {
  return R"(, "Collective name": "send", "Group size": 3, "Process Group Name": "2",
         "Process Group Ranks": "[4, 6, 8]", "In msg nelems": 8, "dtype": "Half")" + more;
}

std::string operation(const char* ts, const char* dur, const char* name, const std::string& args) {
  return span("cpu_op", "record_param_comms", 100, 101, ts, dur,
              std::string(R"("Collective name": ")") + name +
                  R"(", "Group size": 3, "Process Group Name": "2", "In msg nelems": 8,
                  "dtype": "Half", "Process Group Ranks": "[4, 6, 8]")" + args);
}

using Ranks = std::vector<std::uint32_t>;

TEST(KinetoTransfers, the_kernel_names_the_other_end) {
  const RankTrace trace = imported(file({call("2", "1"), kernel("5", "1", kSendRecv,
                                         of_group(R"(, "Dst Rank": 8, "Seq": 5)")),
                                         call("50", "2"), kernel("55", "2", kSendRecv,
                                         of_group(R"(, "Dst Rank": 8, "Seq": 5)"))}));
  EXPECT_EQ(trace.collectives[0].kind, CollectiveKind::kSend);
  EXPECT_EQ(trace.collectives[0].peers, Ranks{8});
  EXPECT_EQ(trace.collectives[0].group_size, 3U);
  // PyTorch's number is not believed: they are the first and the second to rank 8.
  EXPECT_FALSE(trace.collectives[1].sequence_recorded);
  EXPECT_EQ(trace.collectives[1].sequence, 1U);
}

// Places 0 and 2 of the group are ranks 4 and 8; without the group's ranks they stay places.
TEST(KinetoTransfers, the_range_around_a_launch_names_the_other_end) {
  const auto events = [](const std::string& args) {
    return file({annotation("1", "10", "nccl:send 0->2"), call("2", "1"),
                 kernel("5", "1", kSendRecv, args)});
  };
  EXPECT_EQ(imported(events(of_group(""))).collectives[0].peers, Ranks{8});
  const RankTrace unnamed = imported(events(""));
  EXPECT_EQ(unnamed.collectives[0].kind, CollectiveKind::kSend);
  EXPECT_EQ(unnamed.collectives[0].peers, Ranks{2});
  EXPECT_EQ(unnamed.collectives[0].place, 1U);
}

TEST(KinetoTransfers, a_range_without_ends_names_the_direction) {
  const RankTrace trace = imported(file({annotation("1", "10", "nccl:recv"), call("2", "1"),
                                         kernel("5", "1", kSendRecv)}));
  EXPECT_EQ(trace.collectives[0].kind, CollectiveKind::kRecv);
  EXPECT_TRUE(trace.collectives[0].peers.empty());
}

// Both stand before the launch, which carries nothing; the next launch has none of them.
TEST(KinetoTransfers, the_kernel_of_a_batch_exchanges_with_all_of_it) {
  const RankTrace trace = imported(file(
      {operation("1", "2", "send", R"(, "Rank": 0, "Dst Rank": 4)"),
       operation("4", "2", "recv", R"(, "Rank": 2)"), call("8", "1"), kernel("9", "1", kSendRecv),
       call("50", "2"), kernel("55", "2", kSendRecv)}));
  EXPECT_EQ(trace.collectives[0].kind, CollectiveKind::kSendRecv);
  EXPECT_EQ(trace.collectives[0].peers, (Ranks{4, 8}));
  EXPECT_EQ(trace.names[trace.collectives[0].group], "2");
  EXPECT_EQ(trace.collectives[0].bytes, 32U);
  EXPECT_TRUE(trace.collectives[1].peers.empty());
}

TEST(KinetoTransfers, a_batch_of_one_is_a_send) {
  const RankTrace trace = imported(file({operation("1", "2", "send", R"(, "Rank": 1)"),
                                         call("8", "1"), kernel("9", "1", kSendRecv)}));
  EXPECT_EQ(trace.collectives[0].kind, CollectiveKind::kSend);
  EXPECT_EQ(trace.collectives[0].peers, Ranks{6});
}

// Names that look like ranges of sends, places that no group has, ranks beyond all bounds.
TEST(KinetoTransfers, what_names_no_end_does_no_harm) {
  for (const char* name :
       {"nccl:send ", "nccl:send 0", "nccl:send 0->", "nccl:send x->1", "nccl:",
        "nccl:send 99999999999999999999->1", "nccl:recv 0-1", "nccl:send 0->7"}) {
    const RankTrace trace = imported(file({annotation("1", "10", name), call("2", "1"),
                                           kernel("5", "1", kSendRecv, of_group(""))}));
    EXPECT_EQ(trace.collectives[0].peers, (Ranks{4, 6, 8})) << name;
    EXPECT_EQ(trace.collectives[0].place, 0U) << name;
  }
  const RankTrace far = imported(file({call("2", "1"), kernel("5", "1", kSendRecv,
                                       of_group(R"(, "Dst Rank": 1e300, "Rank": -4)"))}));
  EXPECT_EQ(far.collectives[0].kind, CollectiveKind::kSend);
}

TEST(KinetoCollectives, recorded_sequence_numbers_are_kept) {
  const RankTrace trace = imported(
      file({kernel("1", "1", "ncclDevKernel_AllReduce", R"(, "Collective name": "allreduce",
            "Process Group Name": "0", "Seq": 41)")}));
  EXPECT_EQ(trace.collectives[0].sequence, 41U);
  EXPECT_TRUE(trace.collectives[0].sequence_recorded);
}

TEST(KinetoNames, calls_are_told_by_name) {
  using Kind = HostCallKind;
  for (const auto& [name, kind] : std::vector<std::pair<const char*, Kind>>{
           {"cudaLaunchKernel", Kind::kLaunchKernel},
           {"cudaLaunchKernel_v7000", Kind::kLaunchKernel},
           {"cudaLaunchKernelExC", Kind::kLaunchKernel},
           {"cuLaunchKernelEx", Kind::kLaunchKernel},
           {"cudaLaunchCooperativeKernel", Kind::kLaunchKernel},
           {"hipExtModuleLaunchKernel", Kind::kLaunchKernel},
           {"hipModuleLaunchKernel", Kind::kLaunchKernel},
           {"cudaGraphLaunch_v10000", Kind::kLaunchGraph},
           {"cudaMemcpyAsync", Kind::kCopy},
           {"hipMemcpyWithStream", Kind::kCopy},
           {"cuMemcpyDtoHAsync_v2", Kind::kCopy},
           {"cudaMemsetAsync", Kind::kMemset},
           {"cudaStreamSynchronize", Kind::kStreamSync},
           {"cuCtxSynchronize", Kind::kDeviceSync},
           {"hipDeviceSynchronize", Kind::kDeviceSync},
           {"cudaEventSynchronize", Kind::kEventSync},
           {"cudaEventRecordWithFlags", Kind::kEventRecord},
           {"cudaStreamWaitEvent", Kind::kStreamWaitEvent},
           {"cudaStreamQuery", Kind::kEventQuery},
           {"cudaMallocAsync", Kind::kAlloc},
           {"cuMemAlloc_v2", Kind::kAlloc},
           {"cuMemCreate", Kind::kAlloc},
           {"cuMemMap", Kind::kAlloc},
           {"cuMemRelease", Kind::kFree},
           {"cudaFree", Kind::kFree},
           {"cudaFreeAsync", Kind::kOther},
           {"cudaLaunchHostFunc", Kind::kOther},
           {"cudaStreamIsCapturing", Kind::kOther},
           {"INVALID", Kind::kOther},
           {"", Kind::kOther}}) {
    EXPECT_EQ(classify_host_call(name), kind) << name;
  }
}

TEST(KinetoNames, reduce_scatter_is_no_reduce_and_a_template_argument_no_collective) {
  EXPECT_EQ(kind_of_kernel("ncclDevKernel_ReduceScatter_Sum_bf16"), CollectiveKind::kReduceScatter);
  EXPECT_EQ(kind_of_kernel("ncclKernel_Reduce_RING_LL"), CollectiveKind::kReduce);
  EXPECT_EQ(kind_of_collective("all_to_allv"), CollectiveKind::kAllToAll);
  EXPECT_EQ(kind_of_collective("_reduce_scatter_base"), CollectiveKind::kReduceScatter);
  EXPECT_FALSE(is_communication_kernel("void at::native::reduce_kernel<512, 1>(nccl)"));
  EXPECT_FALSE(is_communication_kernel("groupnorm_kernel_dispatch_up<bf16>"));
}

TEST(KinetoNames, a_nameless_namespace_hides_no_kind) {
  // PyTorch's symmetric-memory kernels, as Kineto and as Nsight Systems write them.
  for (const char* const name :
       {"void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(unsigned long)",
        "void <unnamed>::multimem_all_reduce_kernel<c10::BFloat16, (int)16>(T1 *, unsigned long)",
        "void a::(anonymous namespace)::b::<unnamed>::two_shot_all_reduce_kernel<float>(float*)"}) {
    EXPECT_TRUE(is_communication_kernel(name)) << name;
    EXPECT_EQ(kind_of_kernel(name), CollectiveKind::kAllReduce) << name;
  }
  EXPECT_EQ(kind_of_kernel("void (anonymous namespace)::dispatch<all_reduce>(send)"),
            CollectiveKind::kUnknown);
  EXPECT_EQ(kind_of_kernel("void (anonymous namespace)::"), CollectiveKind::kUnknown);
}

TEST(KinetoNames, libraries_name_their_own_collectives) {
  using Kind = CollectiveKind;
  for (const auto& [name, kind] : std::vector<std::pair<const char*, Kind>>{
           {"void tensorrt_llm::kernels::oneShotAllReduceKernel<__half, 8>(X)", Kind::kAllReduce},
           {"void tensorrt_llm::kernels::twoShotAllReduceKernel<__half, 8>(X)", Kind::kAllReduce},
           {"void multimem_all_gather_kernel<8>(char*, char*, unsigned long)", Kind::kAllGather},
           {"void userbuffers_fp16_sum_inplace_gpu_rw<8>(int)", Kind::kAllReduce},
           {"void userbuffers_fp16_sum_inplace_gpu_mc_ag<8>(int)", Kind::kAllGather},
           {"void userbuffers_fp16_sum_inplace_gpu_rw_ag<2>(int)", Kind::kAllGather},
           {"void userbuffers_fp16_sum_inplace_gpu_mc_rs_oop<8>(int)", Kind::kReduceScatter},
           {"void userbuffers_fp16_sum_inplace_gpu_rr_rs_oop_fp8<8, x>(int)",
            Kind::kReduceScatter},
           {"kuserbuffers_pushsend(int*, int*, int4*, int4*, int)", Kind::kSend},
           {"kuserbuffers_pushrecv(int, int, int, int, int*, int*, int, int)", Kind::kRecv},
           {"kuserbuffers_pushsendrecv(int*, int*, int4*)", Kind::kSendRecv},
           {"void kuserbuffers_pullrecv<false>(int, int)", Kind::kRecv},
           {"void quickreduce::allreduce_prototype_twoshot<quickreduce::AllReduceTwoshot<__half>>(",
            Kind::kAllReduce},
           {"void aiter::reduce_scatter_cross_device_store<__hip_bfloat16, 8>(X)",
            Kind::kReduceScatter},
           {"void dpsk::ep::internode::combine<false, 8>(int4*)", Kind::kUnknown}}) {
    EXPECT_TRUE(is_communication_kernel(name)) << name;
    EXPECT_EQ(kind_of_kernel(name), kind) << name;
  }
  // What it does on its own GPU is none: Transformer Engine's counter, DeepEP's plan.
  EXPECT_FALSE(is_communication_kernel("kuserbuffers_inc(int*)"));
  EXPECT_FALSE(is_communication_kernel("void dpsk::ep::cuda::get_dispatch_layout<256>(X)"));
  EXPECT_FALSE(is_communication_kernel("void deep_ep::layout::get_dispatch_layout<256, 32>(X)"));
}

}  // namespace
}  // namespace bubblesim::traces
