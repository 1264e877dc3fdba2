// freeride: side tasks run in steps that are known to end within the bubble (FreeRide,
// Middleware'26). The instrumented training engine reports each bubble with its expected end. The
// manager sees it at its next poll (a grid of manager_poll from instant 0) and lets the GPU's side
// task run: the first that launched, whether its steps fit or not, until its process ends; the next
// one from a new bubble on (scheduler_v1.py:264-301). The task's loop sleeps interface_poll (5 ms)
// after each look and each step (task_v2.py:531-576), and starts a step only if
//     bubble's expected end - now > step_margin (1.2, run_side_task.py:57) x step duration.
// All launches of a begun step pass, whatever happens to the bubble. The loop looks when the host
// has launched a step, not when the GPU has ended it, so the last step may outlast the bubble by
// nearly its length. With `looks: completion` the loop looks when the step has ended.
//
// A step is a pass of the filler (a batch of inference, an iteration of training); its profiled
// duration (ClientInfo::pass) is exact. A filler without such a profile has steps of one launch,
// with that launch's profiled duration, else step_duration.
//
// Sharing: MPS; training has the higher client priority. A filler may allocate what training's peak
// leaves (the code: a limit that the user sets). Placement: freeride_placer.hpp.
// Ties: fillers in client order; a filler's threads in the order of being held.
// Source: arXiv 2409.06941; jiashu-z/freeride at 8de497d. Reconstructed: the grace period's length.
// Differs: a step that still runs `grace` after its bubble is counted (freeride_overrun_steps),
// where the code kills the task; its duration is not rounded up to 10 ms before the margin
// (run_side_task.py); every bubble counts, not an iteration's 4 to 6 largest; a bubble's end is
// known at once; tasks have equal priority; a filler with a queue of jobs is one task; there is no
// imperative interface (SIGTSTP and SIGCONT).
#include <algorithm>
#include <memory>
#include <utility>

#include "policies/builtin.hpp"
#include "policies/freeride_placer.hpp"
#include "policies/launch_polls.hpp"
#include "sim/policy/declare.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;
using namespace std::chrono_literals;

constexpr CounterSpec kOverruns{
    "freeride_overrun_steps", Severity::kNotice,
    "steps that still ran a grace period after their bubble; the real system kills such a task"};
constexpr CounterSpec kFreerideUnprofiled{
    "freeride_unprofiled_steps", Severity::kNotice,
    "steps without a profiled duration, taken to last step_duration"};

class FreeRide final : public Policy {
 public:
  explicit FreeRide(const ParameterSet& given)
      : step_duration_(given.duration("step_duration")),
        manager_poll_(given.duration("manager_poll")),
        grace_(given.duration("grace")),
        pipeline_only_(given.text("bubbles") == "pipeline"),
        interface_poll_(given.duration("interface_poll")),
        step_margin_(given.number("step_margin")),
        looks_at_launch_(given.text("looks") == "launch") {}

  Sharing start(const GpuInfo& gpu, std::span<const ClientInfo> clients) override {
    for (const ClientInfo& client : clients) tasks_.push_back({.pass = client.pass});
    const ClientInfo& training = clients.front();
    if (training.memory_known && gpu.memory > training.memory) {
      limit_ = Bytes{gpu.memory.value - training.memory.value};
    }
    return {SharingMode::kMps};
  }

  ClientSharing share(const ClientInfo& client) override {
    if (client.id == ClientId{0}) return {.priority = 1};
    return {.memory_limit = limit_};
  }

  Verdict on_launch(const LaunchInfo& launch, Instant now, Actions& actions) override {
    if (launch.client == ClientId{0}) return Verdict::kAdmit;
    Task& task = tasks_[launch.client.index()];
    task.submitted = std::min(task.submitted, now);
    if (looks_at_launch_ && inside_pass(task)) sleep_after_step(task, now);
    const bool first = actions.held(launch.client) == 0 || inside_pass(task);
    if (first && passes(launch, now)) return Verdict::kAdmit;
    if (!task.look) task.look = now < task.awake_at ? task.awake_at : now + interface_poll_;
    return Verdict::kHold;
  }

  void on_completion(const CompletionInfo& completion, Instant now, Actions& actions) override {
    Task& task = tasks_[completion.client.index()];
    if (task.pass > Duration{} || !task.running || completion.launch != task.launch) return;
    end_step(completion.client, now, actions);
  }

  void on_iteration(const IterationInfo& iteration, Instant now, Actions& actions) override {
    Task& task = tasks_[iteration.client.index()];
    if (iteration.client != ClientId{0} && task.pass > Duration{}) {
      end_step(iteration.client, now, actions);
    }
  }

  void on_bubble_begin(const BubbleInfo& bubble, Instant now, Actions&) override {
    expected_end_.reset();
    if (pipeline_only_ && !bubble.pipeline) return;
    seen_ = (now % manager_poll_).count() == 0 ? now : next_multiple(now, manager_poll_);
    expected_end_ = now + bubble.expected;
  }

  void on_bubble_end(Instant now, Actions&) override {
    if (expected_end_ && mark_running()) overrun_look_ = now + grace_;
    expected_end_.reset();
    for (Task& task : tasks_) task.next_fits &= task.running && task.awake_at <= now;
  }

  void on_gone(ClientId client, Instant, Actions&) override {
    tasks_[client.index()] = {};
    if (current_ != client) return;
    current_.reset();
    expected_end_.reset();
  }

  std::optional<Instant> next_tick() const override {
    std::optional<Instant> next = overrun_look_;
    for (const Task& task : tasks_) {
      if (task.look && (!next || *task.look < *next)) next = task.look;
    }
    return next;
  }

  void on_tick(Instant now, Actions& actions) override {
    if (overrun_look_ && now >= *overrun_look_) count_overruns();
    for (std::uint32_t id = 1; id < tasks_.size(); ++id) {
      Task& task = tasks_[id];
      if (!task.look || now < *task.look) continue;
      task.look = now + interface_poll_;
      release_passing(ClientId{id}, now, actions);
    }
  }

  void add_counts(CounterSet& counters) const override {
    counters.add(kOverruns, overruns_);
    counters.add(kFreerideUnprofiled, unprofiled_);
  }

 private:
  struct Task {
    Duration pass{};            ///< profiled; 0: its steps are launches
    bool running = false;       ///< a step runs
    bool after_bubble = false;  ///< the step runs since before the last bubble's end
    bool counted = false;       ///< the step was counted as an over-run
    bool next_fits = false;     ///< whether another step fits, at the last launch of this step
    std::uint64_t launch = 0;   ///< the launch that is the step, if steps are launches
    std::optional<Instant> look = std::nullopt;  ///< the next look of its loop, while the loop is
                                                 ///< held
    Instant awake_at{};         ///< end of its loop's sleep
    Instant submitted = Instant::max();  ///< instant of its first launch; Instant::max(): none
  };

  bool fits(Duration step, Instant now) const {
    return expected_end_ && now >= seen_ && *expected_end_ - now > scale(step, step_margin_);
  }

  static bool inside_pass(const Task& task) { return task.running && task.pass > Duration{}; }

  /// Whether the launch belongs to a step that runs, or begins one now.
  bool passes(const LaunchInfo& launch, Instant now) {
    Task& task = tasks_[launch.client.index()];
    if (task.running) return task.pass > Duration{};
    if (now < task.awake_at || !is_current(launch.client, now)) return false;
    Duration step = task.pass > Duration{} ? task.pass : launch.profiled;
    if (step == Duration{}) step = step_duration_;
    if (!std::exchange(task.next_fits, false) && !fits(step, now)) return false;
    if (looks_at_launch_) sleep_after_step(task, now);
    if (task.pass == Duration{} && launch.profiled == Duration{}) ++unprofiled_;
    task.running = true;
    task.after_bubble = task.counted = false;
    task.launch = launch.launch;
    return true;
  }

  /// The first task in the queue when the manager sees a bubble has the GPU from then on.
  bool is_current(ClientId client, Instant now) {
    const auto first = std::ranges::min_element(tasks_, {}, &Task::submitted);
    if (!current_ && expected_end_ && now >= seen_ && first->submitted <= seen_) {
      current_ = ClientId{static_cast<std::uint32_t>(first - tasks_.begin())};
    }
    return current_ == client;
  }

  /// The step was launched or has ended at `now`: the loop sleeps, then looks.
  void sleep_after_step(Task& task, Instant now) {
    task.awake_at = now + interface_poll_;
    task.next_fits = looks_at_launch_ && task.pass > Duration{} && fits(task.pass, task.awake_at);
  }

  void end_step(ClientId client, Instant now, Actions& actions) {
    Task& task = tasks_[client.index()];
    task.running = false;
    if (!looks_at_launch_) sleep_after_step(task, now);
    if (now >= task.awake_at) return release_passing(client, now, actions);
    if (actions.held(client) > 0) task.look = task.awake_at;
  }

  void release_passing(ClientId client, Instant now, Actions& actions) {
    while (actions.held(client) > 0 && passes(actions.oldest_held(client), now)) {
      actions.release(client);
    }
    if (actions.held(client) == 0) tasks_[client.index()].look.reset();
  }

  /// Marks the steps that run at the bubble's end.
  bool mark_running() {
    bool marked = false;
    for (Task& task : tasks_) {
      task.after_bubble = task.running && !task.counted;
      marked = marked || task.after_bubble;
    }
    return marked;
  }

  void count_overruns() {
    overrun_look_.reset();
    for (Task& task : tasks_) {
      if (task.running && task.after_bubble) {
        ++overruns_;
        task.counted = true;
      }
      task.after_bubble = false;
    }
  }

  Duration step_duration_;
  Duration manager_poll_;
  Duration grace_;
  bool pipeline_only_;
  Duration interface_poll_;
  double step_margin_;
  bool looks_at_launch_;
  std::optional<Bytes> limit_;
  std::vector<Task> tasks_;
  std::optional<ClientId> current_;      ///< the task whose steps run on this GPU; none: a new
                                         ///< bubble chooses
  std::optional<Instant> expected_end_;  ///< end of the bubble that the engine has reported
  Instant seen_{};                       ///< when the manager sees the bubble
  std::optional<Instant> overrun_look_;
  std::uint64_t overruns_ = 0;
  std::uint64_t unprofiled_ = 0;
};

}  // namespace

PolicySpec freeride_spec() {
  const std::string code = "FreeRide, arXiv 2409.06941, and its code";
  PolicySpec spec;
  spec.name = "freeride";
  spec.summary = "Side tasks in steps that end before the bubble's expected end";
  spec.source = code;
  spec.needs = {
      .kernel_durations = true, .bubbles = true, .completions = true, .iterations = true};
  spec.parameters = {
      declare_duration("step_duration", 200ms, 1us, 1000s,
                       {"", "A step's duration where no profile knows it.", code}),
      declare_number("step_margin", 1.2, 1, 10,
                     {"", "A step begins if the bubble has so many times its duration left.",
                      "FreeRide run_side_task.py: of the median, which it rounds up to 10 ms"}),
      declare_choice("looks", {"launch", "completion"},
                     {"", "A task's loop looks for another step when its host has launched one, or "
                          "when that has ended.",
                      "FreeRide task_v2.py: it does not wait for the GPU; ours: completion"}),
      declare_duration("interface_poll", 5ms, 1us, 10s,
                       {"", "A task's loop sleeps so long after each look and each step.", code}),
      declare_duration("manager_poll", 10ms, 1us, 10s,
                       {"", "The manager sees a bubble at its next poll.", code}),
      declare_duration("grace", 500ms, 0ns, 1000s,
                       {"", "A step may run so long beyond its bubble until it is counted.",
                        "reconstructed: the length is not published"}),
      declare_choice("bubbles", {"all", "pipeline"},
                     {"", "Any idle time of training, or waits for pipeline peers only.",
                      code + ": gaps of the compute stream"}),
  };
  spec.demands = {{SystemFeature::kMps}, {SystemFeature::kFrameworkHook}};
  spec.not_searched = {"step_duration", "step_margin", "looks", "grace"};
  spec.make = [](const ParameterSet& given) { return std::make_unique<FreeRide>(given); };
  spec.make_placer = [](const ParameterSet&) { return std::make_unique<FreeRidePlacer>(); };
  return spec;
}

}  // namespace bubblesim::policies
