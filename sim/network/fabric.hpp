// Shares links fluidly among transfers under way.
//
// After its latency a transfer's bytes move. Its speed is that of its heaviest load, in bytes a
// second; its other loads move in proportion. Transfers on a link share it max-min fairly
// (progressive filling: all speeds rise together; a transfer whose link is full, or that has
// reached the speed of its own channels, keeps its speed, while the others rise further). A
// transfer for several groups has the shares of all of them together, and the speed of one. Speeds
// change only when a transfer begins or ends or a fault slows a link, and only among transfers that
// share links with it.
//
// Ends are rounded up to whole nanoseconds. Listeners hear of ends of one instant in the order of
// their starts. A change costs O(loads of the transfers that it affects). Single-threaded, inside
// events of one Engine; nothing here allocates in steady state.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/base/quantities.hpp"
#include "sim/base/time.hpp"
#include "sim/engine/engine.hpp"
#include "sim/hardware/cluster_spec.hpp"

namespace bubblesim::network {

// Links, and a collective's load on them.
//
// A link moves bytes in one direction at its capacity. A Transfer lists the bytes of a collective
// on each of its links. It moves through all of them at once (chunks are pipelined), so that alone
// it lasts
//
//   latency + max(least, max over links of bytes / capacity)
//
// where `least` is the time of the collective's own channels and protocol for the bytes, however
// fast the links are.
//
// A Transfer may represent several groups that run the same collective at once: its loads are then
// the bytes of all groups together on the links of one group.

using LinkId = StrongId<struct LinkTag>;  ///< index into a LinkTable

/// Capacities by LinkId.
using LinkTable = std::vector<BytesPerSecond>;

struct LinkLoad {
  LinkId link;
  double bytes = 0;  ///< that pass through the link; > 0
};

/// A fault of a link: for a while it is slower than its capacity.
struct SlowLink {
  LinkId link;
  double slowdown = 1;             ///< factor on the time that bytes take, > 0
  SimTime from = kSimStart;
  SimTime until = SimTime::max();  ///< > from, and not after the next fault of the same link
};

/// The algorithm by which a collective's ranks pass data on.
enum class Algorithm : std::uint8_t {
  kAuto,          ///< the fastest of NCCL's choices: ring, tree, NVLS or direct
  kRing,          ///< one ring over all ranks
  kTree,          ///< double binary tree between nodes, chains inside (all-reduce)
  kNvls,          ///< the NVSwitch reduces and multicasts; a tree between nodes (all-reduce)
  kHierarchical,  ///< reduce-scatter inside nodes, rings between nodes, all-gather inside nodes
  kDirect,        ///< each sender to each receiver: send, all-to-all
};

struct Transfer {
  Duration latency{};           ///< before the first byte moves
  Duration least{};             ///< time of the bytes on infinitely fast links
  std::vector<LinkLoad> loads;  ///< each link once
  /// Number of groups that share its most loaded link: its largest load over one group's largest
  /// load.
  double shares = 1;
  Algorithm algorithm = Algorithm::kRing;
  hardware::Protocol protocol = hardware::Protocol::kSimple;
  std::uint32_t channels = 1;   ///< blocks (one a channel) of the kernel on each rank
};

/// The transfer's time when nothing else uses its links; rounded up to whole nanoseconds.
[[nodiscard]] Duration solo_time(const Transfer& transfer, const LinkTable& links);

class FlowListener {
 public:
  virtual ~FlowListener() = default;
  /// The transfer's last byte has arrived at `now`. May start others.
  virtual void on_flow_finished(std::uint64_t cookie, SimTime now) = 0;
};

/// A flow that has started and not ended.
using FlowId = std::uint32_t;

class Fabric final : public engine::EventHandler {
 public:
  Fabric(engine::Engine& engine, const LinkTable& links, const std::vector<SlowLink>& slow = {});

  /// `transfer` and `listener` outlive the flow. Call inside an event of the engine, at its time.
  /// The returned id is valid until the flow has ended.
  FlowId start(const Transfer& transfer, FlowListener& listener, std::uint64_t cookie, SimTime now);

  /// The flow's bytes stop until go_on; other flows have its share. A flow whose last byte arrives
  /// in this instant still ends.
  void hold(FlowId flow, SimTime now);
  void go_on(FlowId flow, SimTime now);

  void on_event(SimTime now) override;

  /// Transfers that have started and not ended.
  [[nodiscard]] std::size_t active() const { return flows_.size() - free_.size(); }

 private:
  struct Flow {
    const Transfer* transfer;
    FlowListener* listener;
    std::uint64_t cookie;
    std::uint64_t sequence;      ///< order of starts
    SimTime due;                 ///< waiting: when its bytes begin to move; moving: when they end
    SimTime since;               ///< instant of `left`
    double left;                 ///< bytes left of its heaviest load
    double heaviest;             ///< the largest load of one group, bytes; 0: it loads no link
    double limit;                ///< bytes a second of its own channels at most
    double speed = 0;            ///< bytes a second
    double new_speed = 0;
    std::uint64_t gathered = 0;  ///< round in which its speed was last found
    bool moving = false;
    bool frozen = false;         ///< during filling
    bool at_limit = false;
    std::optional<Duration> wait{};  ///< held: time left until `due`
  };
  struct Link {
    double capacity;
    double free = 0;                   ///< during filling
    double demand = 0;                 ///< during filling: of transfers not frozen, at speed 1
    std::uint32_t open = 0;            ///< during filling: transfers not frozen
    std::uint64_t spread = 0;          ///< round in which its users were gathered
    std::vector<std::uint32_t> users{};  ///< moving transfers, by slot
  };
  /// A change of a link's capacity at `at`.
  struct CapacityChange {
    SimTime at;
    LinkId link;
    double capacity;
  };
  /// When a slot's flow is due; outdated if the flow's own `due` or `sequence` differs.
  struct Due {
    SimTime at;
    std::uint64_t sequence;
    std::uint32_t slot;
    friend bool operator>(const Due& a, const Due& b) {
      return a.at != b.at ? a.at > b.at : a.sequence > b.sequence;
    }
  };

  [[nodiscard]] std::uint32_t take_slot();
  void set_due(std::uint32_t slot, SimTime at);
  [[nodiscard]] bool is_stale(const Due& due) const;
  void begin_round();
  void collect_due(SimTime now);
  void change_capacities(SimTime now);
  void begin_moving(std::uint32_t slot, SimTime now);
  void use_links(std::uint32_t slot);
  void leave_links(std::uint32_t slot);
  void end(std::uint32_t slot);
  void gather(std::uint32_t slot);
  void spread(const Flow& flow);
  void share(SimTime now);
  void fill();
  [[nodiscard]] bool on_full_link(const Flow& flow, double level) const;
  void freeze(Flow& flow, double speed);
  void settle(std::uint32_t slot, SimTime now);
  void plan_next();

  engine::Engine& engine_;
  engine::EntityId entity_;
  std::vector<Link> links_;
  std::vector<CapacityChange> changes_;  ///< by time
  std::size_t next_change_ = 0;
  std::vector<Flow> flows_;              ///< slots
  std::vector<std::uint32_t> free_;      ///< slots without a flow
  std::vector<Due> heap_;                ///< least first
  std::vector<std::uint32_t> due_now_;   ///< slots
  std::vector<std::uint32_t> affected_;  ///< slots whose speed is being recomputed
  std::vector<std::uint32_t> used_;      ///< their links
  std::vector<Flow> ended_;
  std::uint64_t next_sequence_ = 1;
  std::uint64_t round_ = 0;
};

}  // namespace bubblesim::network
