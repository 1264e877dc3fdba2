// What of each client's memory is on the device. A GPU of 80, training of 50, 5 kept free: 25 are
// left for fillers.
#include "policies/resident_memory.hpp"

#include <gtest/gtest.h>

namespace bubblesim::policies {
namespace {

using policy::ClientInfo, policy::Role;

ResidentMemory resident(std::vector<std::uint64_t> fillers) {
  std::vector<ClientInfo> clients{{ClientId{0}, Role::kTraining, "t", Bytes{50}, true}};
  for (const std::uint64_t memory : fillers) {
    const auto id = static_cast<std::uint32_t>(clients.size());
    clients.push_back({ClientId{id}, Role::kOffline, "f", Bytes{memory}, true});
  }
  policy::GpuInfo gpu;
  gpu.memory = Bytes{80};
  ResidentMemory memory;
  memory.start(gpu, clients, Bytes{5});
  return memory;
}

TEST(resident_memory, gives_training_all_and_fillers_what_is_left_in_order) {
  const ResidentMemory memory = resident({10, 20, 30});
  EXPECT_EQ(memory.resident_of(ClientId{0}), Bytes{50});
  EXPECT_EQ(memory.resident_of(ClientId{1}), Bytes{10});
  EXPECT_EQ(memory.resident_of(ClientId{2}), Bytes{15});  // 25 - 10
  EXPECT_EQ(memory.resident_of(ClientId{3}), Bytes{0});
}

TEST(resident_memory, hands_on_the_room_of_a_filler_that_ended) {
  ResidentMemory memory = resident({10, 20, 30});
  memory.remove(ClientId{1});
  EXPECT_EQ(memory.resident_of(ClientId{2}), Bytes{20});
  EXPECT_EQ(memory.resident_of(ClientId{3}), Bytes{5});
}

TEST(resident_memory, keeps_no_room_for_a_filler_that_is_larger_than_the_device) {
  const ResidentMemory memory = resident({76, 20});
  EXPECT_EQ(memory.resident_of(ClientId{1}), Bytes{0});
  EXPECT_EQ(memory.resident_of(ClientId{2}), Bytes{20});
}

TEST(resident_memory, says_nothing_of_what_is_not_known) {
  ResidentMemory memory;
  const std::vector<ClientInfo> clients{{ClientId{0}, Role::kTraining, "t", {}, false},
                                        {ClientId{1}, Role::kOffline, "f", Bytes{10}, true}};
  memory.start({}, clients, Bytes{5});
  EXPECT_EQ(memory.resident_of(ClientId{0}), std::nullopt);
  EXPECT_EQ(memory.resident_of(ClientId{1}), std::nullopt);
  memory.remove(ClientId{1});
  EXPECT_EQ(memory.resident_of(ClientId{1}), std::nullopt);
}

}  // namespace
}  // namespace bubblesim::policies
