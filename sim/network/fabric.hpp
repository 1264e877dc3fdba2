// Links shared fluidly by the transfers that are under way.
//
// After its latency a transfer's bytes move. Its speed is that of its heaviest load in bytes a
// second; its other loads move in proportion. Transfers on a link share it max-min fairly
// (progressive filling: all speeds rise together; a transfer whose link is full, or that has
// reached the speed of its own channels, keeps its speed, the others go on rising). Speeds change
// only when a transfer begins or ends, and only among transfers that share links with it.
//
// Ends are rounded up to whole nanoseconds. Those of one instant are told in the order of their
// starts. Single-threaded, inside events of one Engine; nothing here allocates in steady state.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/engine/engine.hpp"
#include "sim/network/link.hpp"

namespace bubblesim::network {

class FlowListener {
 public:
  virtual ~FlowListener() = default;
  /// The transfer's last byte has arrived at `now`. May start others.
  virtual void on_flow_finished(std::uint64_t cookie, SimTime now) = 0;
};

class Fabric final : public engine::EventHandler {
 public:
  Fabric(engine::Engine& engine, const LinkTable& links);

  /// `transfer` and `listener` outlive the flow. Inside an event of the engine, at its time.
  void start(const Transfer& transfer, FlowListener& listener, std::uint64_t cookie, SimTime now);

  void on_event(SimTime now) override;

  /// Transfers that have started and not ended.
  [[nodiscard]] std::size_t active() const { return flows_.size(); }

 private:
  struct Flow {
    const Transfer* transfer;
    FlowListener* listener;
    std::uint64_t cookie;
    SimTime due;           ///< waiting: when its bytes begin to move; moving: when they end
    SimTime since;         ///< `left` is true of this instant
    double left;           ///< of its heaviest load, bytes
    double heaviest;       ///< its largest load, bytes; 0: it loads no link
    double limit;          ///< bytes a second that its own channels reach
    double speed = 0;            ///< bytes a second
    double new_speed = 0;
    std::uint64_t gathered = 0;  ///< round in which its speed was last found
    bool moving = false;
    bool affected = false;       ///< it has just begun to move
    bool frozen = false;         ///< during filling
    bool at_limit = false;
  };
  struct Link {
    double capacity;
    double free = 0;             ///< during filling
    double demand = 0;           ///< during filling: of transfers not frozen, at speed 1
    std::uint32_t open = 0;      ///< during filling: transfers not frozen
    std::uint32_t users = 0;     ///< moving transfers
    std::uint64_t mark = 0;      ///< round in which a transfer on it changed
    std::uint64_t filled = 0;    ///< round of the last filling
  };

  void begin_moving(Flow& flow, SimTime now);
  void end(Flow& flow);
  void share(SimTime now);
  void gather_affected();
  [[nodiscard]] bool touches_marked(const Flow& flow) const;
  void open_link(const LinkLoad& load, const Flow& flow);
  void fill();
  [[nodiscard]] bool on_full_link(const Flow& flow, double level) const;
  void freeze(Flow& flow, double speed);
  void settle(Flow& flow, SimTime now);
  void plan_next();

  engine::Engine& engine_;
  engine::EntityId entity_;
  std::vector<Link> links_;
  std::vector<Flow> flows_;           ///< in the order of their starts
  std::vector<std::size_t> affected_; ///< indices into flows_
  std::vector<std::uint32_t> used_;   ///< links of affected flows
  std::vector<Flow> ended_;
  std::uint64_t round_ = 0;
  bool changed_links_shared_ = false;  ///< a transfer that changed shares a link
};

}  // namespace bubblesim::network
