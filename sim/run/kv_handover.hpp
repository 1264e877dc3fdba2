// Prefill and decode apart: the keys and values of a prompt go from the GPU that computed it over
// that GPU's link to one that decodes.
//
// A link carries one prompt after another, in the order in which they were computed. Where it goes
// is decided when its transfer is asked for: to the GPU with the fewest requests that wait, run or
// are on their way to it, the first of equals. What waits for the link waits beside the prefill
// server's cache, which is free at once; the link is the filler's own.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/engine/engine.hpp"
#include "sim/run/filler_instance.hpp"
#include "sim/synth/server_plan.hpp"
#include "sim/workload/engine_service.hpp"

namespace bubblesim::run {

/// The engine that an admitted instance of a filler with prefill apart runs.
[[nodiscard]] workload::EngineService& engine_of(FillerInstance& instance);

/// The instances of a filler that decode.
class DecodePool {
 public:
  /// At least one, each admitted; they outlive this.
  explicit DecodePool(const std::vector<FillerInstance*>& instances);

  /// Chooses an instance for a request that comes to it later, by arrive().
  [[nodiscard]] std::size_t choose();
  void arrive(std::size_t instance, const serving::Request& request, SimTime now);

 private:
  struct Decoder {
    FillerInstance* instance = nullptr;
    workload::EngineService* service = nullptr;
    std::size_t coming = 0;
  };
  [[nodiscard]] static std::size_t load(const Decoder& decoder);

  std::vector<Decoder> decoders_;
};

/// The link of an instance that computes prompts.
class KvLink final : public engine::EventHandler, public workload::HandoverSink {
 public:
  /// All outlive this; `plan` has PrefillSplit.
  KvLink(engine::Engine& engine, const synth::ServerPlan& plan, DecodePool& pool);

  void hand_over(serving::Request request, SimTime now) override;
  [[nodiscard]] std::vector<serving::UnfinishedRequest> underway() const override;
  void on_event(SimTime now) override;

 private:
  struct Transfer {
    serving::Request request;
    std::size_t to = 0;
    SimTime ends{};
  };

  engine::Engine& engine_;
  const synth::ServerPlan& plan_;
  DecodePool& pool_;
  engine::EntityId entity_;
  std::deque<Transfer> transfers_;  ///< in the order of their ends
};

}  // namespace bubblesim::run
