// The meetings of ranks in collectives. A collective's kernels hold their SMs from their own start;
// data moves when the last rank has started. A recorded collective has no transfer: from then on
// each rank's kernel lasts its own recorded span. A modelled collective has a transfer, which the
// fabric carries; each rank's kernel lasts its own span (mostly none) after the fabric is done. A
// buffered send does not wait for its receive: its data is kept until the receive starts.
//
// Kernels of a collective wait for each other's data all the time. While one of them stands still,
// because its context is switched out, none advances, and the fabric moves no bytes of the
// collective. If all have run since it last advanced, but never together, it advances by the data
// in the buffers between them.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/engine/engine.hpp"
#include "sim/network/fabric.hpp"

namespace bubblesim::network {

/// A rank's part in a collective that has started and waits for the others.
class Participant {
 public:
  virtual ~Participant() = default;
  /// The last rank has started at `now`; the participant's kernel continues from here.
  virtual void on_all_arrived(std::uint64_t cookie, SimTime now) = 0;
  /// The fabric has carried the collective's transfer; called instead of on_all_arrived.
  virtual void on_transfer_finished(std::uint64_t cookie, SimTime now) {
    on_all_arrived(cookie, now);
  }
  /// Whether the participant's kernel stands still: its context does not have the GPU.
  [[nodiscard]] virtual bool stands_still(std::uint64_t /*cookie*/) const { return false; }
  /// A kernel that has run since on_all_arrived makes no progress from now until on_released. Calls
  /// may repeat, and may come in the instant in which the kernel ends.
  virtual void on_held(std::uint64_t /*cookie*/, SimTime /*now*/) {}
  virtual void on_released(std::uint64_t /*cookie*/, SimTime /*now*/) {}
};

/// The start of a participant's kernel, reported after a window.
struct Arrival {
  SimTime time{};
  engine::Phase phase{};  ///< Engine::reached_phase() at that time
  std::uint32_t collective = 0;
  Participant* participant = nullptr;
  std::uint64_t cookie = 0;
};

/// The sender of a collective without a buffered send.
inline constexpr std::uint32_t kNoSender = std::numeric_limits<std::uint32_t>::max();

/// A collective as a Rendezvous sees it.
struct MeetingSpec {
  std::uint32_t participants = 1;
  const Transfer* transfer = nullptr;  ///< null: no bytes for the fabric
  /// The rank of the buffered send. Such a collective has one receiver and no transfer.
  std::uint32_t sender = kNoSender;
};

/// Counts arrivals. A collective's next use may begin only when its last one is complete, which
/// stream order guarantees. The class is not thread-safe.
class Rendezvous final : private FlowListener, private engine::EventHandler {
 public:
  /// `participants[c]` is the number of ranks in collective c, at least 1. No transfers.
  explicit Rendezvous(const std::vector<std::uint32_t>& participants);

  /// With a fabric of `links`, if there are any, and their faults; transfers outlive this.
  Rendezvous(engine::Engine& engine, const std::vector<MeetingSpec>& meetings,
             const LinkTable& links, const std::vector<SlowLink>& slow = {});

  /// Adds a collective of participants that are not ranks (a server that shares their links).
  /// Returns its number. Precondition: the constructor was given the links that its transfer loads.
  std::uint32_t add(const MeetingSpec& spec);

  /// `participant`'s kernel has started. If it is the last one, every participant is called, in
  /// order of arrival: before this returns, or when the fabric has carried the transfer.
  void arrive(std::uint32_t collective, Participant& participant, std::uint64_t cookie,
              SimTime now);

  /// Whether the rank's part in the collective is a buffered send, to be reported by send().
  [[nodiscard]] bool is_sender(std::uint32_t collective, std::uint32_t rank) const {
    return meetings_[collective].sender == rank;
  }

  /// Replaces arrive() for the sender, which is called back at once, unless the receive of the
  /// collective's last use has not started. The buffer holds one use, so that no sender runs ahead
  /// without end.
  void send(std::uint32_t collective, Participant& participant, std::uint64_t cookie, SimTime now);

  /// Announces that participants may stand still after their arrival; all of them then report each
  /// stop and its end. Called before the first arrival.
  void watch_stops() { watches_ = true; }
  [[nodiscard]] bool watches_stops() const { return watches_; }
  /// A participant that has arrived stands still from now on (stop), continues (go_on), or has
  /// ended (end). No effect unless stops are watched, nor on a collective that is not complete.
  void stop(std::uint32_t collective, Participant& who, std::uint64_t cookie, SimTime now);
  void go_on(std::uint32_t collective, Participant& who, std::uint64_t cookie, SimTime now);
  void end(std::uint32_t collective, Participant& who, std::uint64_t cookie);
  /// Whether stops are watched and a complete collective has kernels that have not ended: a stop of
  /// one delays the others.
  [[nodiscard]] bool under_way() const { return under_way_ > 0; }

  /// Reports the arrivals of a window, grouped by domain, domains in their order. None is the last
  /// of its collective. Sorts `arrivals` into the order of events without a window.
  void arrive_late(std::vector<Arrival>& arrivals);

  /// Part of a look-ahead: a participant that has not arrived reaches this collective next, at
  /// `earliest` or later. Each at most once in a look-ahead.
  void expect(std::uint32_t collective, SimTime earliest);
  /// Ends the look-ahead: until the returned time, exclusive, none of the participants named in it
  /// is the last of its collective. SimTime::max(): a participant must be called first.
  [[nodiscard]] SimTime next_completion();

  /// Collectives in which some ranks wait for others or for the fabric.
  [[nodiscard]] std::uint64_t waiting() const;

 private:
  struct Waiter {
    Participant* participant;
    std::uint64_t cookie;
    bool had_turn = false;  ///< in a group: it has run since the collective last advanced
  };
  struct Meeting {
    std::uint32_t needed;
    std::uint32_t expected;  ///< in this look-ahead
    SimTime latest;          ///< of the expected arrivals, if any
    const Transfer* transfer;
    std::uint32_t sender;
    bool sent;  ///< the buffer holds data that no receive has taken
    std::vector<Waiter> waiters;
    // Where stops are watched:
    std::vector<Waiter> group{};     ///< of the complete collective, whose kernels have not ended
    std::uint32_t standing = 0;      ///< number of waiters in the group that stand still
    bool told = false;               ///< the group knows that all have arrived
    SimTime buffered_until{};        ///< if later than now: it advances on buffered data
    std::optional<FlowId> flow{};    ///< of the fabric, for its transfer
  };
  using Tell = void (Participant::*)(std::uint64_t cookie, SimTime now);
  /// A collective that advances on buffered data.
  struct Buffered {
    std::uint32_t collective;
    SimTime until;
  };
  void on_flow_finished(std::uint64_t collective, SimTime now) override;
  void on_event(SimTime now) override;
  void pass_on(std::uint32_t collective, bool sends, SimTime now);
  void complete(std::uint32_t collective, SimTime now);
  void begin(std::uint32_t collective, SimTime now);
  void hold(std::uint32_t collective, SimTime now);
  void advance(std::uint32_t collective, SimTime now);
  void advance_buffered(std::uint32_t collective, SimTime now);
  void release(std::uint32_t collective, SimTime now);
  void note_group(Meeting& meeting);
  [[nodiscard]] static std::vector<Waiter>::iterator find(std::vector<Waiter>& group,
                                                          const Participant& who,
                                                          std::uint64_t cookie);
  [[nodiscard]] std::vector<Waiter> copy_of(const std::vector<Waiter>& waiters);
  void tell(std::vector<Waiter> whom, Tell what, SimTime now);

  engine::Engine* engine_ = nullptr;  ///< null: no buffered data
  engine::EntityId entity_{};         ///< the end of the first of `buffered_`
  std::vector<Buffered> buffered_;    ///< by their ends
  std::unique_ptr<Fabric> fabric_;  ///< null: no transfer can be carried
  std::vector<Meeting> meetings_;
  std::vector<std::uint32_t> looked_at_;  ///< collectives that are expected
  std::vector<Waiter> told_;              ///< a member to reuse its memory
  bool watches_ = false;
  std::uint64_t under_way_ = 0;           ///< participants in groups
};

}  // namespace bubblesim::network
