#include "policies/builtin.hpp"

namespace bubblesim::policies {

void register_builtin(policy::Registry& registry) {
  registry.add(exclusive_spec());
  registry.add(time_slicing_spec());
  registry.add(mps_spec());
  registry.add(tgs_spec());
  registry.add(specinf_spec());
  registry.add(pipefill_spec());
}

}  // namespace bubblesim::policies
