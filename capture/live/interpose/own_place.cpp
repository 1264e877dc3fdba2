#include "capture/live/interpose/own_place.hpp"

#include "capture/clock/process_mark.hpp"
#include "capture/clock/shared_segment.hpp"
#include "capture/gate/gate_rows.hpp"
#include "capture/gate/gate_segment.hpp"

namespace bubblesim::capture::interpose {
namespace {

/// Number, start and number space are kept by an exec. Without all three it may be another's.
bool is_here(const ProcessMark& process) noexcept {
  const ProcessMark here = this_process();
  return here.start != 0 && here.space != 0 && process == here;
}

/// The thread that asked is gone, or its process is about to exit, which may wait for the thread:
/// it goes on, and the host's answer finds nobody.
void let_go(GateRow& row) noexcept {
  std::uint64_t seen = row.answer;
  for (AnswerWord word = AnswerWord::unpacked(seen);
       word.answer == Answer::kAsked || word.answer == Answer::kHeld;
       word = AnswerWord::unpacked(seen)) {
    word.answer = word.answer == Answer::kHeld ? Answer::kReleased : Answer::kGo;
    if (row.answer.compare_exchange_strong(seen, word.packed())) return;
  }
}

void give_up(GateSegment& segment, ClientId client) noexcept {
  for (GateRow& row : segment.rows) {
    const std::uint64_t state = row.state;
    if (GateRow::state_of(state) != RowState::kUsed || row.client != client.value) continue;
    let_go(row);
    give_back({&row, state});
  }
  PlaceState joined = PlaceState::kJoined;
  segment.places[client.index()].state.compare_exchange_strong(joined, PlaceState::kLeft);
}

}  // namespace

bool give_up_own_place(const std::string& gate, ClientId client) noexcept try {
  const auto memory = SharedSegment::open(gate, sizeof(GateSegment), "gate");
  if (!memory) return false;
  auto& segment = *static_cast<GateSegment*>((*memory)->address());
  if (segment.magic != kGateMagic || segment.version != kGateVersion ||
      client.value >= segment.clients) {
    return false;
  }
  const GatePlace& place = segment.places[client.index()];
  if (place.state != PlaceState::kJoined || !is_here(place.process)) return false;
  give_up(segment, client);
  return true;
} catch (...) {
  return false;
}

}  // namespace bubblesim::capture::interpose
