// One GPU context: the kernels whose blocks share the SMs in space. Under MPS all clients are in
// one context; in time slices each client has a context of its own, with the whole GPU's resources
// in its slice; in partitions each context has a part of the GPU all the time.
//
// State changes only in events. `settle` accounts for the time since the last event, `place` fills
// free room, and `look_ahead` returns the next change that others notice. Waves that only replace
// themselves are no events.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/gpu/contention.hpp"
#include "sim/gpu/sm_blocks.hpp"
#include "sim/gpu/work_table.hpp"

namespace bubblesim::gpu {

class Context {
 public:
  Context(SharedState& shared, SimTime now);

  void set_clients(std::size_t count) {
    demands_.set_clients(count);
  }
  /// The share of the DRAM bandwidth for its clients.
  void set_bandwidth(double share) { contention_.set_bandwidth(share); }
  /// From now on each change of free_sms() is an event.
  void watch() { watched_ = true; }
  /// How many SMs of the whole GPU its resident blocks leave free, from 0 to all.
  [[nodiscard]] double free_sms() const;
  /// Resident work other than collectives.
  [[nodiscard]] bool has_kernels() const;
  /// From now on kernels run at the speed of this many SMs, however many they occupy. Precondition:
  /// settled to now, not frozen, sms > 0.
  void set_leftover(double sms);

  /// Queues a kernel or collective for placement.
  void add(WorkId id);
  /// Queues a kernel that has passed the front end: at once, or client_switch later if the previous
  /// kernel was another process's.
  void arrive(WorkId id, SimTime now);
  /// Whether a kernel submitted now has the whole GPU to itself until the next submission, and so
  /// ends after its solo duration.
  [[nodiscard]] bool leaves_alone(const Work& work) const;
  /// Lets a kernel submitted now begin at once, as if it had arrived and been placed, if no kernel
  /// waits, no resident kernel is over and all of its blocks fit. False: nothing was done.
  /// Precondition: its waves have been started.
  [[nodiscard]] bool begin_beside(WorkId id, SimTime now);
  /// Whether no block waits for room; kernels may be on their way through the front end.
  [[nodiscard]] bool nobody_waits() const { return waiting_.empty(); }
  /// If the end of one resident kernel is all that happens now, lets time pass, removes the kernel
  /// and returns it: the result of settle() and place(). Else returns nothing, with nothing done.
  /// Precondition: nobody_waits().
  [[nodiscard]] std::optional<WorkId> end_one(SimTime now);
  /// A kernel of leaves_alone() begins or has ended: this context keeps no state of the kernel
  /// meanwhile.
  void pass_alone(ClientId client, SimTime now);
  /// Adopts a kernel that has run alone since `since`, as if it had been placed here.
  void take_over(WorkId id, SimTime since);
  /// Restores the order of placement after a client's priority changed.
  void sort_waiting();
  /// Adapts collectives that are not yet placed to a new cap of their client.
  void limit_collectives(ClientId client);

  /// Kills the client's resident kernels; they wait and start over. Precondition: settled.
  void reset(ClientId client);
  /// Whether kernels or collectives are resident, or wait and are not kept off the GPU.
  [[nodiscard]] bool has_work() const;

  /// The context has the GPU from now on (thaw), or no longer (freeze).
  void thaw(SimTime now);
  void freeze(SimTime now);

  /// Lets time pass up to now; removes ended work. No effect while frozen.
  void settle(SimTime now);
  [[nodiscard]] SimTime settled() const { return settled_; }
  /// An outside input of rates or placements has changed.
  void touch() { changed_ = true; }
  void touch_rates() { rates_due_ = true; }
  /// Brings everything to now, as if the ends so far had been events of their own: completions of
  /// an instant come before its submissions and changes.
  void catch_up(SimTime now);
  /// Places waiting blocks, highest priority first. Precondition: settled to now, not frozen.
  void place(SimTime now);
  /// SMs times nanoseconds covered by the client's blocks since the last settling.
  [[nodiscard]] double unsettled_sm_ns(ClientId client, SimTime now) const;
  /// True: look_ahead() is certainly after now, whatever the rates. False: call it. Precondition:
  /// placed at now, not frozen, no client is confined to a part of the SMs.
  [[nodiscard]] bool nothing_is_due(SimTime now) const;
  /// Call before time passes. Recomputes rates if placements, ends or the rest of the GPU have
  /// changed them, and returns the time of the next change without an outside cause;
  /// SimTime::max(): never. Precondition: placed at now, not frozen.
  [[nodiscard]] SimTime look_ahead(SimTime now);

 private:
  [[nodiscard]] bool ordered_before(WorkId a, WorkId b) const;
  [[nodiscard]] SimTime passes_front_end(ClientId client, SimTime now) const;
  /// Why blocks of a waiting kernel have no room.
  enum class HeldBack : std::uint8_t {
    kNot,
    kByCap,  ///< its client's SM cap: kernels behind it may go first
    kByGpu,  ///< the GPU is full: kernels behind it wait, too
  };
  static constexpr std::uint64_t kAllBlocks = std::numeric_limits<std::uint64_t>::max();

  struct Waiting {
    WorkId id;
    ClientId client;
  };
  /// Work on its way through the front end.
  struct Arriving {
    WorkId id;
    SimTime at;
  };
  /// The effect of waiting kernels so far on those behind them.
  struct Line {
    std::optional<ClientId> ahead;  ///< waits for room on the GPU, anywhere
    bool behind_held = false;       ///< a kernel is held by a cap
  };
  /// A client with waiting kernels at a priority that several clients share.
  struct Contender {
    ClientId client;
    double sms;  ///< covered by the client
    bool held;   ///< by its cap, so that it can use no more
  };

  [[nodiscard]] inline bool all_go_on(SimTime now) const;
  [[nodiscard]] inline WorkState* only_one_over(SimTime now);
  inline bool goes_on(WorkState& state, Duration span);
  inline bool settle_one(WorkId id, SimTime now);
  inline static Waves::Passed pass(WorkState& state, Duration span);
  inline static Waves::Passed pass_placed(WorkState& state, Duration span);
  /// Call when work enters or leaves resident_.
  void set_listed(WorkState& state, bool listed) {
    state.listed = listed;
    std::uint32_t& of_client = shared_.clients[state.work.client.index()].listed;
    if (of_client == 0) ++resident_clients_;
    listed ? ++of_client : --of_client;
    if (of_client == 0) --resident_clients_;
  }
  void drop_placed() {
    if (all_placed_) drop_all_placed();
  }
  void drop_all_placed();
  [[nodiscard]] bool capped(ClientId client) const;
  [[nodiscard]] bool as_recorded(ClientId client) const;
  [[nodiscard]] SmBlocks::Kernel in_pool(const WorkState& state);
  [[nodiscard]] double covered_by_others(WorkId id) const;
  [[nodiscard]] std::uint64_t cap_room(WorkId id) const;
  [[nodiscard]] bool refills_itself(std::size_t place) const;
  [[nodiscard]] bool kept_off(const WorkState& state) const;
  [[nodiscard]] std::uint64_t allowed(WorkId id) const;
  void place_waiting();
  void hold_up(Line& line, ClientId client);
  [[nodiscard]] bool waits_behind(const Line& line, ClientId client) const;
  [[nodiscard]] std::size_t next_of(ClientId client, std::size_t from, std::size_t to) const;
  void place_in_order(std::size_t from, std::size_t to, std::size_t marked, Line& line);
  HeldBack place_one(WorkId id, std::uint64_t most);
  void tell_started(WorkId id);

  // Room of clients of equal priority (context_shares.cpp). [from, to) is a range of waiting_.
  [[nodiscard]] std::size_t level_end(std::size_t from) const;
  [[nodiscard]] bool several_clients(std::size_t from, std::size_t to) const;
  void share_room(std::size_t from, std::size_t to, Line& line);
  [[nodiscard]] double part_of_each(std::size_t from, std::size_t to);
  bool place_next(std::size_t from, std::size_t to, double part);
  bool place_beyond(std::size_t from, std::size_t to);
  void mark_refills(std::size_t from, std::size_t to, double part, Line& line);
  [[nodiscard]] bool in_line(std::size_t from, std::size_t place) const;
  [[nodiscard]] bool leads(std::size_t from, std::size_t place) const;
  [[nodiscard]] bool below(std::size_t place, double part) const;
  [[nodiscard]] double covered(ClientId client) const;
  void tidy();
  inline void note_mix();
  [[nodiscard]] double all_covered() const;
  void note_cover() {
    counted_ = 1;
    if (leftover_ > 0 || resident_.size() > resident_clients_) count_covered();
  }
  void count_covered();
  [[nodiscard]] double note_overlaps();
  [[nodiscard]] inline double sm_ns(const WorkState& state, double block_ns) const;
  void drop_thin();
  [[nodiscard]] bool all_at_full_rate() const;
  void note_lit();
  [[nodiscard]] Confinement confinement_of(const WorkState& state) const;
  [[nodiscard]] inline Demand demand_of(const WorkState& state) const;
  [[nodiscard, gnu::noinline]] double memory_time_of(const WorkState& state) const;
  inline void set_rate(WorkState& state, const Pressure& all, double own_dram) const;
  [[nodiscard, gnu::noinline]] double confined_rate(const WorkState& state, const Pressure& all,
                                                    double own_dram) const;
  void set_rates();
  inline Duration set_rates_of_two(SimTime now);
  [[nodiscard]] Duration next_event(SimTime now) const;
  [[nodiscard]] double left_to_event(const WorkState& state) const;

  SharedState& shared_;
  SmBlocks pool_;
  Contention contention_;
  DemandSum demands_;
  std::vector<Waiting> waiting_;  ///< with unplaced blocks, in order of placement
  std::size_t marked_ = 0;        ///< `refills` is set only among the first `marked_` of them
  bool all_placed_ = false;       ///< a kernel in waiting_ may have no unplaced blocks left
  std::vector<WorkId> resident_;  ///< with resident blocks, in order of their start
  SimTime settled_;               ///< time up to which the context is settled
  bool frozen_ = false;
  bool changed_ = false;          ///< an input of place() has changed since its last call
  std::vector<Arriving> arriving_;       ///< by time; mostly empty, or one or two
  std::optional<ClientId> last_client_;  ///< client of the kernel that came last to the front end
  SimTime last_arrival_{};               ///< when that kernel has passed the front end
  std::vector<Contender> contenders_;    ///< a member to reuse its memory
  std::vector<SmRange> awaited_;  ///< allowed SMs of capped clients that wait for room there;
                                  ///< reuses memory
  std::uint32_t resident_clients_ = 0;  ///< clients with work in resident_
  bool mixed_ = false;                  ///< several clients were resident at the last look
  bool thin_ = false;             ///< a kernel in resident_ may have no blocks left
  bool rates_due_ = false;        ///< rates belong to an earlier set of residents
  bool watched_ = false;
  double leftover_ = 0;           ///< SMs; 0: no limit
  double lit_ = 1;                ///< share of the SMs that are not dark
  double counted_ = 1;            ///< of the SMs that overlapping kernels cover, the share that
                                  ///< counts as used
};

}  // namespace bubblesim::gpu
