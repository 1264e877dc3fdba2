// Records that the device writes, and when the host may read them.
#include "capture/replay/cuda/record_ring.hpp"

#include "capture/replay/cuda/device_context.hpp"
#include "tests/unit/capture/replay_cuda/cuda_bench.hpp"

namespace bubblesim::capture {
namespace {

using namespace cuda;

TEST_F(CudaBench, AnExecutionHasEndedOnceItsStartIsThereToo) {
  auto context = DeviceContext::open(options_.library, 0);
  ASSERT_TRUE(context);
  auto ring = RecordRing::make((*context)->driver(), 1);
  ASSERT_TRUE(ring);
  auto* slot = reinterpret_cast<RecordSlot*>((*ring)->slots(0));
  slot->end_ns = 200;
  slot->ended = 1;
  EXPECT_FALSE((*ring)->ended(0, 1));  // nothing orders the device's two stores
  slot->start_ns = 100;
  slot->started = 1;
  EXPECT_TRUE((*ring)->ended(0, 1));
  EXPECT_EQ((*ring)->end_ns(0, 1) - (*ring)->start_ns(0, 1), 100U);
}

TEST(RecordSlot, ATimeAndItsNumberAreOneAlignedStore) {
  EXPECT_EQ(offsetof(RecordSlot, started), offsetof(RecordSlot, start_ns) + 8);
  EXPECT_EQ(offsetof(RecordSlot, ended), offsetof(RecordSlot, end_ns) + 8);
  EXPECT_EQ(offsetof(RecordSlot, start_ns) % 16, 0U);
  EXPECT_EQ(offsetof(RecordSlot, end_ns) % 16, 0U);
  EXPECT_EQ(sizeof(RecordSlot) * kSlots % 16, 0U);  // each operation's slots begin aligned
}

}  // namespace
}  // namespace bubblesim::capture
