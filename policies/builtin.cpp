#include "policies/builtin.hpp"

namespace bubblesim::policies {

policy::Registry builtin_policies() {
  policy::Registry registry;
  registry.add(exclusive_spec());
  registry.add(time_slicing_spec());
  registry.add(mps_spec());
  registry.add(mig_spec());
  registry.add(stream_priority_spec());
  registry.add(green_context_spec());
  registry.add(gpreempt_spec());
  registry.add(tgs_spec());
  registry.add(antman_spec());
  registry.add(specinf_spec());
  registry.add(dilu_spec());
  registry.add(orion_spec());
  registry.add(pipefill_spec());
  registry.add(freeride_spec());
  registry.add(reef_spec());
  registry.add(tally_spec());
  registry.add(vcuda_spec());
  registry.add(xsched_spec());
  registry.add(ideal_spec());
  registry.add(ideal_spatial_spec());
  return registry;
}

policy::Registry judged_policies() {
  policy::Registry registry = builtin_policies();
  registry.add(tally_tgs_spec());
  return registry;
}

}  // namespace bubblesim::policies
