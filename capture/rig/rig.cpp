#include "capture/rig/rig.hpp"

#include "capture/rig/rig_run.hpp"

namespace bubblesim::capture {

Result<RigResult> run_rig(const RigPlace& place, const RigSetup& setup,
                          const policy::Sharing& sharing,
                          const std::vector<policy::ClientSharing>& shares) {
  std::unique_ptr<HostClock> clock;
  if (place.fake != nullptr) {
    BUBBLESIM_ASSIGN_OR_RETURN(clock, make_turn_clock());
  } else {
    clock = wall_clock(place.spin);
  }
  const std::unique_ptr<ClockPart> part = clock->join(Turn::kControl);
  return RigRun(place, setup, *clock).run(sharing, shares);
}

}  // namespace bubblesim::capture
