// tally_tgs: the TGS that Tally's authors ran for their comparison, inside the one process of
// Tally's server. The protected client and fillers are streams of one context, the former of the
// greatest priority. A filler has at most `in_flight` kernels with the GPU; when that many have
// been launched, the next one waits until all of them have ended.
//
// Sharing is that of MPS clients: a kernel behind one of another client's stream is delayed, too
// (inferred: without that, fillers of the measured pairs marked fit are a fifth too fast, with it
// 3 %; configs/validation/colocation_a100.json).
//
// TGS's limit on launches stands in that code too, but nothing sets its count of clients
// (num_clients, scheduler/tgs.cpp), so that it waits for a second client for ever and limits
// nothing. Held are fillers' kernels; their copies, memsets and collectives pass. A CUDA graph is
// one launch. Ties: none, for each filler has kernels of its own in flight; the code, which knows
// one client beside the protected one, has one count. Source: tally-project/tally at 2923d23
// (branch tgs). Changed: the server and its clients' messages take no time, and a held launch holds
// its thread, where the server queues it.
#include <memory>
#include <vector>

#include "policies/builtin.hpp"
#include "policies/client_queues.hpp"
#include "policies/protected_client.hpp"
#include "sim/policy/declare.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;

class TallyTgs final : public Policy {
 public:
  explicit TallyTgs(const ParameterSet& given)
      : most_(static_cast<std::uint64_t>(given.integer("in_flight"))) {}

  Sharing start(const GpuInfo&, std::span<const ClientInfo> clients) override {
    fillers_.assign(clients.size(), {});
    return {.mode = SharingMode::kMps};
  }
  ClientSharing share(const ClientInfo& client) override {
    return {.priority = client.id == kProtected ? 1 : 0};
  }

  Verdict on_launch(const LaunchInfo& launch, Instant, Actions&) override {
    if (launch.client == kProtected || launch.kind != WorkKind::kKernel) return Verdict::kAdmit;
    Filler& filler = fillers_[launch.client.index()];
    if (filler.held > 0 || !may_launch(filler)) {
      ++filler.held;
      return Verdict::kHold;
    }
    begin(filler, launch);
    return Verdict::kAdmit;
  }

  void on_completion(const CompletionInfo& completion, Instant, Actions& actions) override {
    if (completion.client == kProtected) return;
    Filler& filler = fillers_[completion.client.index()];
    filler.running.complete(completion.launch);
    while (filler.held > 0 && may_launch(filler)) {
      begin(filler, actions.oldest_held(completion.client));
      --filler.held;
      actions.release(completion.client);
    }
  }

  void on_gone(ClientId client, Instant, Actions&) override { fillers_[client.index()] = {}; }

 private:
  struct Filler {
    std::uint64_t launched = 0;  ///< kernels launched since all had ended
    LaunchQueue running;
    std::uint64_t held = 0;
  };

  [[nodiscard]] bool may_launch(Filler& filler) const {
    if (filler.launched == most_ && filler.running.empty()) filler.launched = 0;
    return filler.launched < most_;
  }

  static void begin(Filler& filler, const LaunchInfo& launch) {
    ++filler.launched;
    filler.running.push(launch);
  }

  std::uint64_t most_;
  std::vector<Filler> fillers_;  ///< by client
};

}  // namespace

PolicySpec tally_tgs_spec() {
  PolicySpec spec;
  spec.name = "tally_tgs";
  spec.summary = "TGS as Tally's authors ran it: streams of one process, kernels by the twenty";
  spec.source = "Tally, ASPLOS'25; code at tally-project/tally, branch tgs";
  spec.needs.completions = true;
  spec.parameters = {
      declare_integer("in_flight", 20, 1, 1024,
                      {"kernels", "A filler launches so many, then waits until all have ended.",
                       "Tally code, scheduler/tgs.cpp: at most 20 kernels on the fly"}),
  };
  spec.demands = {{SystemFeature::kOneProcess}, {SystemFeature::kLaunchInterception}};
  spec.make = [](const ParameterSet& given) { return std::make_unique<TallyTgs>(given); };
  return spec;
}

}  // namespace bubblesim::policies
