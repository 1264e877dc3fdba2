#include "sim/app/advise_fleet.hpp"

#include <cstdio>
#include <memory>

#include "sim/advise/fleet/fleet_text.hpp"
#include "sim/app/policy_libraries.hpp"
#include "sim/app/policy_timeout.hpp"
#include "sim/app/stop_signals.hpp"
#include "sim/base/json.hpp"
#include "sim/report/advice/fleet_page.hpp"
#include "sim/store/results_store.hpp"

namespace bubblesim::app {
namespace {

Result<void> write_fleet(const AdviseArguments& arguments, const advise::FleetPlan& plan) {
  if (!arguments.html.empty()) {
    BUBBLESIM_RETURN_IF_ERROR(write_output(arguments.html, report::fleet_page(plan)));
  }
  return write_output(arguments.csv, advise::fleet_csv(plan));
}

CheckedResult<advise::FleetPlan> planned(AdviseArguments& arguments, const CLI::App& command,
                                         const AppContext& context, const StopSignals& signals) {
  BUBBLESIM_ASSIGN_OR_RETURN(advise::FleetQuestion question,
                             fleet_question(arguments, command, context));
  std::unique_ptr<store::ResultsStore> store;
  if (!arguments.store.empty()) {
    BUBBLESIM_ASSIGN_OR_RETURN(store,
                               store::open_store(arguments.store, store::StoreAccess::kWrite));
  }
  ProgressLine line;
  advise::AnswerOptions options;
  options.config_folder = context.config_folder;
  BUBBLESIM_ASSIGN_OR_RETURN(options.version, version_with_policies(context));
  options.threads = threads_of(arguments.threads);
  options.store = store.get();
  options.stop = &signals.stop();
  options.begins = [&line](const std::string& step) { line.show(step); };
  auto plan = advise::plan_fleet(std::move(question), context.policies, options);
  line.clear();
  return plan;
}

}  // namespace

ExitCode advise_fleet(AdviseArguments& arguments, const CLI::App& command, AppContext& context) {
  StopSignals signals;
  const PolicyTimeout timeout(arguments.job.policy_bound, nullptr);
  const auto plan = planned(arguments, command, context, signals);
  if (!plan) {
    report_faults(plan.error());
    return signals.count() > 0 ? kExitInterrupted : kExitInputFault;
  }
  const std::string text = arguments.json ? indented_text(advise::fleet_json(*plan), 1) + "\n"
                                          : advise::fleet_text(*plan);
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
  BUBBLESIM_RETURN_IF_ERROR(write_fleet(arguments, *plan));
  return signals.count() > 0 ? kExitInterrupted : kExitOk;
}

}  // namespace bubblesim::app
