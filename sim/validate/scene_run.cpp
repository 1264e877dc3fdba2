#include "sim/validate/scene_run.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <numeric>
#include <utility>

#include "sim/base/nearest_rank.hpp"
#include "sim/schedule/shared_gpu.hpp"
#include "sim/workload/machine.hpp"

namespace bubblesim::validate {
namespace {

// A client at work: starts its passes, passes on what the policy may see, keeps what is measured.
class SceneWorker final : public schedule::ClientWatch, public engine::EventHandler {
 public:
  SceneWorker(engine::Engine& engine, const SceneClient& client)
      : client_(client),
        engine_(engine),
        entity_(engine.add_entity(*this, engine::Phase::kArrival)) {}

  void begin(workload::ProgramRun& run) {
    run_ = &run;
    if (client_.loops) {
      last_ = kSimStart + client_.start;
      return engine_.schedule(entity_, last_);
    }
    await(kSimStart);
  }

  void on_event(SimTime now) override {
    if (!client_.loops) ++next_;
    last_ = last_pass_ = now;
    run_->start_pass(now);
  }
  void on_iteration(workload::ProgramRun& run, std::uint32_t index, SimTime now) override {
    if (client_.loops && client_.epoch == 0 && index > 0) note(run, now);
  }
  void on_pass_finished(workload::ProgramRun& run, SimTime now) override {
    if (client_.loops && client_.epoch == 0) return;
    note(run, now);
    if (!client_.loops) return await(now);
    const std::size_t in_epoch = ends_.size() % client_.epoch;
    engine_.schedule(entity_, in_epoch == 0 ? now + client_.pause : next_pass(in_epoch, now));
  }

  // `share` of the passes that end after `from` gives no latency.
  [[nodiscard]] ClientFigures figures(SimTime from, double share) const {
    ClientFigures out;
    out.ends = ends_;
    const auto first = std::lower_bound(ends_.begin(), ends_.end(), from);
    const auto latency = latencies_.begin() + (first - ends_.begin());
    out.passes = static_cast<std::uint64_t>(ends_.end() - first);
    const auto skipped = static_cast<std::ptrdiff_t>(share * static_cast<double>(out.passes));
    out.latencies.assign(latency + skipped, latencies_.end());
    std::sort(out.latencies.begin(), out.latencies.end());
    if (out.passes == 1) {
      out.per_s = 1 / to_seconds(*latency);
    } else if (out.passes > 1) {
      out.per_s = static_cast<double>(out.passes - 1) / to_seconds(ends_.back() - *first);
    }
    return out;
  }

 private:
  // The loader begins anew with each epoch, its first input in the pause. It makes one after
  // another while fewer than kInputsAhead are ready.
  SimTime next_pass(std::size_t in_epoch, SimTime now) {
    if (in_epoch == 1) ready_ = last_pass_;
    taken_[(in_epoch - 1) % kInputsAhead] = last_pass_;
    const SimTime room = in_epoch < kInputsAhead ? ready_ : taken_[in_epoch % kInputsAhead];
    ready_ = std::max(ready_, room) + client_.feed;
    return std::max(now + client_.host_gap, ready_);
  }
  void note(workload::ProgramRun& run, SimTime now) {
    tell_iteration(run, now - last_, now);
    latencies_.push_back(now - last_);
    ends_.push_back(now);
    last_ = now;
  }
  void await(SimTime now) {
    if (next_ == client_.arrivals.size()) return;
    engine_.schedule(entity_, std::max(now, client_.arrivals[next_]));
  }

  const SceneClient& client_;
  engine::Engine& engine_;
  engine::EntityId entity_;
  workload::ProgramRun* run_ = nullptr;
  std::size_t next_ = 0;
  SimTime last_{};  ///< when the pass at hand began
  SimTime last_pass_{};  ///< when the last pass of a loop with epochs took its input
  SimTime ready_{};      ///< when the loader has the last input that was asked for
  std::array<SimTime, kInputsAhead> taken_{};  ///< when inputs were taken, by number in the epoch
  std::vector<SimTime> ends_;
  std::vector<Duration> latencies_;
};

std::vector<policy::ClientInfo> infos_of(const std::vector<SceneClient>& clients) {
  std::vector<policy::ClientInfo> out;
  for (const SceneClient& client : clients) {
    policy::ClientInfo info;
    info.id = ClientId{static_cast<std::uint32_t>(out.size())};
    info.role = client.role;
    info.name = client.name;
    out.push_back(std::move(info));
  }
  return out;
}

Result<LoneClient> alone(program::Program program, const hardware::GpuSpec& gpu) {
  LoneClient out{std::move(program)};
  BUBBLESIM_ASSIGN_OR_RETURN(const Duration pass, solo_latency(gpu, out.program));
  out.mean_ms = 1e3 * to_seconds(pass);
  out.per_s = 1 / to_seconds(pass);
  return out;
}

}  // namespace

void ClientFigures::add(ClientFigures run, double share) {
  passes += run.passes;
  per_s += share * run.per_s;
  const auto known = static_cast<std::ptrdiff_t>(latencies.size());
  latencies.insert(latencies.end(), run.latencies.begin(), run.latencies.end());
  std::inplace_merge(latencies.begin(), latencies.begin() + known, latencies.end());
  if (ends.empty()) ends = std::move(run.ends);
}

double ClientFigures::mean_ms() const {
  if (latencies.empty()) return 0;
  const Duration sum = std::accumulate(latencies.begin(), latencies.end(), Duration{});
  return 1e3 * to_seconds(sum) / static_cast<double>(latencies.size());
}

double ClientFigures::percentile_ms(double percent) const {
  return latencies.empty() ? 0 : 1e3 * to_seconds(percentile_of(latencies, percent));
}

Result<std::vector<ClientFigures>> run_scene(const SceneSetup& setup) {
  workload::Machine machine(*setup.gpu);
  // What was measured ran behind each system's own interception, whose cost is not known.
  const policy::GateCosts none;
  const schedule::Decider decider{
      .policy = setup.policy, .parameters = setup.parameters, .gate = &none};
  BUBBLESIM_ASSIGN_OR_RETURN(
      const auto gpu, schedule::SharedGpu::make(machine, decider, infos_of(setup.clients)));
  std::vector<std::unique_ptr<SceneWorker>> workers;
  std::vector<workload::ProgramRun*> runs;
  for (const SceneClient& client : setup.clients) {
    const auto& admission = gpu->decided().admissions[workers.size()];
    if (!admission.admitted) return fail(client.name + " is not admitted: " + admission.reason);
    workers.push_back(std::make_unique<SceneWorker>(machine.engine(), client));
    workload::RunSetup run;
    const bool goes_on = client.loops && client.epoch == 0;
    run.repeat = goes_on ? workload::Repeat::kLoop : workload::Repeat::kOnePass;
    runs.push_back(gpu->add_client(client.program, run, workers.back().get()));
  }
  gpu->start();
  for (std::size_t i = 0; i < runs.size(); ++i) workers[i]->begin(*runs[i]);
  machine.conductor().run_until(kSimStart + setup.length);
  if (auto fault = gpu->fault()) return tl::unexpected<Error>(*std::move(fault));
  std::vector<ClientFigures> out;
  for (const auto& worker : workers) {
    out.push_back(worker->figures(kSimStart + setup.from, setup.latencies_from));
  }
  return out;
}

CheckedResult<LoneClient> make_lone(const PairWorkload& workload, const PairMachine& machine,
                                    std::uint32_t batch, double solo_ms) {
  constexpr int kScalings = 3;  // waits that do not scale leave an error that shrinks each time
  BUBBLESIM_ASSIGN_OR_RETURN(program::Program program, pair_program(workload, machine, batch));
  BUBBLESIM_ASSIGN_OR_RETURN(LoneClient out, alone(std::move(program), machine.gpu));
  for (int i = 0; solo_ms > 0 && i < kScalings; ++i) {
    BUBBLESIM_ASSIGN_OR_RETURN(
        out, alone(stretched(std::move(out.program), solo_ms / out.mean_ms), machine.gpu));
  }
  return out;
}

Result<Duration> solo_latency(const hardware::GpuSpec& gpu, const program::Program& program) {
  constexpr std::size_t kPasses = 4;
  SceneSetup setup;
  setup.gpu = &gpu;
  setup.clients.resize(1);
  setup.clients.front().program = &program;
  setup.clients.front().loops = false;
  setup.clients.front().arrivals.assign(kPasses, kSimStart);
  setup.length = std::chrono::hours(1);
  BUBBLESIM_ASSIGN_OR_RETURN(const auto figures, run_scene(setup));
  const std::vector<Duration>& passes = figures.front().latencies;
  if (passes.size() != kPasses) return fail("a pass alone does not end within an hour");
  return std::accumulate(passes.begin(), passes.end(), Duration{}) /
         static_cast<std::int64_t>(kPasses);
}

}  // namespace bubblesim::validate
