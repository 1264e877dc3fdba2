// The commands of bubblesim, in the order of its help.
#include "sim/app/shared/app.hpp"

namespace bubblesim::app {

void add_commands(CLI::App& parser, AppContext& context) {
  add_import_command(parser, context);
  add_inspect_command(parser, context);
  add_run_command(parser, context);
  add_measure_command(parser, context);
  add_calibrate_command(parser, context);
  add_sweep_command(parser, context);
  add_advise_command(parser, context);
  add_results_command(parser, context);
  add_report_command(parser, context);
  add_view_command(parser, context);
  add_export_command(parser, context);
  add_retarget_command(parser, context);
  add_synth_command(parser, context);
  add_synth_inference_command(parser, context);
  add_schedule_command(parser, context);
  add_list_commands(parser, context);
  add_schema_command(parser, context);
  add_new_policy_command(parser, context);
  add_synth_list_commands(parser, context);
  add_validate_command(parser, context);
  add_capture_command(parser, context);
  add_fill_command(parser, context);
  add_document_commands(parser, context);
}

}  // namespace bubblesim::app
