#include "tests/unit/capture/policy_host/host_rig.hpp"

#include <utility>

#include "sim/base/check.hpp"
#include "sim/base/units.hpp"

namespace bubblesim::capture {
namespace {

std::string number(ClientId client, std::uint64_t launch) {
  return std::to_string(client.value) + "." + std::to_string(launch);
}

}  // namespace

void ScriptedPolicy::note(Instant now, const std::string& what) {
  log.push_back(format_duration(now) + " " + what);
}

policy::Sharing ScriptedPolicy::start(const policy::GpuInfo&, std::span<const policy::ClientInfo>) {
  return {};
}

policy::Verdict ScriptedPolicy::on_launch(const policy::LaunchInfo& info, Instant now,
                                          Actions& actions) {
  note(now, "launch " + number(info.client, info.launch));
  launches.push_back(info);
  return launch ? launch(info, now, actions) : policy::Verdict::kAdmit;
}

void ScriptedPolicy::on_completion(const policy::CompletionInfo& info, Instant now,
                                   Actions& actions) {
  note(now, "completion " + number(info.client, info.launch));
  if (completion) completion(info, now, actions);
}

void ScriptedPolicy::on_bubble_begin(const policy::BubbleInfo& info, Instant now, Actions&) {
  note(now, "bubble of " + format_duration(info.expected));
}

void ScriptedPolicy::on_bubble_end(Instant now, Actions&) { note(now, "bubble ends"); }

void ScriptedPolicy::on_iteration(const policy::IterationInfo& info, Instant now, Actions&) {
  note(now, "iteration " + number(info.client, info.number) + " of " +
                format_duration(info.length));
}

void ScriptedPolicy::on_gone(ClientId client, Instant now, Actions& actions) {
  note(now, "gone " + std::to_string(client.value) + ", held " +
                std::to_string(actions.held(client)));
}

void ScriptedPolicy::on_tick(Instant now, Actions& actions) {
  note(now, "tick");
  if (ticks) ticks(now, actions);
}

void ScriptedPolicy::add_counts(CounterSet& counters) const {
  counters.add({"scripted", Severity::kInfo, "of a test"}, log.size());
}

HostRig::HostRig(policy::Needs needs, std::uint32_t clients, GateMode first, std::uint32_t window)
    : clock(*make_turn_clock()), part(clock->join(Turn::kControl)) {
  spec.name = "scripted";
  spec.needs = needs;
  PolicyHostSetup setup{&spec, &policy, {}, {}, policy::SharingMode::kTimeSliced};
  for (std::uint32_t i = 0; i < clients; ++i) {
    HostedClient client;
    client.info.id = ClientId{i};
    client.info.memory = Bytes{100};
    client.mode = i == 0 ? first : GateMode::kAsk;
    client.window = i == 0 ? 0 : window;
    setup.clients.push_back(client);
  }
  auto made = PolicyHost::make(*clock, std::move(setup));
  BUBBLESIM_CHECK(made.has_value(), "no policy host");
  host = std::move(*made);
  crew_ = std::make_unique<Crew>(*clock);
}

HostRig::~HostRig() {
  host->stop();
  crew_.reset();
}

void HostRig::start_host() {
  crew_->start(Turn::kPolicy, [this] { host->run(); });
}

std::unique_ptr<GateClient> HostRig::open(std::uint32_t id, Duration patience) {
  auto client = GateClient::open(host->gate_name(), ClientId{id}, *clock, patience);
  BUBBLESIM_CHECK(client.has_value(), "no gate client");
  return std::move(*client);
}

void HostRig::start_client(std::uint32_t id, Turn turn, std::function<void(GateClient&)> work) {
  crew_->start(turn, [this, id, work = std::move(work)] { work(*open(id)); });
}

void HostRig::note(const std::string& what) {
  log.push_back(format_duration(clock->now().time_since_epoch()) + " " + what);
}

void HostRig::run_until(Duration end) {
  clock->sleep_until(at(end));
  host->stop();
  crew_->wait();
}

}  // namespace bubblesim::capture
