// Prefill and decode apart: the keys and values of a prompt go from the GPU that computed it over
// that GPU's link to one that decodes.
//
// A GPU sends one prompt after another, in the order in which they were computed. Its receiver is
// decided when its transfer is asked for: the GPU with the fewest requests that wait, run or are on
// their way to it, the first of equals. What waits is beside the prefill server's cache, which is
// free at once. The link is the filler's own, or a transfer is a send over the cluster's links,
// which it shares with training's collectives (sim/network); it takes no SMs there (RDMA).
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/engine/engine.hpp"
#include "sim/network/rendezvous.hpp"
#include "sim/network/topology.hpp"
#include "sim/run/filler_instance.hpp"
#include "sim/synth/server_plan.hpp"
#include "sim/workload/engine_service.hpp"

namespace bubblesim::run {

/// The engine that an admitted instance runs. Precondition: it has an engine's service.
[[nodiscard]] workload::EngineService& engine_of(FillerInstance& instance);

/// The instances of a filler that decode.
class DecodePool {
 public:
  /// At least one, each admitted; they outlive this.
  explicit DecodePool(const std::vector<FillerInstance*>& instances);

  /// Chooses an instance for a request that comes to it later, by arrive().
  [[nodiscard]] std::size_t choose();
  void arrive(std::size_t instance, const serving::Request& request, SimTime now);
  [[nodiscard]] GpuId gpu(std::size_t instance) const { return decoders_[instance].instance->gpu; }

 private:
  struct Decoder {
    FillerInstance* instance = nullptr;
    workload::EngineService* service = nullptr;
    std::size_t coming = 0;
  };
  [[nodiscard]] static std::size_t load(const Decoder& decoder);

  std::vector<Decoder> decoders_;
};

/// Links that a GPU's transfers share with others'.
struct SharedLinks {
  const network::Topology& topology;
  network::Rendezvous& rendezvous;           ///< that carries transfers over the topology's links
  const std::vector<std::uint32_t>& places;  ///< on the cluster, by GPU
};

/// What takes prompts from an instance that computes them.
class KvLink final : public engine::EventHandler,
                     public workload::HandoverSink,
                     private network::Participant {
 public:
  /// All outlive this; `plan` has PrefillSplit. `links`: null if that has a link of its own.
  KvLink(engine::Engine& engine, const synth::ServerPlan& plan, GpuId from, DecodePool& pool,
         const SharedLinks* links);

  void hand_over(serving::Request request, SimTime now) override;
  [[nodiscard]] std::vector<serving::UnfinishedRequest> underway() const override;
  void on_event(SimTime now) override;

 private:
  struct Transfer {
    serving::Request request;
    std::size_t target = 0;
  };

  void begin(SimTime now);
  void finish(SimTime now);
  void on_all_arrived(std::uint64_t cookie, SimTime now) override;

  engine::Engine& engine_;
  const synth::ServerPlan& plan_;
  GpuId source_;
  DecodePool& pool_;
  const SharedLinks* links_;
  engine::EntityId entity_;
  network::Transfer send_;          ///< that is under way over shared links
  std::uint32_t meeting_ = 0;       ///< of it; it has no other member
  std::deque<Transfer> transfers_;  ///< the first is under way
};

}  // namespace bubblesim::run
