#include <gtest/gtest.h>

#include <chrono>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/policy/declaration.hpp"
#include "sim/policy/declare.hpp"
#include "sim/policy/gate_terms.hpp"
#include "sim/policy/parameter_check.hpp"
#include "sim/policy/policy.hpp"
#include "sim/policy/session/bubble_watch.hpp"
#include "sim/policy/session/start.hpp"
#include "tests/fault.hpp"

namespace bubblesim::policy {
namespace {

using namespace std::chrono_literals;

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

PolicySpec named(std::string name) {
  PolicySpec spec;
  spec.name = std::move(name);
  return spec;
}

TEST(value_text, is_as_a_config_writes_it) {
  EXPECT_EQ(value_text(true), "true");
  EXPECT_EQ(value_text(std::int64_t{-3}), "-3");
  EXPECT_EQ(value_text(0.68), "0.68");
  EXPECT_EQ(value_text(Duration{1024us}), "1.024ms");
  EXPECT_EQ(value_text(std::string("none")), "none");
}

TEST(defaults, hold_every_declared_parameter) {
  PolicySpec spec = named("p");
  spec.parameters = {declare_flag("f", true, {}),
                     declare_integer("i", 2, 0, 9, {}),
                     declare_number("n", 0.5, 0, 1, {}),
                     declare_duration("d", 5ms, 0ns, 1s, {}),
                     declare_choice("c", {"first", "second"}, {}),
                     declare_device_duration("s", 0ns, 1s, {})};
  const ParameterSet set = defaults(spec);
  EXPECT_TRUE(set.flag("f"));
  EXPECT_EQ(set.integer("i"), 2);
  EXPECT_EQ(set.number("n"), 0.5);
  EXPECT_EQ(set.duration("d"), Duration{5ms});
  EXPECT_EQ(set.text("c"), "first");
  EXPECT_EQ(set.duration_unless_word("s"), std::nullopt);
  EXPECT_EQ(std::distance(set.begin(), set.end()), 6);
}

TEST(registry, finds_by_name_in_order_of_registration) {
  Registry registry;
  registry.add(named("tgs"));
  registry.add(named("mps"));
  EXPECT_EQ(registry.all()[1].name, "mps");
  EXPECT_EQ((*registry.find("mps"))->name, "mps");
}

TEST(registry, names_the_nearest_policy_and_all_of_them) {
  Registry registry;
  registry.add(named("exclusive"));
  registry.add(named("mps"));
  EXPECT_EQ(error_of(registry.find("mpss")).message,
            "unknown policy \"mpss\"; did you mean \"mps\"? Known: exclusive, mps");
}

TEST(registry_death, refuses_two_policies_of_one_name) {
  Registry registry;
  registry.add(named("mps"));
  EXPECT_DEATH(registry.add(named("mps")), "two policies of one name");
}

TEST(parameter_set_death, refuses_what_is_not_declared_or_of_another_type) {
  const ParameterSet set({{"i", std::int64_t{2}}});
  EXPECT_DEATH((void)set.integer("j"), "not declared");
  EXPECT_DEATH((void)set.number("i"), "another type");
}

PolicySpec example() {
  PolicySpec spec;
  spec.name = "example";
  spec.parameters = {declare_flag("drain", false, {}),
                     declare_integer("blocks", 20000, 0, 100000, {"blocks", "", ""}),
                     declare_number("fraction", 0.68, 0.01, 1, {}),
                     declare_duration("window", 5ms, 1ms, 1s, {}),
                     declare_choice("barrier", {"filler", "both"}, {}),
                     declare_device_duration("slice", 1us, 1s, {})};
  return spec;
}

CheckedResult<ParameterSet> check(std::vector<GivenParameter> given) {
  return check_parameters(example(), given, "run.json", "/policy/parameters");
}

/// The one fault that a value gives.
std::string fault(std::string_view name, const JsonScalar& value) {
  const auto set = check({{name, value}});
  if (set) return "no fault";
  EXPECT_EQ(set.error().size(), 1u);
  return set.error()[0].text();
}

TEST(check_parameters, takes_the_given_and_the_defaults_of_the_rest) {
  const auto set = must(check({{"window", "2.5ms"},
                               {"blocks", "7"},
                               {"drain", "true"},
                               {"barrier", "both"},
                               {"fraction", "1"}}));
  EXPECT_EQ(set.duration("window"), Duration{2500us});
  EXPECT_EQ(set.integer("blocks"), 7);
  EXPECT_TRUE(set.flag("drain"));
  EXPECT_EQ(set.text("barrier"), "both");
  EXPECT_EQ(set.number("fraction"), 1.0);
  EXPECT_EQ(set.duration_unless_word("slice"), std::nullopt);
}

TEST(check_parameters, takes_a_word_or_a_value_where_both_are_allowed) {
  EXPECT_EQ(check({{"slice", "device"}})->duration_unless_word("slice"), std::nullopt);
  EXPECT_EQ(check({{"slice", "2ms"}})->duration_unless_word("slice"), Duration{2ms});
  EXPECT_EQ(fault("slice", "devise"),
            "run.json: /policy/parameters/slice: found \"devise\", expected a time with its unit, "
            "such as \"5ms\" or \"device\"");
}

TEST(check_parameters, takes_the_ends_of_a_range_and_nothing_beyond) {
  EXPECT_TRUE(check({{"window", "1ms"}, {"fraction", "0.01"}, {"blocks", "100000"}}));
  EXPECT_EQ(fault("window", "1.000001s"),
            "run.json: /policy/parameters/window: found \"1.000001s\", expected 1ms to 1s");
  EXPECT_EQ(fault("blocks", "100001"),
            "run.json: /policy/parameters/blocks: found \"100001\", expected 0 to 100000 blocks");
}

TEST(check_parameters, refuses_other_types) {
  for (const auto& [name, value] : std::vector<GivenParameter>{{"blocks", "7.0"},
                                                              {"blocks", ""},
                                                              {"blocks", "99999999999999999999"},
                                                              {"blocks", "7 "},
                                                              {"fraction", "nan"},
                                                              {"fraction", "inf"},
                                                              {"fraction", "half"},
                                                              {"window", "5"},
                                                              {"window", "-5ms"},
                                                              {"drain", "1"},
                                                              {"drain", "True"}}) {
    EXPECT_NE(fault(name, value), "no fault") << name << " = " << std::get<std::string>(value);
  }
}

/// What a config has typed is judged as its text would be.
TEST(check_parameters, takes_flags_and_numbers_as_they_are) {
  const auto set = must(check({{"drain", true}, {"blocks", 7}, {"fraction", 0.25}}));
  EXPECT_EQ(set, *check({{"drain", "true"}, {"blocks", "7"}, {"fraction", "0.25"}}));
  EXPECT_EQ(check({{"fraction", 1}})->number("fraction"), 1.0);
  const std::string place = "run.json: /policy/parameters/";
  EXPECT_EQ(fault("blocks", 7.0), place + "blocks: found \"7.0\", expected a whole number");
  EXPECT_EQ(fault("blocks", -1), place + "blocks: found \"-1\", expected 0 to 100000 blocks");
  EXPECT_EQ(fault("fraction", 2), place + "fraction: found \"2\", expected 0.01 to 1");
  EXPECT_EQ(fault("drain", 1), place + "drain: found \"1\", expected true or false");
  EXPECT_EQ(fault("barrier", true), fault("barrier", "true"));
  EXPECT_EQ(fault("window", 5), fault("window", "5"));
}

TEST(check_parameters, names_the_nearest_parameter_and_choice) {
  EXPECT_NE(fault("windwo", "5ms").find("did you mean \"window\"?"), std::string::npos);
  EXPECT_NE(fault("barrier", "fillers").find("did you mean \"filler\"?"), std::string::npos);
}

TEST(check_parameters, reports_all_faults_at_once_with_their_places) {
  const auto set = error_of(check(
      {{"windows", "5ms"}, {"fraction", "2"}, {"blocks", "1"}, {"blocks", "2"}, {"a/b", "1"}}));
  ASSERT_EQ(set.size(), 4u);
  EXPECT_EQ(set[0].place, "/policy/parameters/windows");
  EXPECT_EQ(set[1].place, "/policy/parameters/fraction");
  EXPECT_EQ(set[2].message, "given twice");
  EXPECT_EQ(set[3].place, "/policy/parameters/a~1b");
}

// What launches ask of a policy, and what that costs, by what it declares.
constexpr ClientId kGuarded{0};
constexpr ClientId kBeside{1};
constexpr GateCosts kCosts{
    .ask = 3us, .tell = 200ns, .sleep = {.spin = 50us, .wake = 9us}};

PolicySpec with(TrainingGate gate) {
  PolicySpec spec;
  spec.training_gate = [gate](const ParameterSet&) { return gate; };
  return spec;
}

/// What a launch pays at the start.
Duration paid(const PolicySpec& spec, ClientId client, const GateCosts& costs = kCosts) {
  const GateTerms terms = gate_terms(spec, {}, client, costs);
  return terms.asks ? terms.ask : terms.tell;
}

TEST(gate_terms, training_asks_tells_or_pays_nothing_as_the_policy_declares) {
  EXPECT_TRUE(holds_training(with(TrainingGate::kAsks), {}));
  EXPECT_FALSE(holds_training(with(TrainingGate::kTells), {}));
  EXPECT_FALSE(holds_training({}, {}));
  EXPECT_EQ(paid(with(TrainingGate::kAsks), kGuarded), 3us);
  EXPECT_EQ(paid(with(TrainingGate::kTells), kGuarded), 200ns);
  EXPECT_EQ(paid(with(TrainingGate::kNone), kGuarded), 0ns);
  EXPECT_EQ(paid({}, kGuarded), 200ns);
}

/// Where a run's gate is in every process, whatever the policy, training's launches tell.
TEST(gate_terms, a_gate_that_is_always_there_is_told_of_training) {
  GateCosts always = kCosts;
  always.always = true;
  EXPECT_EQ(paid(with(TrainingGate::kNone), kGuarded, always), 200ns);
}

TEST(gate_terms, who_may_be_held_asks_at_the_start) {
  EXPECT_TRUE(gate_terms(with(TrainingGate::kAsks), {}, kGuarded, kCosts).asks);
  EXPECT_FALSE(gate_terms(with(TrainingGate::kTells), {}, kGuarded, kCosts).asks);
  EXPECT_FALSE(gate_terms(with(TrainingGate::kNone), {}, kGuarded, kCosts).asks);
  EXPECT_TRUE(gate_terms({}, {}, kGuarded, kCosts).asks) << "it may hold whom it will";
  for (const TrainingGate gate : {TrainingGate::kNone, TrainingGate::kTells}) {
    EXPECT_EQ(paid(with(gate), kBeside), 3us);
    EXPECT_EQ(gate_terms(with(gate), {}, kBeside, kCosts).sleep.wake, 9us);
  }
}

/// 1.1 us of a filler's launch, 0.5 of training's; of a policy that only looks through the driver's
/// own means nothing, nor of an oracle.
TEST(gate_terms, a_library_before_the_drivers_costs_what_was_measured) {
  PolicySpec spec;
  EXPECT_EQ(gate_costs(spec, {}, nullptr).ask, 0ns);
  spec.demands = {{SystemFeature::kLaunchInterception}};
  const GateCosts costs = gate_costs(spec, {}, nullptr);
  EXPECT_EQ(paid(spec, kGuarded, costs), 500ns);
  EXPECT_EQ(paid(spec, kBeside, costs), 1100ns);
  const ParameterSet own({{"ask", Duration{3us}}, {"tell", Duration{200ns}}});
  EXPECT_EQ(gate_costs(spec, own, nullptr).ask, 3us) << "its own cost";
  EXPECT_EQ(gate_costs(spec, own, &kCosts).sleep.spin, 50us) << "of the run";
  spec.oracle = true;
  EXPECT_EQ(gate_costs(spec, {}, nullptr).ask, 0ns);
}

/// Bubbles after operations 0 (60 us), 2 (500 us) and 3 (9 us).
class BubbleWatchTest : public ::testing::Test {
 protected:
  void start(WorkKind kind = WorkKind::kKernel) {
    if (watch_.op_started(kind)) told_ += "end ";
  }
  void finish(std::uint32_t op, WorkKind kind = WorkKind::kKernel) {
    const BubbleInfo* bubble = watch_.op_finished(op, kind);
    if (bubble != nullptr) told_ += std::to_string(bubble->expected / 1us) + " ";
  }

  const std::vector<MeasuredBubble> bubbles_{
      {0, {60us, {}, true}}, {2, {500us, {}, false}}, {3, {9us, {}, false}}};
  BubbleWatch watch_{bubbles_};
  std::string told_;
};

TEST_F(BubbleWatchTest, ABubbleLastsFromItsOperationToTheNextKernel) {
  start();
  finish(0);  // 60 us
  start();    // ends it
  finish(1);  // not in the table
  start();    // nothing to end
  finish(2);  // 500 us
  start();    // ends it
  EXPECT_EQ(told_, "60 end 500 end ");
}

TEST_F(BubbleWatchTest, NoneBeginsWhileAnotherKernelRuns) {
  start();
  start();
  finish(0);  // one still runs
  finish(1);  // the last one, not in the table
  EXPECT_EQ(told_, "");
}

TEST_F(BubbleWatchTest, CollectivesAndCopiesNeitherBeginNorEndOne) {
  start();
  start(WorkKind::kCollective);
  finish(0);  // 60 us: the collective does not count
  start(WorkKind::kCopy);
  start(WorkKind::kMemset);
  finish(2, WorkKind::kCollective);
  finish(3, WorkKind::kCopy);
  EXPECT_EQ(told_, "60 ");
  start();
  EXPECT_EQ(told_, "60 end ");
}

// Without the start of operation 0 the count would be one too low after its end, and operation 2
// would begin its bubble while operation 3 runs.
TEST_F(BubbleWatchTest, ALostStartDoesNotUpsetTheCount) {
  finish(0);
  start();
  start();
  finish(2);
  finish(3);
  EXPECT_EQ(told_, "60 end 9 ");
}

}  // namespace
}  // namespace bubblesim::policy
