// specinf_rckm: Dilu's rule in SpecInF's place (reconstructed). SpecInF's paper (arXiv
// 2503.02550) names a Bubble Monitor, a kernel scheduler with tokens and a Kernel Barrier; its
// algorithm is not public. This is those three parts with the rules of its authors' sibling
// system Dilu (RCKM.c), roles mirrored: training is watched, inference is throttled. It counts
// launches, and so guarantees training nothing.
//
// Bubble Monitor: training's launched blocks in each window; a window with at most empty_blocks is
// empty. Launches, not execution: a long collective and a deep queue both look empty.
// Tokens: specinf_rckm_tokens.hpp; conservative after conservative_after empty windows, aggressive
// after aggressive_after. Online fillers come first: together they get the whole pool, offline
// fillers share what online ones did not launch in the window before; with `pool: equal` every
// filler has its own share whatever the others do. A training job as filler counts as offline.
// Reaction: training that is slowed down cuts the quota, by the inflation of its bursts, or with
// `reaction: iterations` by its iterations' lengths against the first ones, which run without
// fillers (iteration_reference.hpp).
// Kernel Barrier: a kernel passes while the client's count is not above its grant (test before
// add, so one may overshoot); each window the count falls by the new grant, so debt is carried
// over; a held thread looks again every poll period. With grant 0 at most one kernel slips
// through, then none until the next grant. Copies are not gated, nothing launched is preempted.
// Admission: where training and what was admitted before leave enough memory, less a reserve; the
// same rule may choose the GPU (spare_memory_placer.hpp).
//
// Sharing: MPS. Parameters: see the declarations; those marked "reconstructed" have no source.
// A window of 5 ms cannot see bubbles shorter than 5 to 10 ms: sweep `window` down to 1 ms, with
// upper_blocks in proportion; results depend on it more than on anything else here.
// Ties: at one instant the window ends first, then held threads look, in order of being held.
// Reconstructed: the whole combination; `barrier` (both: training passes the barrier as well, as
// RCKM's watched tasks do) and `drain_check` (a window is empty only if no kernel of training is
// outstanding; collectives may be) are variants to compare.
#include <algorithm>
#include <deque>
#include <memory>

#include "policies/builtin.hpp"
#include "policies/iteration_reference.hpp"
#include "policies/launch_polls.hpp"
#include "policies/protected_client.hpp"
#include "policies/spare_memory_placer.hpp"
#include "policies/specinf_rckm_tokens.hpp"
#include "policies/token_counter.hpp"
#include "sim/policy/declare.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;
using namespace std::chrono_literals;

/// Not even the one kernel passes that a grant of 0 lets slip.
constexpr std::int64_t kNoGrant = -1;

class SpecInfRckm final : public Policy {
 public:
  explicit SpecInfRckm(const ParameterSet& given)
      : window_(given.duration("window")),
        empty_blocks_(given.integer("empty_blocks")),
        gates_training_(given.text("barrier") == "both"),
        training_request_(given.number("training_request")),
        training_limit_(given.number("training_limit")),
        upper_blocks_(static_cast<double>(given.integer("upper_blocks"))),
        drain_check_(given.flag("drain_check")),
        filler_percentage_(static_cast<std::uint32_t>(given.integer("filler_percentage"))),
        reserve_{static_cast<std::uint64_t>(given.integer("reserve_mib")) << 20},
        online_first_(given.text("pool") == "online_first"),
        uses_reference_(given.text("reaction") == "iterations"),
        reference_(reference_constants(given)),
        tokens_(specinf_rckm_constants(given)),
        polls_(given.duration("poll")),
        next_window_(window_) {}

  Sharing start(const GpuInfo&, std::span<const ClientInfo> clients) override {
    for (const ClientInfo& client : clients) clients_.push_back({.role = client.role});
    clients_[0].tokens.grant = training_grant();
    return {SharingMode::kMps};
  }

  ClientSharing share(const ClientInfo& client) override {
    return {.sm_percentage = client.id == kProtected ? 100 : filler_percentage_};
  }

  Admission admit(const ClientInfo& filler, Bytes used, const GpuInfo& gpu) override {
    Admission admission = admit_with_reserve(filler, used, reserve_, gpu);
    clients_[filler.id.index()].admitted = admission.admitted;
    set_filler_grants(Instant{});
    for (Client& client : clients_) {
      if (client.admitted) client.tokens.grant = client.next_grant;
    }
    return admission;
  }

  Verdict on_launch(const LaunchInfo& launch, Instant now, Actions&) override {
    turn_window(now);
    if (!is_kernel(launch.kind) || passes(launch)) return Verdict::kAdmit;
    polls_.hold(launch.client, now);
    return Verdict::kHold;
  }

  void on_completion(const CompletionInfo& completion, Instant now, Actions&) override {
    turn_window(now);
    if (!drain_check_ || completion.client != kProtected) return;
    const auto launch = std::ranges::find(outstanding_, completion.launch, &Outstanding::launch);
    if (launch == outstanding_.end() || --launch->operations > 0) return;
    outstanding_.erase(launch);
  }

  void on_iteration(const IterationInfo& iteration, Instant now, Actions&) override {
    turn_window(now);
    if (!uses_reference_ || iteration.client != kProtected) return;
    const bool measuring = reference_.is_measuring(now);
    reference_.add(iteration.length, now);
    if (!measuring && reference_.value()) {
      tokens_.end_iteration(iteration.length, *reference_.value());
    }
  }

  void on_gone(ClientId client, Instant now, Actions&) override {
    turn_window(now);
    clients_[client.index()].admitted = false;
  }

  std::optional<Instant> next_tick() const override {
    return polls_.next() ? std::min(next_window_, *polls_.next()) : next_window_;
  }

  void on_tick(Instant now, Actions& actions) override {
    turn_window(now);
    polls_.wake(now, actions, [this](const LaunchInfo& launch) { return passes(launch); });
  }

 private:
  struct Client {
    Role role = Role::kTraining;
    bool admitted = false;  ///< fillers only, while they live
    TokenCounter tokens{};
    std::int64_t next_grant = 0;
  };

  /// A launch of training that has not completed, and how many of its operations.
  struct Outstanding {
    std::uint64_t launch = 0;
    std::uint32_t operations = 0;
  };

  /// Kernels only. Test before add.
  bool passes(const LaunchInfo& launch) {
    TokenCounter& tokens = clients_[launch.client.index()].tokens;
    const bool training = launch.client == kProtected;
    if ((!training || gates_training_) && !tokens.is_open()) return false;
    tokens.launch(launch.blocks);
    if (drain_check_ && training && launch.kind == WorkKind::kKernel) {
      outstanding_.push_back({launch.launch, launch.operations});
    }
    return true;
  }

  /// What happens at a window's end belongs to the next one, whoever is called first.
  void turn_window(Instant now) {
    if (now < next_window_) return;
    end_window(now);
    next_window_ = next_multiple(now, window_);
  }

  void end_window(Instant now) {
    const bool empty = clients_[0].tokens.launched <= empty_blocks_ && outstanding_.empty();
    using Window = SpecInfRckmTokens::Window;
    tokens_.end_window(empty ? Window::kEmpty : Window::kBusy);
    clients_[0].next_grant = training_grant();
    set_filler_grants(now);
    for (Client& client : clients_) client.tokens.begin_period(client.next_grant);
  }

  [[nodiscard]] std::int64_t training_grant() const {
    const bool uncleared = std::any_of(clients_.begin() + 1, clients_.end(), [](const Client& c) {
      return c.admitted && c.tokens.count > 0;
    });
    return static_cast<std::int64_t>(upper_blocks_ *
                                     (uncleared ? training_request_ : training_limit_));
  }

  void set_filler_grants(Instant now) {
    double online = 0;
    double offline = 0;
    double online_launched = 0;
    for (const Client& client : clients_) {
      if (!client.admitted) continue;
      (client.role == Role::kOnline ? online : offline) += 1;
      if (client.role == Role::kOnline) {
        online_launched += static_cast<double>(client.tokens.launched);
      }
    }
    const double all = online + offline;
    const double online_tokens = tokens_.tokens(Role::kOnline);
    const double offline_tokens = tokens_.tokens(Role::kOffline);
    const double left = std::max(0.0, all * offline_tokens - online_launched);
    const bool none = uses_reference_ && reference_.is_measuring(now);
    for (Client& client : clients_) {
      if (!client.admitted) continue;
      const bool is_online = client.role == Role::kOnline;
      double tokens = is_online ? online_tokens : offline_tokens;
      if (online_first_) tokens = is_online ? all * online_tokens / online : left / offline;
      client.next_grant = none ? kNoGrant : static_cast<std::int64_t>(tokens);
    }
  }

  Duration window_;
  std::int64_t empty_blocks_;
  bool gates_training_;
  double training_request_;
  double training_limit_;
  double upper_blocks_;
  bool drain_check_;
  std::uint32_t filler_percentage_;
  Bytes reserve_;
  bool online_first_;
  bool uses_reference_;
  IterationReference reference_;
  SpecInfRckmTokens tokens_;
  LaunchPolls polls_;
  Instant next_window_;
  std::vector<Client> clients_;
  std::deque<Outstanding> outstanding_;  ///< in order of launch; drain_check only
};

}  // namespace

PolicySpec specinf_rckm_spec() {
  const std::string rckm = "Dilu RCKM.c and its client";
  PolicySpec spec;
  spec.name = "specinf_rckm";
  spec.summary = "Dilu's launch counting in SpecInF's place (reconstructed)";
  spec.source =
      "reconstructed: SpecInF, arXiv 2503.02550 (abstract), with the rules of Dilu's "
      "RCKM.c, github.com/sigserverless/Dilu at 1134655a";
  spec.reconstruction = "its algorithm is not public: Dilu's rules stand for it";
  // Only drain_check looks at completions, only reaction iterations at those.
  spec.needs = {.completions = true, .iterations = true};
  spec.parameters = {
      declare_duration("window", 5ms, 10us, 10s,
                       {"", "The Bubble Monitor's window, and the tokens' period.", rckm}),
      declare_duration("poll", 2ms, 1us, 10s,
                       {"", "A held launch looks again so often.", rckm + ": TIME_TICK"}),
      declare_integer(
          "empty_blocks", 0, 0, 1'000'000'000,
          {"blocks", "A window with at most so many blocks of training is empty.", rckm}),
      declare_choice("barrier", {"filler", "both"},
                     {"", "Whose kernels pass the Kernel Barrier.",
                      "reconstructed: not known of SpecInF; both as in RCKM"}),
      declare_number("training_request", 0.5, 0.001, 1,
                     {"",
                      "barrier both: training's share of upper_blocks while fillers have "
                      "uncovered blocks.",
                      "reconstructed: Dilu's request of a job"}),
      declare_number(
          "training_limit", 1.0, 0.001, 1,
          {"", "barrier both: and while they have none.", "reconstructed: Dilu's limit of a job"}),
      declare_flag("drain_check", false,
                   {"", "A window is empty only if no kernel of training is outstanding.",
                    "reconstructed: an extra to compare with"}),
      declare_integer("filler_percentage", 100, 1, 100,
                      {"%", "Active-thread percentage of each filler.",
                       "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE; its default is 100"}),
      declare_integer(
          "reserve_mib", 1024, 0, 1 << 20,
          {"MiB", "Memory that must stay free beside a filler.", rckm + ": spare memory of 1 GiB"}),
      declare_choice("pool", {"online_first", "equal"},
                     {"",
                      "Online fillers may take the whole pool, and offline ones what they leave; "
                      "or each filler its part.",
                      "reconstructed"}),
      spare_memory_parameter(),
  };
  for (auto more : {specinf_rckm_token_parameters(),
                    burst_parameters("windows", "Dilu RCKM.c, roles mirrored"),
                    reference_parameters()}) {
    for (ParameterSpec& parameter : more) spec.parameters.push_back(std::move(parameter));
  }
  spec.make_placer = make_spare_memory_placer;
  spec.demands = {{SystemFeature::kMps}, {SystemFeature::kLaunchInterception}};
  spec.not_searched = {"reserve_mib"};
  spec.settling = [](const ParameterSet& given, Duration iteration) {
    return (given.integer("reference_iterations") + given.integer("burst_history")) * iteration;
  };
  spec.make = [](const ParameterSet& given) { return std::make_unique<SpecInfRckm>(given); };
  return spec;
}

}  // namespace bubblesim::policies
