// One GPU context: the kernels whose blocks share the SMs in space. Under MPS all clients are in
// one; in time slices each client has its own, with the whole GPU's resources to itself in its
// slice; in partitions each has its own part all the time.
//
// Between events nothing is touched. `settle` lets the time since the last event pass, `place`
// hands out what is free, and `next_event` says when something changes that others notice. Waves
// that only replace themselves are no events.
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
  /// The share of the DRAM bandwidth that its clients have.
  void set_bandwidth(double share) { contention_.set_bandwidth(share); }
  /// Each change of free_sms() is an event from now on.
  void watch() { watched_ = true; }
  /// SMs of the whole GPU that its resident blocks leave, 0 to all.
  [[nodiscard]] double free_sms() const;
  /// Resident work other than collectives.
  [[nodiscard]] bool has_kernels() const;
  /// From now on kernels run as fast as so many SMs let them, however many they occupy.
  /// Precondition: settled to now, not frozen, sms > 0.
  void set_leftover(double sms);

  /// Queues a kernel or collective for placement.
  void add(WorkId id);
  /// Queues a kernel that the front end has passed on: at once, or client_switch later if the
  /// kernel before it was another process's.
  void arrive(WorkId id, SimTime now);
  /// Whether a kernel that is submitted now has the whole GPU to itself until another is submitted,
  /// and so ends when it has run for as long as alone.
  [[nodiscard]] bool leaves_alone(const Work& work) const;
  /// If no kernel waits and no resident kernel is over, a kernel that is submitted now and fits
  /// with all of its blocks begins at once, as if it had arrived and been placed. False: it does
  /// not, and nothing was done. Precondition: its waves have been started.
  [[nodiscard]] bool begin_beside(WorkId id, SimTime now);
  /// No block waits for room; kernels may be on their way through the front end.
  [[nodiscard]] bool nobody_waits() const { return waiting_.empty(); }
  /// If exactly one of the resident kernels is over now and nothing else happens, time passes, that
  /// one leaves, and the others go on, as if all had been settled and placed. Nothing: it is not
  /// so, and nothing was done. Precondition: nobody_waits().
  [[nodiscard]] std::optional<WorkId> end_one(SimTime now);
  /// A kernel of leaves_alone() begins, or has ended: this context keeps no state of it meanwhile.
  void pass_alone(ClientId client, SimTime now);
  /// Takes in a kernel that has run alone since then, as if it had been placed here.
  void take_over(WorkId id, SimTime since);
  /// Restores the order of placement after a client's priority changed.
  void sort_waiting();
  /// Adapts collectives that are not yet placed to a new cap of their client.
  void limit_collectives(ClientId client);

  /// Kills the client's resident kernels; they wait to begin anew. Precondition: settled.
  void reset(ClientId client, SimTime now);
  /// Kernels or collectives, resident, or waiting and not kept off the GPU.
  [[nodiscard]] bool has_work() const;

  /// The context has the GPU from now on, or has it no more.
  void thaw(SimTime now);
  void freeze(SimTime now);

  /// Lets time pass up to now; ends what has ended. No effect while frozen.
  void settle(SimTime now);
  [[nodiscard]] SimTime settled() const { return settled_; }
  /// Something changed from outside that rates or placements depend on.
  void touch() { changed_ = true; }
  void touch_rates() { rates_due_ = true; }
  /// Brings everything to now, as if what has ended had been an event of its own: completions of an
  /// instant come before its submissions and changes.
  void catch_up(SimTime now);
  /// Places waiting blocks, highest priority first. Precondition: settled to now, not frozen.
  void place(SimTime now);
  /// SMs times nanoseconds that the client's blocks covered since the last settling.
  [[nodiscard]] double unsettled_sm_ns(ClientId client, SimTime now) const;
  /// True: look_ahead() lies after now, whatever rates will be set. False: ask it.
  /// Precondition: placed at now, not frozen, no client is confined to a part of the SMs.
  [[nodiscard]] bool nothing_is_due(SimTime now) const;
  /// Call before time passes. Sets rates anew if placements, ends or the rest of the GPU have
  /// changed them, and returns when the next change happens by itself; SimTime::max(): never.
  /// Precondition: placed at now, not frozen.
  [[nodiscard]] SimTime look_ahead(SimTime now);

 private:
  [[nodiscard]] bool ordered_before(WorkId a, WorkId b) const;
  [[nodiscard]] SimTime passes_front_end(ClientId client, SimTime now) const;
  /// What keeps waiting blocks of a kernel out.
  enum class HeldBack : std::uint8_t {
    kNot,
    kByCap,  ///< its client's SM cap: those behind it may go first
    kByGpu,  ///< too little is free: those behind it wait too
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
  /// What the kernels in line so far mean for those behind them.
  struct Line {
    std::optional<ClientId> ahead;  ///< waits for room on the GPU, anywhere
    bool behind_held = false;       ///< a kernel is held by a cap
  };
  /// A client with waiting kernels of a priority that several share.
  struct Contender {
    ClientId client;
    double sms;  ///< that it covers
    bool held;   ///< by its cap: it can use no more
  };

  [[nodiscard]] inline bool all_go_on(SimTime now) const;
  [[nodiscard]] inline WorkState* only_one_over(SimTime now);
  inline bool goes_on(WorkState& state, Duration span);
  inline bool settle_one(WorkId id, SimTime now);
  inline static Waves::Passed pass(WorkState& state, Duration span);
  inline static Waves::Passed pass_placed(WorkState& state, Duration span);
  void finish(WorkId id, SimTime now);
  /// To be called when work enters or leaves resident_.
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
  void place_waiting(SimTime now);
  void hold_up(Line& line, ClientId client);
  [[nodiscard]] bool waits_behind(const Line& line, ClientId client) const;
  [[nodiscard]] std::size_t next_of(ClientId client, std::size_t from, std::size_t to) const;
  void place_in_order(std::size_t from, std::size_t to, std::size_t marked, Line& line,
                      SimTime now);
  HeldBack place_one(WorkId id, std::uint64_t most, SimTime now);
  void tell_started(WorkId id);

  // Room of clients of equal priority (context_shares.cpp). [from, to): of waiting_.
  [[nodiscard]] std::size_t level_end(std::size_t from) const;
  [[nodiscard]] bool several_clients(std::size_t from, std::size_t to) const;
  void share_room(std::size_t from, std::size_t to, Line& line, SimTime now);
  [[nodiscard]] double part_of_each(std::size_t from, std::size_t to);
  bool place_next(std::size_t from, std::size_t to, double part, SimTime now);
  bool place_beyond(std::size_t from, std::size_t to, SimTime now);
  void mark_refills(std::size_t from, std::size_t to, double part, Line& line);
  [[nodiscard]] bool in_line(std::size_t from, std::size_t place) const;
  [[nodiscard]] bool leads(std::size_t from, std::size_t place) const;
  [[nodiscard]] bool below(std::size_t place, double part) const;
  [[nodiscard]] double covered(ClientId client) const;
  void set_running(WorkState& work, bool running, SimTime now);
  void tidy(SimTime now);
  inline void note_mix();
  [[nodiscard]] double all_covered() const;
  void note_cover() {
    counted_ = 1;
    if (leftover_ > 0 || resident_.size() > resident_clients_) count_covered();
  }
  void count_covered();
  [[nodiscard]] double note_overlaps();
  [[nodiscard]] inline double sm_ns(const WorkState& state, double block_ns) const;
  void drop_thin(SimTime now);
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
  std::size_t marked_ = 0;        ///< at most so many of them, the first, have `refills`
  bool all_placed_ = false;       ///< a kernel in waiting_ may have no unplaced blocks left
  std::vector<WorkId> resident_;  ///< with resident blocks, in order of their start
  SimTime settled_;               ///< up to which time has passed
  bool frozen_ = false;
  bool changed_ = false;          ///< an input of place(), since it was last called
  std::vector<Arriving> arriving_;       ///< by time; mostly none, one or two
  std::optional<ClientId> last_client_;  ///< whose kernel came last to the front end
  SimTime last_arrival_{};               ///< when that kernel has passed the front end
  std::vector<Contender> contenders_;    ///< kept for its memory
  std::vector<SmRange> awaited_;  ///< SMs of clients with a cap that wait for room there; likewise
  std::uint32_t resident_clients_ = 0;  ///< that have something in resident_
  bool mixed_ = false;                  ///< several clients were resident when last noted
  bool thin_ = false;             ///< a kernel in resident_ may have no blocks left
  bool rates_due_ = false;        ///< rates are those of an earlier set of residents
  bool watched_ = false;
  double leftover_ = 0;           ///< SMs; 0: no limit
  double lit_ = 1;                ///< share of the SMs that are not dark
  double counted_ = 1;            ///< share of what overlapping kernels cover that counts as used
};

}  // namespace bubblesim::gpu
