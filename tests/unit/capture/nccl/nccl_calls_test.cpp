#include "capture/record/nccl/nccl_calls.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace bubblesim::capture {
namespace {

using traces::CollectiveKind;

TEST(NcclCalls, AreKnownByTheProfilersNameAndByTheFunctions) {
  EXPECT_EQ(nccl_call("AllReduce")->kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(nccl_call("ncclAllReduce")->kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(nccl_call("ncclBcast")->kind, CollectiveKind::kBroadcast);
  EXPECT_EQ(nccl_call("Reduce")->kind, CollectiveKind::kReduce);
  EXPECT_EQ(nccl_call("ReduceScatter")->kind, CollectiveKind::kReduceScatter);
}

TEST(NcclCalls, GatherIsACollectiveWithoutAKindOfOurs) {
  ASSERT_TRUE(nccl_call("Gather"));
  EXPECT_EQ(nccl_call("Gather")->kind, CollectiveKind::kUnknown);
}

TEST(NcclCalls, WhatMovesNothingIsNone) {
  EXPECT_FALSE(nccl_call("ncclGroupEnd"));
  EXPECT_FALSE(nccl_call("WaitSignal"));
  EXPECT_FALSE(nccl_call(""));
  EXPECT_FALSE(nccl_call("nccl"));
  EXPECT_FALSE(nccl_call(nullptr));
}

TEST(NcclTypes, HaveTheSizesOfNccl) {
  EXPECT_EQ(nccl_type_bytes("ncclInt8"), 1U);
  EXPECT_EQ(nccl_type_bytes("ncclFloat8e4m3"), 1U);
  EXPECT_EQ(nccl_type_bytes("ncclBfloat16"), 2U);
  EXPECT_EQ(nccl_type_bytes("ncclFloat32"), 4U);
  EXPECT_EQ(nccl_type_bytes("ncclUint64"), 8U);
  EXPECT_EQ(nccl_type_bytes("Unknown"), 0U);
  EXPECT_EQ(nccl_type_bytes(nullptr), 0U);
}

TEST(NcclBytes, AreTheRanksWholeInput) {
  const auto input = [](const char* name, std::uint64_t message, std::uint32_t ranks) {
    return nccl_input_bytes(*nccl_call(name), message, ranks);
  };
  EXPECT_EQ(input("AllGather", 100, 8), 100U);      // the send count is this rank's part
  EXPECT_EQ(input("ReduceScatter", 100, 8), 800U);  // the receive count is one part of eight
  EXPECT_EQ(input("AlltoAll", 100, 8), 800U);
  EXPECT_EQ(input("AllReduce", 100, 8), 100U);
  EXPECT_EQ(input("ReduceScatter", 100, 0), 0U);    // ranks not known: bytes not recorded
  EXPECT_EQ(input("ReduceScatter", std::numeric_limits<std::uint64_t>::max(), 2), 0U);
}

TEST(NcclGroups, AreNamedByTheirHash) {
  EXPECT_EQ(nccl_group_name(0), "nccl:0000000000000000");
  EXPECT_EQ(nccl_group_name(0xFEDCBA9876543210ULL), "nccl:fedcba9876543210");
}

}  // namespace
}  // namespace bubblesim::capture
