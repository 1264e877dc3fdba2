// What is bounded, filled up. Tables are of the process and never emptied: these cases
// come last in the program.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "capture/record/nvtx/nccl_payload.hpp"
#include "tests/unit/capture/nccl/host_double.hpp"
#include "tests/unit/capture/nvtx/fake_nvtx.hpp"

namespace bubblesim::capture {
namespace {

class NvtxBounds : public ::testing::Test {
 protected:
  void SetUp() override {
    host_double().reset();
    ASSERT_EQ(nvtx_.attach(), 1);
  }
  FakeNvtx nvtx_;
};

TEST_F(NvtxBounds, StartedRangesAreBounded) {
  std::vector<std::uint64_t> started;
  for (int i = 0; i < 5'000; ++i) started.push_back(nvtx_.start_a("r"));
  EXPECT_NE(started[4'095], 0U);
  EXPECT_EQ(started[4'096], 0U);
  for (const std::uint64_t id : started) nvtx_.end(id);
  EXPECT_EQ(host_double().take().size(), 4'096U);
}

TEST_F(NvtxBounds, DomainsAreBoundedAndNcclsIsAlwaysKnown) {
  std::vector<void*> made;
  for (int i = 0; i < 1'100; ++i) made.push_back(nvtx_.create(("d" + std::to_string(i)).c_str()));
  EXPECT_EQ(made.back(), nullptr);  // then it is the default domain
  for (int i = 0; i < 100; ++i) nvtx_.push(made[static_cast<std::size_t>(i)], "open");
  for (int i = 99; i >= 0; --i) nvtx_.pop(made[static_cast<std::size_t>(i)]);
  EXPECT_EQ(host_double().take().size(), 64U);  // domains with open ranges, a thread
  void* nccl = nvtx_.create("NCCL");
  nvtx_.push(nccl, "ncclSend");
  nvtx_.pop(nccl);
  EXPECT_EQ(host_double().take_all<CollectiveEvent>().size(), 1U);
}

TEST_F(NvtxBounds, CommunicatorsAreBounded) {
  constexpr std::uint64_t kFirst = 1U << 20U;
  for (std::uint64_t hash = kFirst; hash < kFirst + 9'000; ++hash) {
    remember_communicator({.communicator = hash, .bytes = 0, .ranks = 2});
  }
  EXPECT_EQ(known_communicator(kFirst).ranks, 2U);
  EXPECT_EQ(known_communicator(kFirst + 8'999).ranks, 0U);  // no place left
}

TEST_F(NvtxBounds, RegisteredStringsAreBounded) {
  void* first = nvtx_.register_string(nullptr, "s0");
  void* last = first;
  for (int i = 0; i < 20'000; ++i) {
    last = nvtx_.register_string(nullptr, ("s" + std::to_string(i)).c_str());
  }
  EXPECT_EQ(last, nullptr);
  EXPECT_EQ(nvtx_.register_string(nullptr, "s0"), first);
}

}  // namespace
}  // namespace bubblesim::capture
