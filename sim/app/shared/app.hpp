// The command line program `bubblesim`: the only place that prints and exits, and that knows all
// policies. Each command has a file and adds itself to the parser.
//
// Exit codes: 0 done; 1 a result that must not be trusted (a counter of severity error); 2 an
// input fault (command line, config, trace, store); of sweeps: 3 runs failed; 130 stopped by a
// signal.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/run/load_trace.hpp"

namespace CLI {
class App;
class Option;
}

namespace bubblesim::app {

// Guards all files that commands write: a file that the command reads is never overwritten, and a
// file that this program did not make only with --force. It checks before the command starts, so
// that a refusal costs nothing.
class OutputGuard {
 public:
  /// The files that are written if the option has this value.
  using Files = std::function<std::vector<std::string>(const std::string& value)>;

  /// Declares that this option's value is an output of its command: one file, or `files`. The
  /// command gets --force.
  void writes(CLI::App& command, const std::string& option, Files files = {});
  /// The same of several options, each of one file.
  void writes(CLI::App& command, std::initializer_list<const char*> options);

  /// Faults of the outputs of the parsed commands; with --force only outputs that are also read are
  /// faults.
  [[nodiscard]] Errors faults(const CLI::App& program) const;

 private:
  struct Output {
    const CLI::App* command;
    const CLI::Option* option;
    Files files;
  };
  std::vector<Output> outputs_;
};

/// A folder's files, at any depth, whose names begin and end with these.
[[nodiscard]] OutputGuard::Files files_named(std::vector<std::string> beginnings,
                                             std::string ending);

inline constexpr int kExitOk = 0;
inline constexpr int kExitUntrusted = 1;
inline constexpr int kExitInputFault = 2;
inline constexpr int kExitRunsFailed = 3;
inline constexpr int kExitInterrupted = 130;

/// What every command is given.
struct AppContext {
  policy::Registry policies;
  std::string config_folder;   ///< holds devices/
  std::vector<std::string> policy_folders;  ///< where libraries of policies are looked for by name
  std::vector<std::string> policy_libraries;  ///< that the command's option names
  std::map<std::string, std::string> policy_files;  ///< the library of each policy from one
  std::string command_line;    ///< as typed, words quoted for a shell, "bubblesim" first
  OutputGuard outputs;         ///< of all commands
  int exit_code = kExitOk;     ///< of the command that ran

  [[nodiscard]] std::string device_folder() const { return config_folder + "/devices"; }
};

/// One line on a terminal, rewritten as work goes on; silent if stderr is no terminal.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const std::string& text);
  void clear();
  [[nodiscard]] bool on_terminal() const { return terminal_; }
  /// The function that libraries call; borrows the line.
  [[nodiscard]] run::ProgressText callback();

 private:
  bool terminal_;
  std::size_t width_ = 0;
};

/// The end of a command: its exit code, or the faults that stopped it.
using ExitCode = CheckedResult<int>;

/// Prints faults to stderr, one a line, and returns kExitInputFault.
int report_faults(const Errors& faults);
int report_fault(const Error& fault);
/// The exit code; for faults, that of report_faults().
[[nodiscard]] int reported(const ExitCode& done);

/// Returns the exit code of a program that would exit with `code`: another one, with a message, if
/// its output could not all be written (a full disk). Call once, at the end.
[[nodiscard]] int with_standard_output(int code);

/// Makes the folder of `path`, if missing.
[[nodiscard]] Result<void> make_folder_of(const std::string& path);

/// Makes the folder and writes the output that an option asked for, whole or not at all. No path:
/// the option was not given, nothing is made nor written.
[[nodiscard]] Result<void> write_output(const std::string& path, const std::string& text);
[[nodiscard]] Result<void> write_output(const std::string& path,
                                        const std::function<std::string()>& make_text);

/// The text as a shell reads it back as one word: with quotes if it needs them.
[[nodiscard]] std::string shell_word(const std::string& word);

/// `asked`, or the number of cores if it is 0.
[[nodiscard]] std::size_t threads_of(std::size_t asked);

/// "a,b , c" as {"a", "b", "c"}.
[[nodiscard]] std::vector<std::string> split_list(const std::string& text);

/// `bubblesim report STORE -o OUTPUT`.
[[nodiscard]] ExitCode report_store(const std::string& store, const std::string& output,
                                    AppContext& context);

void add_import_command(CLI::App& parser, AppContext& context);
void add_inspect_command(CLI::App& parser, AppContext& context);
void add_run_command(CLI::App& parser, AppContext& context);
void add_advise_command(CLI::App& parser, AppContext& context);
void add_measure_command(CLI::App& parser, AppContext& context);
void add_export_command(CLI::App& parser, AppContext& context);
void add_retarget_command(CLI::App& parser, AppContext& context);
void add_synth_command(CLI::App& parser, AppContext& context);
void add_synth_inference_command(CLI::App& parser, AppContext& context);
void add_synth_list_commands(CLI::App& parser, AppContext& context);
void add_schedule_command(CLI::App& parser, AppContext& context);
void add_new_policy_command(CLI::App& parser, AppContext& context);
void add_list_commands(CLI::App& parser, AppContext& context);
void add_schema_command(CLI::App& parser, AppContext& context);
void add_sweep_command(CLI::App& parser, AppContext& context);
void add_results_command(CLI::App& parser, AppContext& context);
void add_report_command(CLI::App& parser, AppContext& context);
void add_view_command(CLI::App& parser, AppContext& context);
void add_validate_command(CLI::App& parser, AppContext& context);
void add_capture_command(CLI::App& parser, AppContext& context);
void add_calibrate_command(CLI::App& parser, AppContext& context);
void add_fill_command(CLI::App& parser, AppContext& context);
/// Adds help and describe, which show all commands of the parser when they run.
void add_document_commands(CLI::App& parser, AppContext& context);

/// Prints to standard output.
void print(const std::string& text);

// The text of `bubblesim --version`.

/// Lines: release and commit, compiler and kind of build, optional parts that it has and lacks.
[[nodiscard]] std::string version_text();

// The job that a command reads: its traces, their missing parts, and the cluster to simulate it on.

/// A job's traces, as a command line names them.
struct JobArguments {
  std::vector<std::string> paths;
  std::string cluster;  ///< cluster of collectives without times; empty: none
};

/// Declares --cluster of a command that reads traces of any format.
void add_cluster_option(CLI::App& command, JobArguments& job);

/// Reads them with a progress line, on every core. Fault: a cluster that no collective needs.
[[nodiscard]] CheckedResult<run::LoadedTrace> load_job(const JobArguments& job,
                                                       const AppContext& context);

void add_commands(CLI::App& parser, AppContext& context);

}  // namespace bubblesim::app
