// What a policy may not decide ends the run with its name, the time and the reason.
#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <utility>

#include "tests/unit/sim/run/simulate/small_run.hpp"

namespace bubblesim::run {
namespace {

using testing::AllOf, testing::HasSubstr;

enum class Misdeed : std::uint8_t { kReleaseNothing, kNoSms, kNoSmsAtStart, kNoSlice, kNoClient };

/// Behaves until its tick at 3 ms.
class Rogue final : public policy::Policy {
 public:
  explicit Rogue(Misdeed misdeed) : misdeed_(misdeed) {}

  policy::Sharing start(const policy::GpuInfo&, std::span<const policy::ClientInfo>) override {
    if (misdeed_ != Misdeed::kNoSlice) return {};
    return {program::SharingMode::kTimeSliced, Duration{0}, Duration{0}, false};
  }
  policy::ClientSharing share(const policy::ClientInfo&) override {
    return {misdeed_ == Misdeed::kNoSmsAtStart ? 0U : 100U, 0};
  }
  std::optional<policy::Instant> next_tick() const override {
    return done_ ? std::nullopt : std::optional<policy::Instant>(3ms);
  }
  void on_tick(policy::Instant, policy::Actions& actions) override {
    done_ = true;
    if (misdeed_ == Misdeed::kReleaseNothing) actions.release(ClientId{1});
    if (misdeed_ == Misdeed::kNoSms) actions.set_sm_percentage(ClientId{1}, 101);
    if (misdeed_ == Misdeed::kNoClient) actions.set_priority(ClientId{7}, 1);
  }

 private:
  Misdeed misdeed_;
  bool done_ = false;
};

using Maker = std::function<std::unique_ptr<policy::Policy>(const policy::ParameterSet&)>;

std::string fault_of(Maker make) {
  policy::PolicySpec spec;
  spec.name = "rogue";
  spec.make = std::move(make);
  policy::Registry registry;
  registry.add(spec);
  LoadedRun loaded = small_run({offline("filler")});
  loaded.config.policies = {{"rogue", {}}};
  const auto report = run_policies(loaded, registry, {});
  EXPECT_FALSE(report);
  return report ? "" : report.error().text();
}

std::string fault_of(Misdeed misdeed) {
  return fault_of([misdeed](const policy::ParameterSet&) {
    return std::make_unique<Rogue>(misdeed);
  });
}

TEST(IllegalDecision, AFunctionThatMakesNoPolicy) {
  EXPECT_THAT(fault_of([](const policy::ParameterSet&) { return nullptr; }),
              HasSubstr("policy rogue: its library made no policy"));
}

TEST(IllegalDecision, ReleasingAClientThatHoldsNothing) {
  EXPECT_THAT(fault_of(Misdeed::kReleaseNothing),
              AllOf(HasSubstr("policy rogue"), HasSubstr("illegal decision at 3ms"),
                    HasSubstr("released client 1, which holds no launch")));
}

TEST(IllegalDecision, APercentageOfSmsAbove100) {
  EXPECT_THAT(fault_of(Misdeed::kNoSms),
              AllOf(HasSubstr("policy rogue"), HasSubstr("at 3ms"), HasSubstr("101 % of SMs")));
}

TEST(IllegalDecision, AClientThatDoesNotExist) {
  EXPECT_THAT(fault_of(Misdeed::kNoClient),
              AllOf(HasSubstr("policy rogue"), HasSubstr("at 3ms"), HasSubstr("client 7")));
}

TEST(IllegalDecision, NoSmsAtTheStart) {
  EXPECT_THAT(fault_of(Misdeed::kNoSmsAtStart),
              AllOf(HasSubstr("policy rogue"), HasSubstr("at the start"), HasSubstr("0 % of SMs")));
}

TEST(IllegalDecision, ATimeSliceOfZero) {
  EXPECT_THAT(fault_of(Misdeed::kNoSlice),
              AllOf(HasSubstr("policy rogue"), HasSubstr("a time slice of 0")));
}

}  // namespace
}  // namespace bubblesim::run
