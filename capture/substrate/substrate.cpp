#include "capture/substrate/substrate.hpp"

namespace bubblesim::capture {

const char* substrate_name(Substrate substrate) {
  switch (substrate) {
    case Substrate::kAlone: return "alone";
    case Substrate::kTimeSliced: return "time-sliced";
    case Substrate::kMps: return "mps";
    case Substrate::kStreams: return "streams";
  }
  return "alone";
}

}  // namespace bubblesim::capture
