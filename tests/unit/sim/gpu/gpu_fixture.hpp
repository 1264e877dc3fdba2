// A small GPU for tests, and a listener that logs its calls.
//
// The GPU has 4 SMs of 8 warps, so that every sum in a test can be done in the head: a kernel of
// 4-warp blocks has 2 blocks an SM and 8 at once.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/gpu/gpu.hpp"

namespace bubblesim::gpu {

inline hardware::GpuSpec small_gpu() {
  hardware::GpuSpec spec;
  spec.name = "four SMs";
  spec.sm_count = 4;
  spec.sm.max_threads = 256;
  spec.sm.max_warps = 8;
  spec.sm.max_blocks = 8;
  spec.sm.shared_memory_bytes = 1024;
  spec.sm.shared_memory_reserved_bytes = 0;
  spec.copy_engines = 2;
  return spec;
}

/// Blocks that take `warps` of an SM's 8 warps and nothing else.
inline program::KernelProfile blocks_of_warps(std::uint64_t blocks, std::uint32_t warps) {
  program::KernelProfile profile;
  profile.blocks = blocks;
  profile.residency = {.warps = warps, .registers = 0, .shared_memory_bytes = 0,
                       .blocks_per_sm = 8 / warps};
  return profile;
}

/// Runs actions at given times, in the phase in which streams hand work over.
class Script final : public engine::EventHandler {
 public:
  explicit Script(engine::Engine& engine)
      : engine_(engine), entity_(engine.add_entity(*this, engine::Phase::kDispatch)) {}
  void at(std::int64_t ns, std::function<void()> action) {
    actions_.emplace(SimTime{Duration{ns}}, std::move(action));
    engine_.schedule(entity_, actions_.begin()->first);
  }
  void on_event(SimTime now) override {
    while (!actions_.empty() && actions_.begin()->first == now) {
      const auto action = std::move(actions_.begin()->second);
      actions_.erase(actions_.begin());
      action();
    }
    if (!actions_.empty()) engine_.schedule(entity_, actions_.begin()->first);
  }

 private:
  engine::Engine& engine_;
  engine::EntityId entity_;
  std::multimap<SimTime, std::function<void()>> actions_;
};

/// Starts and ends of kernels, in ns: {{"start 2", 110}, {"end 2", 160}}.
using Times = std::vector<std::pair<std::string_view, std::int64_t>>;

/// A row of a table: kernels 1, 2, ..., when they start and end, and what shares the GPU how.
struct Kernels {
  struct Kernel {
    std::int64_t at;
    std::uint32_t client;  ///< 0, 1, ...; settings are those of its first kernel
    std::int64_t solo;
    std::uint64_t blocks = 8;
    std::uint32_t warps = 4;
    std::int32_t priority = 0;
    std::uint32_t sm_cap = kAllSms;
  };
  struct Setup {
    hardware::GpuSpec spec = small_gpu();
    SharingSetup sharing{};
  };
  struct Order {
    std::int64_t at;
    std::uint32_t client;
    std::function<void(Gpu&, ClientId)> give;
  };
  std::string name;
  std::vector<Kernel> kernels;
  Times times;
  Setup setup{};
  std::vector<Order> orders{};
};

inline Kernels::Setup shared(program::SharingMode mode) { return {small_gpu(), {.mode = mode}}; }
inline Kernels::Setup turns_of(std::int64_t slice, std::int64_t switch_ns) {
  return {small_gpu(), {program::SharingMode::kTimeSliced, Duration{slice}, Duration{switch_ns}}};
}
inline auto preempt(program::Preemption how) {
  return [how](Gpu& gpu, ClientId client) { gpu.preempt(client, how); };
}
inline auto proceed() {
  return [](Gpu& gpu, ClientId client) { gpu.proceed(client); };
}
inline auto priority(std::int32_t value) {
  return [value](Gpu& gpu, ClientId client) { gpu.set_priority(client, value); };
}
inline auto sm_cap(std::uint32_t sms) {
  return [sms](Gpu& gpu, ClientId client) { gpu.set_sm_cap(client, sms); };
}

class GpuTest : public ::testing::Test, public WorkListener {
 protected:
  void make(const hardware::GpuSpec& spec, const SharingSetup& sharing = {}) {
    gpu_ = std::make_unique<Gpu>(engine_, spec, sharing);
  }
  ClientId client(std::int32_t priority = 0, std::uint32_t sm_cap = kAllSms) {
    if (!gpu_) make(small_gpu());
    return gpu_->add_client({.name = "c", .priority = priority, .sm_cap = sm_cap}, *this);
  }
  /// Submits a kernel at a time; its name is its cookie.
  void kernel_at(std::int64_t ns, std::uint64_t name, ClientId client, std::int64_t solo,
                 const program::KernelProfile& profile) {
    work_at(ns, {.client = client, .kind = program::WorkKind::kKernel, .solo = Duration{solo},
                 .profile = keep(profile), .cookie = name});
  }
  void work_at(std::int64_t ns, const Work& work) {
    script_.at(ns, [this, work] { ids_[work.cookie] = gpu_->submit(work); });
  }
  const program::KernelProfile* keep(const program::KernelProfile& profile) {
    profiles_.push_back(std::make_unique<program::KernelProfile>(profile));
    return profiles_.back().get();
  }
  void run(std::int64_t until_ns = 1'000'000'000'000) {
    engine_.run_until(SimTime{Duration{until_ns}});
  }
  void expect_times(const Times& expected) const {
    for (const auto& [what, ns] : expected) {
      const auto name = static_cast<std::uint64_t>(what.back() - '0');
      EXPECT_EQ(what.starts_with("start") ? start(name) : end(name), ns) << what;
    }
  }
  void expect_run(const Times& expected) {
    run();
    expect_times(expected);
  }
  std::int64_t start(std::uint64_t name) const { return to_ns(started_.at(name)); }
  std::int64_t end(std::uint64_t name) const { return to_ns(ended_.at(name)); }

  void on_work_started(std::uint64_t cookie, WorkId work, SimTime now) override {
    EXPECT_TRUE(started_.emplace(cookie, now).second) << "started twice: " << cookie;
    if (on_start_) on_start_(cookie, work);
  }
  bool has_more_launched() const override { return more_launched_; }
  void on_work_finished(std::uint64_t cookie, SimTime now) override {
    EXPECT_TRUE(started_.contains(cookie)) << "finished before it started: " << cookie;
    EXPECT_TRUE(ended_.emplace(cookie, now).second) << "finished twice: " << cookie;
    order_.push_back(cookie);
    if (on_finish_) on_finish_(cookie);
  }

  engine::Engine engine_;
  Script script_{engine_};
  std::unique_ptr<Gpu> gpu_;
  std::vector<std::unique_ptr<program::KernelProfile>> profiles_;
  std::map<std::uint64_t, WorkId> ids_;
  std::map<std::uint64_t, SimTime> started_;
  std::map<std::uint64_t, SimTime> ended_;
  std::vector<std::uint64_t> order_;
  std::function<void(std::uint64_t, WorkId)> on_start_;
  bool more_launched_ = false;  ///< answer for every client
  std::function<void(std::uint64_t)> on_finish_;
};

class KernelTable : public GpuTest, public ::testing::WithParamInterface<Kernels> {
 protected:
  void expect_row() {
    const Kernels& row = GetParam();
    make(row.setup.spec, row.setup.sharing);
    std::vector<ClientId> clients;
    std::uint64_t name = 0;
    for (const Kernels::Kernel& one : row.kernels) {
      while (clients.size() <= one.client) clients.push_back(client(one.priority, one.sm_cap));
      kernel_at(one.at, ++name, clients[one.client], one.solo,
                blocks_of_warps(one.blocks, one.warps));
    }
    for (const auto& [at, to, give] : row.orders) {
      script_.at(at, [this, client = clients[to], give] { give(*gpu_, client); });
    }
    expect_run(row.times);
  }
};

inline std::string name_of_row(const ::testing::TestParamInfo<Kernels>& row) {
  return row.param.name;
}

}  // namespace bubblesim::gpu
