#include "capture/gate/gate_client.hpp"

#include <algorithm>
#include <utility>

#include "capture/gate/gate_membership.hpp"

namespace bubblesim::capture {
namespace {

class SegmentClient final : public GateClient {
 public:
  SegmentClient(std::shared_ptr<GateMembership> membership, HostClock& clock, Duration patience)
      : membership_(std::move(membership)),
        segment_(membership_->segment()),
        place_(membership_->place()),
        clock_(clock),
        patience_(std::max(patience, Duration{4})) {}
  ~SegmentClient() override { membership_->leave(); }

  Passage launch(policy::LaunchInfo launch) override {
    launches_.fetch_add(1, std::memory_order_relaxed);
    GateSeat* seat = GateMembership::seat(membership_);
    if (membership_->is_forked() || seat == nullptr) {
      if (seat != nullptr) seat->last_launch = launches_;
      return go_ungated();
    }
    launch.client = membership_->client();
    launch.launch = place_.launches.fetch_add(1, std::memory_order_relaxed) + 1;
    seat->last_launch = launch.launch;
    GateRow* row = seat->held.row;
    if (is_closed()) return go_ungated_here();
    const GateMode mode = place_.mode.load(std::memory_order_relaxed);
    if (mode == GateMode::kPass) {
      place_.passed.fetch_add(1, std::memory_order_relaxed);
      return {};
    }
    if (row == nullptr) return go_ungated_here();
    GateMessage message = message_of(MessageKind::kTold);
    message.launch = launch;
    if (mode == GateMode::kTell) {
      send(*row, message);
      return {};
    }
    if (is_known_silent()) {
      message.kind = MessageKind::kUngated;
      send(*row, message);
      return go_ungated_here();
    }
    return ask(*row, message);
  }

  std::uint64_t last_launch() const override {
    const GateSeat* seat = GateMembership::seat(membership_);
    return seat == nullptr ? 0 : seat->last_launch;
  }

  void completed(program::WorkKind kind, std::uint64_t launch) override {
    GateMessage message = message_of(MessageKind::kCompleted);
    message.launch.kind = kind;
    message.launch.launch = launch;
    tell(message);
  }
  void iteration_ended(Duration length) override {
    GateMessage message = message_of(MessageKind::kIteration);
    message.length = length;
    tell(message);
  }
  void bubble_began(const policy::BubbleInfo& bubble) override {
    GateMessage message = message_of(MessageKind::kBubbleBegan);
    message.bubble = bubble;
    tell(message);
  }
  void bubble_ended() override {
    GateMessage message = message_of(MessageKind::kBubbleEnded);
    tell(message);
  }

  std::uint32_t window() const override { return is_closed() ? 0 : place_.window.load(); }
  GateClientCounts counts() const override { return {launches_, ungated_, dropped_}; }

 private:
  [[nodiscard]] bool is_closed() const {
    return segment_.open.load(std::memory_order_acquire) != 0 ||
           place_.state.load(std::memory_order_relaxed) == PlaceState::kGone;
  }

  [[nodiscard]] GateMessage message_of(MessageKind kind) const {
    GateMessage message;
    message.kind = kind;
    message.launch.client = membership_->client();
    message.time = clock_.now();
    return message;
  }

  void tell(GateMessage& message) {
    if (membership_->is_forked() || is_closed()) return;
    const GateSeat* seat = GateMembership::seat(membership_);
    if (seat == nullptr || seat->held.row == nullptr) {
      drop();
      return;
    }
    send(*seat->held.row, message);
  }

  bool send(GateRow& row, GateMessage& message) {
    if (!put(segment_, row, message)) {
      drop();
      return false;
    }
    // Only whoever takes the mark away rings: once, however many messages come at a time.
    if (segment_.host_waits.load(std::memory_order_seq_cst) != 0 &&
        segment_.host_waits.exchange(0) != 0) {
      clock_.ring(segment_.host_bell);
    }
    return true;
  }

  void drop() {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    place_.dropped.fetch_add(1, std::memory_order_relaxed);
  }

  Passage go_ungated() {
    ungated_.fetch_add(1, std::memory_order_relaxed);
    return {Duration{}, false, true};
  }
  Passage go_ungated_here() {
    place_.ungated.fetch_add(1, std::memory_order_relaxed);
    return go_ungated();
  }

  Passage ask(GateRow& row, GateMessage& message) {
    message.kind = MessageKind::kAsked;
    message.ask = AnswerWord::unpacked(row.answer).ask + 1;
    row.answer = AnswerWord{message.ask, Answer::kAsked}.packed();
    if (!send(row, message)) return go_ungated_here();
    Passage passage;
    while (true) {
      const std::uint32_t seen = row.bell.rings;
      std::uint64_t word = row.answer.load(std::memory_order_acquire);
      const Answer answer = AnswerWord::unpacked(word).answer;
      passage.held = answer == Answer::kReleased;
      if (answer == Answer::kGo || answer == Answer::kReleased) break;
      if (is_closed() || is_silent(message.time)) {
        const std::uint64_t withdrawn = AnswerWord{message.ask, Answer::kWithdrawn}.packed();
        if (!row.answer.compare_exchange_strong(word, withdrawn)) continue;  // answered just now
        passage = go_ungated_here();
        passage.held = answer == Answer::kHeld;
        break;
      }
      clock_.wait(row.bell, seen, clock_.now() + patience_ / 4);
    }
    passage.asked = clock_.now() - message.time;
    return passage;
  }

  // The host has not looked since it was found silent.
  [[nodiscard]] bool is_known_silent() const {
    return segment_.heartbeat.load(std::memory_order_relaxed) ==
           silent_since_.load(std::memory_order_relaxed);
  }

  // The host has died, or has not looked for longer than `patience`.
  [[nodiscard]] bool is_silent(HostTime asked) {
    const HostTime now = clock_.now();
    if (now == asked) return false;
    const std::int64_t beat = segment_.heartbeat.load();
    if (now - std::max(asked, HostTime{Duration{beat}}) >= patience_) {
      silent_since_ = beat;
      return true;
    }
    if (now - asked < patience_ / 4 || !has_ended(segment_.host)) return false;
    segment_.open = 1;  // for everybody: nobody will decide any more
    return true;
  }

  std::shared_ptr<GateMembership> membership_;
  GateSegment& segment_;
  GatePlace& place_;
  HostClock& clock_;
  Duration patience_;
  std::atomic<std::uint64_t> launches_{0};
  std::atomic<std::uint64_t> ungated_{0};
  std::atomic<std::uint64_t> dropped_{0};
  std::atomic<std::int64_t> silent_since_{-1};  ///< the heartbeat at which it was; -1: never
};

}  // namespace

Result<std::unique_ptr<GateClient>> GateClient::open(const std::string& name, ClientId client,
                                                     HostClock& clock, Duration patience) {
  BUBBLESIM_ASSIGN_OR_RETURN(auto membership, GateMembership::join(name, client, patience));
  return std::make_unique<SegmentClient>(std::move(membership), clock, patience);
}

}  // namespace bubblesim::capture
