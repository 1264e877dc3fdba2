#include "sim/policy/policy.hpp"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "sim/policy/session/start.hpp"

namespace bubblesim::policy {
namespace {

class Plain final : public Policy {
 public:
  Sharing start(const GpuInfo&, std::span<const ClientInfo>) override { return {}; }
};

Admission admit(Bytes filler, bool known, Bytes used, Bytes gpu) {
  Plain plain;
  GpuInfo info;
  info.memory = gpu;
  return plain.admit({ClientId{1}, Role::kOffline, "f", filler, known}, used, info);
}

TEST(policy, by_default_admits_a_filler_unless_its_memory_is_known_not_to_fit) {
  EXPECT_TRUE(admit(Bytes{30}, true, Bytes{70}, Bytes{100}).admitted);
  EXPECT_FALSE(admit(Bytes{31}, true, Bytes{70}, Bytes{100}).admitted);
  EXPECT_TRUE(admit(Bytes{31}, false, Bytes{70}, Bytes{100}).admitted);
  EXPECT_TRUE(admit(Bytes{31}, true, Bytes{70}, Bytes{}).admitted);
}

TEST(policy, says_in_words_why_memory_does_not_fit) {
  EXPECT_EQ(admit(Bytes{1 << 30}, true, Bytes{1 << 20}, Bytes{1 << 30}).reason,
            "needs 1GiB beside 1MiB in use, the GPU has 1GiB");
}

TEST(policy, by_default_shares_equally_and_never_wants_a_tick) {
  Plain plain;
  EXPECT_EQ(plain.share({}).sm_percentage, 100u);
  EXPECT_EQ(plain.share({}).priority, 0);
  EXPECT_EQ(plain.next_tick(), std::nullopt);
  CounterSet counts;
  plain.add_counts(counts);
  EXPECT_TRUE(counts.empty());
}

class ThrowsAtStart final : public Policy {
 public:
  Sharing start(const GpuInfo&, std::span<const ClientInfo>) override { throw 7; }
};

TEST(policy, that_throws_when_it_is_made_or_started_is_a_fault_with_its_name) {
  PolicySpec spec;
  spec.name = "broken";
  spec.make = [](const ParameterSet&) -> std::unique_ptr<Policy> {
    throw std::runtime_error("cannot be made today");
  };
  EXPECT_EQ(make_policy(spec, {}).error().text(),
            "policy broken: threw an exception: cannot be made today");
  ThrowsAtStart policy;
  EXPECT_EQ(start_policy(spec, policy, {}, {}).error().text(),
            "policy broken: threw something that is no std::exception");
}

// Who took the memory is not known: the policy's code only asked last.
TEST(policy, is_not_blamed_for_memory_that_ran_out) {
  PolicySpec spec;
  spec.name = "last";
  spec.make = [](const ParameterSet&) -> std::unique_ptr<Policy> { throw std::bad_alloc(); };
  EXPECT_EQ(make_policy(spec, {}).error().text(),
            "out of memory while policy last ran; expected more memory, fewer --threads or a "
            "shorter run");
}

}  // namespace
}  // namespace bubblesim::policy
