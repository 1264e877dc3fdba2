// The GPU model against the plainest program that obeys the same rules: block by block, SM by SM,
// no waves skipped; a nanosecond is passed over only if nothing ends or comes in it. Random
// kernels, priorities, caps and forms, clients that are driven off the GPU and let on again, and
// processes of an MPS server, which share evenly; durations are multiples of their waves, so that
// every block takes whole nanoseconds and the two must agree exactly.
//
// Blocks that follow others of their kernel stay on their SM in the model, while the plain program
// places them anew, which is the same where the kernel has no room elsewhere. So there are three
// sorts of cases. Where forms and even parts hold kernels back, all blocks have one size and nobody
// a cap, so that it decides nothing on which SMs they sit. Caps come with blocks of one size, too;
// all sizes meet where nothing but room holds anybody back. In these two hardly ever do blocks of
// two kernels end in one instant, in which the plain program has them change places.
#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "sim/base/random.hpp"
#include "tests/unit/sim/gpu/gpu_fixture.hpp"

namespace bubblesim::gpu {
namespace {

constexpr std::uint32_t kSms = 4;
constexpr std::uint32_t kWarps = 8;  ///< of an SM

struct PlainJob {
  std::int64_t arrival;
  std::uint32_t client;
  std::uint32_t warps;  ///< a block
  std::uint64_t blocks;
  std::int64_t block_ns;
  std::uint64_t most = 0;  ///< resident at once; 0: as many as fit

  [[nodiscard]] std::uint32_t per_sm() const { return kWarps / warps; }
  [[nodiscard]] std::int64_t solo() const {
    const std::uint64_t at_once = std::uint64_t{per_sm()} * kSms;
    return block_ns * static_cast<std::int64_t>((blocks + at_once - 1) / at_once);
  }
};

/// From `at` on.
struct Command {
  std::int64_t at;
  std::uint32_t client;
  std::optional<program::Preemption> how;  ///< nothing: the client is let on
};

struct Case {
  std::vector<std::int32_t> priorities;
  std::vector<std::uint32_t> caps;
  std::vector<PlainJob> jobs;     ///< by arrival
  std::vector<Command> commands;  ///< by time; of one instant: after arrivals
  std::optional<std::int64_t> client_switch;  ///< clients are processes of an MPS server
  bool even = false;                          ///< those of one priority have even parts

  /// SMs [begin, end) of a client: those with caps have them from the last one downwards, who finds
  /// too few left has the first ones, and the next begins with the last again.
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> sms_of(std::uint32_t client) const {
    if (caps[client] >= kSms) return {0, kSms};
    std::uint32_t begin = 0;
    for (std::uint32_t other = 0; other <= client; ++other) {
      if (caps[other] >= kSms) continue;
      const std::uint32_t free = begin > 0 ? begin : kSms;
      begin = caps[other] < free ? free - caps[other] : 0;
    }
    return {begin, begin + caps[client]};
  }

  /// When each job is through the front end.
  [[nodiscard]] std::vector<std::int64_t> arrivals() const {
    std::vector<std::int64_t> out;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const bool passes = client_switch && i > 0 && jobs[i - 1].client != jobs[i].client;
      std::int64_t at = jobs[i].arrival + (passes ? *client_switch : 0);
      if (client_switch && i > 0 && !passes) at = std::max(at, out.back());
      out.push_back(at);
    }
    return out;
  }
};

/// One block at a time, one nanosecond at a time.
class PlainGpu {
 public:
  explicit PlainGpu(const Case& given)
      : given_(given), states_(given.jobs.size()), off_(given.priorities.size()) {
    for (std::size_t i = 0; i < states_.size(); ++i) states_[i].unplaced = given.jobs[i].blocks;
  }

  std::vector<std::int64_t> run() {
    const std::vector<std::int64_t> arrivals = given_.arrivals();
    std::size_t next = 0;
    std::size_t command = 0;
    const auto next_time = [&](std::int64_t now) {
      std::int64_t at = std::numeric_limits<std::int64_t>::max();
      for (const State& state : states_) {
        if (!state.ends.empty()) at = std::min(at, state.ends.front());
      }
      if (next < states_.size()) at = std::min(at, arrivals[next]);
      if (command < given_.commands.size()) at = std::min(at, given_.commands[command].at);
      return std::max(at, now + 1);
    };
    for (std::int64_t now = 0; done_ < states_.size(); now = next_time(now)) {
      end_blocks(now);
      place(now);
      while (next < states_.size() && arrivals[next] == now) {
        waiting_.push_back(next++);
        sort();
        place(now);
      }
      while (command < given_.commands.size() && given_.commands[command].at == now) {
        obey(given_.commands[command++]);
        place(now);
      }
    }
    std::vector<std::int64_t> ends;
    for (const State& state : states_) ends.push_back(state.end);
    return ends;
  }

 private:
  struct State {
    std::uint64_t unplaced = 0;
    std::deque<std::int64_t> ends;  ///< of resident blocks
    std::array<std::uint32_t, kSms> on{};  ///< resident blocks by SM
    std::int64_t end = -1;
    bool started = false;
  };

  std::int32_t priority(std::size_t job) const {
    return given_.priorities[given_.jobs[job].client];
  }
  void sort() {
    std::sort(waiting_.begin(), waiting_.end(), [this](std::size_t a, std::size_t b) {
      return priority(a) != priority(b) ? priority(a) > priority(b) : a < b;
    });
  }
  void obey(const Command& command) {
    off_[command.client] = command.how;
    if (command.how != program::Preemption::kReset) return;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      State& state = states_[i];
      if (given_.jobs[i].client != command.client || state.ends.empty()) continue;
      for (; !state.ends.empty(); state.ends.pop_front()) leave(i);
      if (state.unplaced == 0) waiting_.push_back(i);
      state.unplaced = given_.jobs[i].blocks;
    }
    sort();
  }
  bool kept_off(std::size_t job) const {
    const std::optional<program::Preemption> off = off_[given_.jobs[job].client];
    if (off == program::Preemption::kAfterKernel) return !states_[job].started;
    return off.has_value();
  }
  void end_blocks(std::int64_t now) {
    for (std::size_t i = 0; i < states_.size(); ++i) {
      State& state = states_[i];
      while (!state.ends.empty() && state.ends.front() == now) {
        state.ends.pop_front();
        leave(i);
      }
      if (state.end < 0 && state.unplaced == 0 && state.ends.empty()) {
        state.end = now;
        ++done_;
      }
    }
  }
  /// SMs, times 8, that the client covers.
  double covered(std::uint32_t client) const {
    double sms = 0;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (given_.jobs[i].client != client) continue;
      sms += static_cast<double>(states_[i].ends.size()) / given_.jobs[i].per_sm();
    }
    return sms;
  }
  bool held_by_cap(std::size_t i) const {
    const PlainJob& job = given_.jobs[i];
    const double cap = std::min(given_.caps[job.client], kSms);
    const bool full = given_.caps[job.client] < kSms &&
                      covered(job.client) + 1.0 / job.per_sm() > cap + 1e-9;
    return full || (job.most > 0 && states_[i].ends.size() >= job.most);
  }
  std::uint32_t room(std::size_t i, std::uint32_t sm) const {
    const auto [begin, end] = given_.sms_of(given_.jobs[i].client);
    if (sm < begin || sm >= end) return 0;
    return (kWarps - used_[sm]) / given_.jobs[i].warps;
  }
  bool fits(std::size_t i) const { return room(i, roomiest(i)) > 0; }
  std::uint32_t roomiest(std::size_t i) const {
    std::uint32_t best = 0;
    for (std::uint32_t sm = 1; sm < kSms; ++sm) {
      if (room(i, sm) > room(i, best)) best = sm;
    }
    return best;
  }
  void enter(std::size_t i) {
    const std::uint32_t sm = roomiest(i);
    ++states_[i].on[sm];
    used_[sm] += given_.jobs[i].warps;
  }
  void leave(std::size_t i) {
    std::optional<std::uint32_t> tightest;
    for (std::uint32_t sm = 0; sm < kSms; ++sm) {
      if (states_[i].on[sm] == 0) continue;
      if (!tightest || room(i, sm) <= room(i, *tightest)) tightest = sm;
    }
    --states_[i].on[*tightest];
    used_[*tightest] -= given_.jobs[i].warps;
  }
  void place(std::int64_t now) {
    while (const std::optional<std::size_t> next = next_block()) {
      State& state = states_[*next];
      --state.unplaced;
      state.started = true;
      enter(*next);
      state.ends.push_back(now + given_.jobs[*next].block_ns);
      std::erase_if(waiting_, [this](std::size_t i) { return states_[i].unplaced == 0; });
    }
  }
  /// Both may use one of the SMs.
  bool meet(std::size_t a, std::size_t b) const {
    const auto [begin_a, end_a] = given_.sms_of(given_.jobs[a].client);
    const auto [begin_b, end_b] = given_.sms_of(given_.jobs[b].client);
    return begin_a < end_b && begin_b < end_a;
  }
  /// The job that places a block now.
  std::optional<std::size_t> next_block() const {
    std::vector<std::size_t> ahead;  // those wait for room
    for (std::size_t from = 0; from < waiting_.size();) {
      std::size_t to = from;
      std::vector<std::size_t> level;  // who may place, each client's first
      std::set<std::uint32_t> clients;
      while (to < waiting_.size() && priority(waiting_[to]) == priority(waiting_[from])) {
        const std::size_t i = waiting_[to++];
        clients.insert(given_.jobs[i].client);
        if (!kept_off(i) && !held_by_cap(i)) level.push_back(i);
      }
      if (given_.even && clients.size() > 1) {
        const double part = part_of_each(from, to);
        bool waits = false;
        std::set<std::uint32_t> seen;
        for (const std::size_t i : level) {
          const PlainJob& job = given_.jobs[i];
          if (!seen.insert(job.client).second) continue;
          if (covered(job.client) + 1.0 / job.per_sm() > part + 1e-9) continue;
          if (fits(i)) return i;
          waits = true;
        }
        if (waits) return std::nullopt;
      }
      for (const std::size_t i : level) {
        const auto blocks = [&](std::size_t other) { return meet(i, other); };
        if (std::ranges::none_of(ahead, blocks) && fits(i)) return i;
        ahead.push_back(i);
      }
      from = to;
    }
    return std::nullopt;
  }
  /// SMs for each client that waits: who is held below its part leaves the rest of it.
  double part_of_each(std::size_t from, std::size_t to) const {
    std::map<std::uint32_t, bool> held;  // by client: all of it
    for (std::size_t at = from; at < to; ++at) {
      const std::size_t i = waiting_[at];
      if (kept_off(i)) continue;
      const bool by_cap = held_by_cap(i);
      const auto [known, fresh] = held.emplace(given_.jobs[i].client, by_cap);
      known->second = known->second && by_cap;
    }
    double free = kSms;
    for (std::uint32_t client = 0; client < given_.priorities.size(); ++client) {
      if (!held.contains(client)) free -= covered(client);
    }
    while (!held.empty()) {
      const double part = std::max(0.0, free) / static_cast<double>(held.size());
      const auto out = std::find_if(held.begin(), held.end(), [&](const auto& client) {
        return client.second && covered(client.first) <= part + 1e-9;
      });
      if (out == held.end()) return part;
      free -= covered(out->first);
      held.erase(out);
    }
    return kSms;
  }

  const Case& given_;
  std::vector<State> states_;
  std::vector<std::optional<program::Preemption>> off_;  ///< by client
  std::vector<std::size_t> waiting_;
  std::array<std::uint32_t, kSms> used_{};  ///< warps by SM
  std::size_t done_ = 0;
};

enum class Kind : std::uint8_t { kLeftAlone, kDrivenOff, kProcesses };

Case random_case(std::uint64_t seed, Kind kind) {
  RandomStream random(seed, kind == Kind::kDrivenOff   ? "gpu preempted"
                            : kind == Kind::kProcesses ? "gpu processes"
                                                       : "gpu reference");
  const auto pick = [&random](std::int64_t from, std::int64_t to) {
    return from + static_cast<std::int64_t>(random.uniform() * static_cast<double>(to - from + 1));
  };
  const bool held_back = seed % 3 == 0;
  const bool with_caps = seed % 3 == 1;
  const std::int64_t unit = held_back ? 1 : 1000;  // ns
  const auto any_size = [&pick] { return static_cast<std::uint32_t>(pick(1, kWarps)); };
  const std::uint32_t only_size = any_size();
  Case made;
  const std::int64_t clients = pick(1, 4);
  for (std::int64_t i = 0; i < clients; ++i) {
    made.priorities.push_back(static_cast<std::int32_t>(pick(0, 2)));
    const bool capped = with_caps && pick(0, 1) == 0;
    made.caps.push_back(capped ? static_cast<std::uint32_t>(pick(1, 3)) : kAllSms);
  }
  const std::int64_t jobs = pick(1, 25);
  for (std::int64_t i = 0; i < jobs; ++i) {
    made.jobs.push_back({.arrival = pick(0, 300 * unit),
                         .client = static_cast<std::uint32_t>(pick(0, clients - 1)),
                         .warps = held_back || with_caps ? only_size : any_size(),
                         .blocks = static_cast<std::uint64_t>(pick(1, 60)),
                         .block_ns = pick(1, 40 * unit)});
    // A process with a cap launches less than a full wave:
    // tests/unit/sim/gpu/caps_and_clients_test.cpp.
    PlainJob& job = made.jobs.back();
    if (made.caps[job.client] < kSms && job.blocks == job.per_sm() * kSms) ++job.blocks;
  }
  std::stable_sort(made.jobs.begin(), made.jobs.end(),
                   [](const PlainJob& a, const PlainJob& b) { return a.arrival < b.arrival; });
  if (kind == Kind::kLeftAlone) return made;
  if (kind == Kind::kProcesses) {
    made.client_switch = pick(0, 12 * unit);
    made.even = held_back;
    for (std::int32_t& priority : made.priorities) priority = priority / 2;  // mostly equal
  }
  for (PlainJob& job : made.jobs) {
    if (held_back && pick(0, 3) == 0) job.most = static_cast<std::uint64_t>(pick(1, 12));
  }
  // Each is let on again in the end, so that all kernels end.
  for (std::uint32_t i = 0; i < clients; ++i) {
    std::int64_t at = pick(0, 200 * unit);
    for (std::int64_t times = pick(0, 4); times > 0; --times) {
      made.commands.push_back({at, i, static_cast<program::Preemption>(pick(0, 2))});
      made.commands.push_back({at += pick(0, 60 * unit), i, std::nullopt});
      at += pick(0, 60 * unit);
    }
  }
  std::stable_sort(made.commands.begin(), made.commands.end(),
                   [](const Command& a, const Command& b) { return a.at < b.at; });
  return made;
}

class GpuReference : public GpuTest, public testing::WithParamInterface<int> {
 protected:
  void expect_agreement(const Case& given) {
    hardware::GpuSpec spec = small_gpu();
    spec.client_switch = Duration{given.client_switch.value_or(0)};
    if (given.even) spec.client_order = hardware::ClientOrder::kEven;
    make(spec, {.mode = given.client_switch ? program::SharingMode::kMps
                                            : program::SharingMode::kSpatial});
    for (std::size_t i = 0; i < given.priorities.size(); ++i) {
      client(given.priorities[i], given.caps[i]);
    }
    for (std::size_t i = 0; i < given.jobs.size(); ++i) {
      const PlainJob& job = given.jobs[i];
      work_at(job.arrival, {.client = ClientId{job.client}, .kind = program::WorkKind::kKernel,
                            .solo = Duration{job.solo()},
                            .profile = keep(blocks_of_warps(job.blocks, job.warps)),
                            .cookie = i, .most_blocks = job.most});
    }
    for (const Command& command : given.commands) {
      script_.at(command.at, [this, command] {
        if (!command.how) return gpu_->proceed(ClientId{command.client});
        gpu_->preempt(ClientId{command.client}, *command.how);
      });
    }
    run();
    const std::vector<std::int64_t> expected = PlainGpu(given).run();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(end(i), expected[i]) << "kernel " << i << " of case " << GetParam();
    }
  }
};

TEST_P(GpuReference, AgreesToTheNanosecond) {
  expect_agreement(random_case(static_cast<std::uint64_t>(GetParam()), Kind::kLeftAlone));
}

TEST_P(GpuReference, AgreesWhenClientsAreDrivenOff) {
  expect_agreement(random_case(static_cast<std::uint64_t>(GetParam()), Kind::kDrivenOff));
}

TEST_P(GpuReference, AgreesWhenProcessesShare) {
  expect_agreement(random_case(static_cast<std::uint64_t>(GetParam()), Kind::kProcesses));
}

INSTANTIATE_TEST_SUITE_P(RandomCases, GpuReference, testing::Range(0, 500));

}  // namespace
}  // namespace bubblesim::gpu
