#include "capture/live/live_plan.hpp"

#include <algorithm>
#include <utility>

#include "capture/substrate/card_state.hpp"
#include "sim/base/units.hpp"
#include "sim/policy/gate_terms.hpp"
#include "sim/policy/session/start.hpp"

namespace bubblesim::capture {
namespace {

using Mode = policy::SharingMode;

/// The value of a parameter as a config writes it; empty: the policy has none of this name.
std::string given(const policy::ParameterSet& parameters, std::string_view name) {
  for (const auto& [key, value] : parameters) {
    if (key == name) return policy::value_text(value);
  }
  return {};
}

struct Refused {
  const char* policy;
  const char* parameter;  ///< null: with any parameters
  const char* value;      ///< refused with this one
  const char* reason;
};

/// Demands of policies that their declarations do not have.
constexpr Refused kRefused[] = {
    {"gpreempt", nullptr, nullptr,
     "is nothing but time slices of its own, which no program may set while others run"},
    {"time_slicing", "work_conserving", "false",
     "switches contexts off with work_conserving: false, which only the driver can"},
    {"xsched", "level", "2", "withdraws launched kernels at level 2; level 1 holds them only"},
    {"xsched", "level", "3", "switches contexts off at level 3, which only the driver can"},
};

std::string why_needs(const policy::Needs& needs) {
  std::string list;
  const auto add = [&](bool needed, const char* what) {
    if (needed) list += (list.empty() ? "" : ", ") + std::string(what);
  };
  add(needs.kernel_durations, "profiled durations of kernels");
  add(needs.kernel_classes, "profiled classes of kernels");
  add(needs.bubbles, "the training job's measured bubbles");
  if (list.empty()) return {};
  return "needs " + list + ", which an unchanged program does not give";
}

Result<Mode> sharing_of(const policy::PolicySpec& spec, Mode mode, Substitute substitute,
                        LivePlan& plan) {
  const auto refuse = [&](const std::string& reason) {
    return fail("policy " + spec.name, {}, reason);
  };
  switch (mode) {
    case Mode::kMps:
    case Mode::kTimeSliced: return mode;
    case Mode::kSpatial:
      if (substitute == Substitute::kTimeSliced) {
        plan.notes.push_back("the policy asks for streams of one process; two programs have time "
                             "slices instead, so priorities of streams have no effect");
        return Mode::kTimeSliced;
      }
      return refuse("shares one process between clients; two programs cannot. Say --as time-sliced "
                    "to run it with time slices, or take a policy that shares by MPS");
    case Mode::kPartitioned:
      return refuse("cuts the GPU into MIG instances, which is its owner's to do");
    case Mode::kIdleOnly:
    case Mode::kLeftover: break;
  }
  return refuse("is an oracle: it knows what no real system knows");
}

Result<void> check_shares(const policy::PolicySpec& spec, const policy::Sharing& sharing,
                          LivePlan& plan) {
  const bool mps = plan.sharing == Mode::kMps;
  for (const policy::ClientSharing& share : plan.shares) {
    if (share.sms > 0) {
      return fail("policy " + spec.name, {}, "gives clients SMs of their own, which two unchanged "
                                             "programs cannot have");
    }
    if (share.sm_percentage < 100 && !mps) {
      plan.notes.push_back("a share of " + std::to_string(share.sm_percentage) +
                           " % of the SMs needs MPS and is not applied");
    }
    if (share.memory_limit && !mps) {
      plan.notes.push_back("the memory limit of a client needs MPS and is not applied");
    }
  }
  if (sharing.changing_slices) {
    return fail("policy " + spec.name, {}, "sets time slices while programs run, and the driver's "
                                           "are fixed");
  }
  if (sharing.slice) plan.notes.push_back("the driver's own time slice is used, not the policy's");
  if (sharing.unified_memory) {
    plan.notes.push_back("memory is not oversubscribed: the programs' own allocations decide");
  }
  return {};
}

constexpr std::uint64_t kReserve = 10;  ///< a tenth of the free memory is left to training

constexpr const char* kSharedFaults =
    "under MPS both programs are one fault domain: a fatal fault of the filler (an illegal "
    "address, a failed assertion) ends training, too. Let training write checkpoints, or take a "
    "policy of time slices (bubblesim policies)";

}  // namespace

void limit_fillers(LivePlan& plan, std::optional<Bytes> free, bool inherited) {
  if (plan.sharing != Mode::kMps) {
    plan.notes.push_back("the filler's memory is not limited, which needs MPS");
    return;
  }
  for (std::size_t client = 1; client < plan.shares.size(); ++client) {
    std::optional<Bytes>& limit = plan.shares[client].memory_limit;
    if (!limit && !inherited && free) limit = Bytes{free->value - free->value / kReserve};
    plan.notes.push_back(
        limit       ? "the filler's memory is limited to " + format_bytes(*limit)
        : inherited ? "the memory of both programs is limited as the environment says"
                    : "the filler's memory is not limited: the driver does not say what is free");
  }
}

const char* live_sharing_name(Mode sharing) {
  return sharing == Mode::kMps ? "MPS" : "time slices";
}

std::string why_not_live(const policy::PolicySpec& spec, const policy::ParameterSet& parameters) {
  if (spec.oracle) return "is an oracle: it knows what no real system knows";
  std::string reason = why_needs(spec.needs);
  for (const Refused& refused : kRefused) {
    const bool hit = spec.name == refused.policy &&
                     (refused.parameter == nullptr ||
                      given(parameters, refused.parameter) == refused.value);
    if (hit && reason.empty()) reason = refused.reason;
  }
  return reason;
}

Result<LivePlan> plan_live(const policy::PolicySpec& spec, const policy::ParameterSet& parameters,
                           policy::Policy& policy, const policy::GpuInfo& gpu,
                           const std::vector<policy::ClientInfo>& clients, Substitute substitute) {
  const std::string reason = why_not_live(spec, parameters);
  if (!reason.empty()) return fail("policy " + spec.name, {}, reason);
  BUBBLESIM_ASSIGN_OR_RETURN(policy::StartDecisions decided,
                             policy::start_policy(spec, policy, gpu, clients));
  for (std::size_t i = 1; i < clients.size(); ++i) {
    const policy::Admission& admission = decided.admissions[i];
    if (admission.admitted) continue;
    return fail("policy " + spec.name, {}, "does not admit " + clients[i].name +
                    (admission.reason.empty() ? "" : ": " + admission.reason));
  }
  LivePlan plan;
  plan.shares = std::move(decided.shares);
  const policy::Sharing& sharing = decided.sharing;
  BUBBLESIM_ASSIGN_OR_RETURN(plan.sharing, sharing_of(spec, sharing.mode, substitute, plan));
  BUBBLESIM_RETURN_IF_ERROR(check_shares(spec, sharing, plan));
  if (plan.sharing == Mode::kMps) plan.warning = kSharedFaults;
  plan.asks_training = policy::holds_training(spec, parameters);
  if (spec.needs.iterations) {
    plan.notes.push_back("the policy hears of iterations only if the programs call "
                         "bubblesim_iteration()");
  }
  return plan;
}

namespace {

std::string card_of(const std::string& device, const Variables& environment) {
  if (!device.empty()) return device;
  const auto visible = environment.find("CUDA_VISIBLE_DEVICES");
  if (visible == environment.end() || visible->second.empty()) return "0";
  return visible->second.substr(0, visible->second.find(','));
}

// Whether the job sees one GPU. Without a variable that limits the visible GPUs it sees all.
bool sees_one(const CardReader& reader, const std::string& device, const Variables& environment) {
  const auto visible = environment.find("CUDA_VISIBLE_DEVICES");
  if (!device.empty()) return true;
  if (visible == environment.end()) return !reader.read("1");
  return !visible->second.empty() && visible->second.find(',') == std::string::npos;
}

std::string facts_text(const policy::GpuInfo& gpu) {
  return gpu.name + ", " + std::to_string(gpu.sm_count) + " SMs, " + format_bytes(gpu.memory);
}

}  // namespace

GpuFacts facts_of_gpu(const policy::GpuInfo& constants, const std::string& device,
                      const Variables& environment, const std::string& nvml) {
  GpuFacts facts;
  facts.gpu = constants;
  const auto reader = CardReader::open(nvml);
  const auto card = reader ? (*reader)->read(card_of(device, environment))
                           : tl::make_unexpected(reader.error());
  if (!card) {
    facts.text = "the policy was told of " + facts_text(constants) + ", by --device: " +
                 card.error().text();
    return facts;
  }
  facts.is_only_one = sees_one(**reader, device, environment);
  std::string guessed;
  if (!card->name.empty()) facts.gpu.name = card->name;
  if (card->sm_count) facts.gpu.sm_count = *card->sm_count;
  if (card->free_bytes) facts.free = Bytes{*card->free_bytes};
  if (card->memory_bytes) facts.gpu.memory = Bytes{*card->memory_bytes};
  if (!card->sm_count) guessed += "SMs, ";
  if (!card->memory_bytes) guessed += "memory, ";
  facts.text = "the policy was told of " + facts_text(facts.gpu) + ", as the card says; " +
               guessed + "slices and bandwidths are those of " + constants.name + " (--device)";
  return facts;
}

}  // namespace bubblesim::capture
