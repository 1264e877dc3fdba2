// dilu: tokens for every process, by request and limit (Dilu, ASPLOS'25). A launch hook in each
// process counts the thread blocks that it launches and holds a kernel while the count is above its
// grant (TokenCounter). Every period it reports the count to its GPU's server and takes the next
// grant (dilu_rckm.hpp). A held thread looks again every poll period. Online services are watched,
// and have their limit or their request of the GPU. All other processes, training first of all,
// share one conservative quota: when a service's bursts of launches get longer, the quota is
// divided by their inflation (emergency); as they recover it grows (recovery); 0.6 s after the last
// launch of every service the limits count. Without an online service every grant is whole: `mps`,
// plus the gate's cost. Copies and CUDA graphs are not gated (the hook knows cuLaunchKernel, not
// cuGraphLaunch).
//
// Dilu throttles training, so with `barrier: both` this policy may hold training's launches. No
// launch is held for ever: the quota's floor is above zero, and each grant pays off some debt
// (golden scenario keeps_training_going_at_the_floor). But the floor beside a language model is a
// thousandth of the GPU's tokens: training of many blocks may stand still for minutes, as it would
// under the code. With `barrier: fillers` training's kernels pass and are reported.
//
// Sharing: MPS. A request and a limit are SM shares; the tokens stand for them. Services have one
// request and limit, all other processes another. Placement: dilu_placer.hpp.
// Ties: at one instant the period ends first and processes report in client order; then held
// threads look, in the order of being held.
// Source: RCKM.c and container_client_hijack_call.c of sigserverless/Dilu at 1134655a (no licence
// file), re-implemented. Differs: one quota a GPU (the code: one a node); grants exist from instant
// 0 (the code: from the first exchange); a service's report is its count of this instant (the code
// samples it in another thread, up to a period earlier).
#include <algorithm>
#include <memory>

#include "policies/builtin.hpp"
#include "policies/dilu_placer.hpp"
#include "policies/dilu_rckm.hpp"
#include "policies/launch_polls.hpp"
#include "policies/protected_client.hpp"
#include "sim/policy/declare.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;
using namespace std::chrono_literals;

/// A process's account, as the client hook keeps it. A kernel passes while the count is not above
/// the grant (the test is before the addition, so one kernel may exceed the grant by its whole
/// size); each period the count falls by the new grant, so debt remains.
struct TokenCounter {
  std::int64_t count = 0;  ///< blocks not yet covered by a grant
  std::int64_t grant = 0;  ///< blocks for this period; below 0: closed

  [[nodiscard]] bool is_open() const { return count <= grant; }
  void launch(std::uint64_t blocks) { count += static_cast<std::int64_t>(blocks); }
  /// The next period begins, with this grant.
  void begin_period(std::int64_t next_grant) {
    grant = next_grant;
    count = std::max<std::int64_t>(0, count - std::max<std::int64_t>(0, grant));
  }
};

class Dilu final : public Policy {
 public:
  explicit Dilu(const ParameterSet& given)
      : period_(given.duration("period")),
        holds_protected_(given.text("barrier") == "both"),
        sensitive_{given.text("service") == "language_model" ? RckmTask::Kind::kLanguageModel
                                                             : RckmTask::Kind::kSensitive,
                   given.number("service_request"), given.number("service_limit")},
        throttled_{RckmTask::Kind::kThrottled, given.number("training_request"),
                   given.number("training_limit")},
        reserve_{static_cast<std::uint64_t>(given.integer("reserve_mib")) << 20},
        server_(rckm_constants(given)),
        polls_(given.duration("poll")),
        next_period_(period_) {}

  Sharing start(const GpuInfo&, std::span<const ClientInfo> clients) override {
    clients_.assign(clients.size(), {});
    connect(clients[0]);
    return {SharingMode::kMps};
  }

  Admission admit(const ClientInfo& filler, Bytes used, const GpuInfo& gpu) override {
    Admission admission = admit_with_reserve(filler, used, reserve_, gpu);
    if (admission.admitted) connect(filler);
    return admission;
  }

  Verdict on_launch(const LaunchInfo& launch, Instant now, Actions&) override {
    turn_period(now);
    const bool hooked = is_kernel(launch.kind) && launch.operations == 1;
    if (!hooked || passes(launch)) return Verdict::kAdmit;
    polls_.hold(launch.client, now);
    return Verdict::kHold;
  }

  void on_gone(ClientId client, Instant now, Actions&) override {
    turn_period(now);
    Client& gone = clients_[client.index()];
    if (gone.task) server_.disconnect(*gone.task);
    gone.task.reset();
  }

  std::optional<Instant> next_tick() const override {
    return polls_.next() ? std::min(next_period_, *polls_.next()) : next_period_;
  }

  void on_tick(Instant now, Actions& actions) override {
    turn_period(now);
    polls_.wake(now, actions, [this](const LaunchInfo& launch) { return passes(launch); });
  }

 private:
  struct Client {
    TokenCounter tokens;
    std::optional<std::size_t> task;  ///< its number at the server, while it is connected
  };

  /// All grants are made anew, as the shares of earlier processes have changed.
  void connect(const ClientInfo& filler) {
    clients_[filler.id.index()].task =
        server_.connect(filler.role == Role::kOnline ? sensitive_ : throttled_);
    for (Client& client : clients_) {
      if (client.task) client.tokens.grant = server_.grant(*client.task);
    }
  }

  /// For kernels only. Tests before adding.
  bool passes(const LaunchInfo& launch) {
    TokenCounter& tokens = clients_[launch.client.index()].tokens;
    const bool may_hold = launch.client != kProtected || holds_protected_;
    if (may_hold && !tokens.is_open()) return false;
    tokens.launch(launch.blocks);
    return true;
  }

  /// A launch or report at the instant of a period's end counts in the next period.
  void turn_period(Instant now) {
    if (now < next_period_) return;
    grant();
    next_period_ = next_multiple(now, period_);
  }

  void grant() {
    for (Client& client : clients_) {
      if (!client.task) continue;
      client.tokens.begin_period(server_.report(*client.task, client.tokens.count));
    }
  }

  Duration period_;
  bool holds_protected_;
  RckmTask sensitive_;
  RckmTask throttled_;
  Bytes reserve_;
  DiluRckm server_;
  LaunchPolls polls_;
  Instant next_period_;
  std::vector<Client> clients_;
};

std::vector<ParameterSpec> own_parameters() {
  const std::string hook = "Dilu's client hook";
  const std::string deploy = "Dilu deploy_inference_funcs.py: RoBERTa-large";
  const std::string train = "Dilu deploy_train_funcs.py: RoBERTa-large, LLaMA2";
  const DiluPlacerConstants shares;
  return {
      declare_duration("period", 5ms, 10us, 10s,
                       {"", "Processes report and take grants so often.", hook}),
      declare_duration("poll", 2ms, 1us, 10s,
                       {"", "A held launch looks again so often.", hook + ": TIME_TICK"}),
      declare_choice("barrier", {"both", "fillers"},
                     {"", "Whose kernels may be held; both: training's too, as in Dilu.", hook}),
      declare_choice("service", {"other", "language_model"},
                     {"", "What the online services are; the rule knows the two kinds.",
                      "Dilu RCKM.c: is_llm"}),
      declare_number("service_request", shares.job_request, 0.001, 1,
                     {"", "An online service's share of the GPU while others run.", deploy}),
      declare_number("service_limit", shares.job_limit, 0.001, 1,
                     {"", "And while none does.", deploy}),
      declare_number("training_request", shares.training_request, 0.001, 1,
                     {"", "The share of training, and of any other throttled process.", train}),
      declare_number("training_limit", shares.training_limit, 0.001, 1,
                     {"", "And while every service is idle.", train}),
      declare_integer(
          "reserve_mib", 1024, 0, 1 << 20,
          {"MiB", "Memory that must stay free beside a filler.", hook + ": spare memory of 1 GiB"}),
  };
}

}  // namespace

PolicySpec dilu_spec() {
  PolicySpec spec;
  spec.name = "dilu";
  spec.summary = "Tokens by request and limit; online services watched, training throttled";
  spec.source = "Dilu, ASPLOS'25, arXiv 2503.05130; github.com/sigserverless/Dilu at 1134655a";
  spec.parameters = own_parameters();
  for (auto more : {rckm_parameters(), burst_parameters("periods", "Dilu RCKM.c"),
                    dilu_placer_parameters()}) {
    for (ParameterSpec& parameter : more) spec.parameters.push_back(std::move(parameter));
  }
  spec.demands = {{SystemFeature::kMps}, {SystemFeature::kLaunchInterception}};
  spec.training_gate = [](const ParameterSet& given) {
    return given.text("barrier") == "both" ? TrainingGate::kAsks : TrainingGate::kTells;
  };
  spec.not_searched = {"service", "reserve_mib"};
  spec.settling = [](const ParameterSet& given, Duration iteration) {
    return given.integer("burst_history") * iteration;
  };
  spec.make = [](const ParameterSet& given) { return std::make_unique<Dilu>(given); };
  spec.make_placer = make_dilu_placer;
  return spec;
}

}  // namespace bubblesim::policies
