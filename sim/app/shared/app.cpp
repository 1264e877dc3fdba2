#include "sim/app/shared/app.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include <CLI/CLI.hpp>
#include <bubblesim_build.hpp>  // made by the configuration: scripts/cmake/features.cmake

#include "sim/base/input_file.hpp"
#include "sim/base/output_file.hpp"
#include "sim/base/utf8.hpp"
#include "sim/sweep/program_version.hpp"

namespace bubblesim::app {
namespace {

namespace fs = std::filesystem;
using FileId = std::pair<dev_t, ino_t>;

constexpr std::uintmax_t kMostOfConfig = 256 * 1024;  // larger files are traces, not configs
constexpr int kDepth = 4;  // question or sweep, its base, that one's cluster, its devices

std::optional<FileId> id_of(const fs::path& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return std::nullopt;
  return FileId{found.st_dev, found.st_ino};
}

/// The files that a command reads: those that its words name, the traces of folders, and what
/// configs and tables among them name.
class Inputs {
 public:
  void add(const fs::path& path, int depth = kDepth) {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) {
      insert(path / "view.json");
      if (const auto files = run::trace_files(path)) std::ranges::for_each(*files, insert_);
    } else if (insert(path) && depth > 0 && fs::file_size(path, ignored) <= kMostOfConfig) {
      add_named_in(path, depth - 1);
    }
  }
  [[nodiscard]] bool contains(const FileId& file) const { return files_.contains(file); }

 private:
  /// Whether it is a file that was not known yet.
  bool insert(const fs::path& path) {
    const auto id = id_of(path);
    return id && files_.insert(*id).second;
  }

  // Texts of JSON stand between quotes, cells of CSV between commas: both are cut there.
  void add_named_in(const fs::path& file, int depth) {
    const auto text = read_text_file(file.string());
    if (!text || text->find('\0') != std::string::npos) return;
    constexpr std::string_view kBetween = "\",\r\n";
    for (std::size_t from = 0; from < text->size();) {
      const std::size_t to = std::min(text->find_first_of(kBetween, from), text->size());
      const std::string word = text->substr(from, to - from);
      from = to + 1;
      std::error_code ignored;
      for (const fs::path& path : {file.parent_path() / word, fs::path(word)}) {
        // A folder's name alone may be any word.
        const bool folder = word.size() > 1 && word.find('/') != std::string::npos;
        if (word.empty() || (!folder && fs::is_directory(path, ignored))) continue;
        add(path, depth);
      }
    }
  }

  std::set<FileId> files_;
  std::function<void(const fs::path&)> insert_ = [this](const fs::path& path) { insert(path); };
};

/// How results of this program begin, that do not have its name in their head. Configs that it
/// writes are not among them: people edit those.
constexpr std::array<std::string_view, 20> kBeginnings{
    "\x89" "BTR\r\n", "SQLite format 3",
    "{\n  \"config\": ", "[\n{\n  \"config\": ", "{\n \"recorded_ranks\": ",
    "{\n \"rows\": [", "[\n{\"key\":", "{\n \"cells\": [",
    "config,seed,", "config,policy,policy_index,gpu,",
    "rank,record,index,kind,name,", "table,role,row,unit,", "table,role,subject,",
    "bundle,figure,", "bundle,request,", "job,kind,gpus,work,", "victim_class,victim_blocks,",
    "job,pass,op,kind,stream,", "role,config,policy,filler,metric,", "0F0,"};

/// Tables, pages and pictures.
constexpr std::array<std::string_view, 3> kSigns{
    "train kept", "--paper: #fff; --ink", "font-family=\"Inter,Helvetica,Arial,sans-serif\""};

bool made_here(const std::string& path) {
  std::string head(64 * 1024, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(in.gcount()));
  const auto begins = [&](std::string_view text) { return head.starts_with(text); };
  const auto has = [&](std::string_view text) { return head.find(text) != std::string::npos; };
  if (head.empty() || std::ranges::any_of(kBeginnings, begins)) return true;
  if (std::ranges::any_of(kSigns, has)) return true;
  const bool named = head[0] == '<' || head[0] == '.' ? has("bubblesim") : has("\"bubblesim");
  return named && (begins("<") || begins("{") || begins("[") || begins(".TH"));
}

// An option group is a command without a name, whose options are its parent's.
template <class Visit>
void each_given_option(const CLI::App& command, const Visit& visit) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() > 0 && option->get_items_expected_max() > 0) visit(*option);
  }
  for (const CLI::App* part : command.get_subcommands(nullptr)) {
    if (part->get_name().empty() || part->parsed()) each_given_option(*part, visit);
  }
}

bool is_forced(const CLI::App& command) {
  const CLI::Option* force = command.get_option_no_throw("--force");
  return force != nullptr && force->count() > 0;
}

}  // namespace

void OutputGuard::writes(CLI::App& command, const std::string& option, Files files) {
  if (command.get_option_no_throw("--force") == nullptr) {
    command.add_flag("--force")->description(
        "Replace files that are there, and that bubblesim did not make");
  }
  if (!files) {
    files = [](const std::string& value) { return std::vector<std::string>{value}; };
  }
  outputs_.push_back({&command, command.get_option(option), std::move(files)});
}

void OutputGuard::writes(CLI::App& command, std::initializer_list<const char*> options) {
  for (const char* option : options) writes(command, option);
}

Errors OutputGuard::faults(const CLI::App& program) const {
  Errors faults;
  std::optional<Inputs> inputs;  // found only where something is there to be overwritten
  for (const Output& output : outputs_) {
    if (!output.command->parsed()) continue;
    auto values = output.option->results();
    if (values.empty()) values.push_back(output.option->get_default_str());
    for (const std::string& file : output.files(values.back())) {
      const auto id = id_of(file);
      if (!id) continue;
      if (!inputs) {
        inputs.emplace();
        each_given_option(program, [&](const CLI::Option& given) {
          const auto same = [&](const Output& one) { return one.option == &given; };
          if (std::ranges::any_of(outputs_, same)) return;
          for (const std::string& value : given.results()) {
            inputs->add(value);
            inputs->add(value.substr(value.rfind('=') + 1));
          }
        });
      }
      if (inputs->contains(*id)) {
        faults.push_back({file, {}, "found a file that this command reads, which it would "
                                    "overwrite; expected another name"});
      } else if (!is_forced(*output.command) && !made_here(file)) {
        faults.push_back({file, {}, "is there already, and bubblesim did not make it; expected "
                                    "another name, or --force to replace it"});
      }
    }
  }
  return faults;
}

OutputGuard::Files files_named(std::vector<std::string> beginnings, std::string ending) {
  return [beginnings = std::move(beginnings), ending = std::move(ending)](const std::string& in) {
    std::vector<std::string> files;
    std::error_code fault;
    for (fs::recursive_directory_iterator entry(in, fault), end; !fault && entry != end;
         entry.increment(fault)) {
      const std::string name = entry->path().filename().string();
      const auto begins = [&](const std::string& text) { return name.starts_with(text); };
      if (name.ends_with(ending) && std::ranges::any_of(beginnings, begins)) {
        files.push_back(entry->path().string());
      }
    }
    return files;
  };
}

ProgressLine::ProgressLine() : terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::show(const std::string& text) {
  if (!terminal_) return;
  std::string line = text.substr(0, 78);
  const std::size_t used = line.size();
  if (used < width_) line.append(width_ - used, ' ');
  width_ = used;
  std::fprintf(stderr, "\r%s", line.c_str());
  std::fflush(stderr);
}

void ProgressLine::clear() {
  if (!terminal_ || width_ == 0) return;
  std::fprintf(stderr, "\r%s\r", std::string(width_, ' ').c_str());
  std::fflush(stderr);
  width_ = 0;
}

run::ProgressText ProgressLine::callback() {
  return [this](const std::string& text) { show(text); };
}

int report_faults(const Errors& faults) {
  for (const Error& fault : faults) {
    std::fprintf(stderr, "bubblesim: %s\n", escape_but_lines(fault.text()).c_str());
  }
  return kExitInputFault;
}

int report_fault(const Error& fault) { return report_faults({fault}); }

int reported(const ExitCode& done) { return done ? *done : report_faults(done.error()); }

int with_standard_output(int code) {
  std::cout.flush();
  const int reason = std::fflush(stdout) == 0 ? 0 : errno;
  if (std::ferror(stdout) == 0) return code;
  const std::string why = reason == 0 ? "" : std::string(": ") + std::strerror(reason);
  report_fault({"standard output", {}, "could not be written whole" + why});
  return code == kExitOk ? kExitInputFault : code;
}

Result<void> make_folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) return {};
  std::error_code fault;
  std::filesystem::create_directories(folder, fault);
  if (fault) return fail(folder.string(), {}, "cannot be made: " + fault.message());
  return {};
}

Result<void> write_output(const std::string& path, const std::string& text) {
  if (path.empty()) return {};
  BUBBLESIM_RETURN_IF_ERROR(make_folder_of(path));
  return write_whole_file(path, text);
}

Result<void> write_output(const std::string& path, const std::function<std::string()>& make_text) {
  return path.empty() ? Result<void>{} : write_output(path, make_text());
}

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,:+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char letter : word) quoted += letter == '\'' ? "'\\''" : std::string(1, letter);
  return quoted + "'";
}

std::size_t threads_of(std::size_t asked) {
  return asked > 0 ? asked : std::max(1U, std::thread::hardware_concurrency());
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    const std::size_t begin = part.find_first_not_of(' ');
    if (begin == std::string::npos) continue;
    parts.push_back(part.substr(begin, part.find_last_not_of(' ') - begin + 1));
  }
  return parts;
}

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

std::string version_text() {
  std::string text = "bubblesim " + sweep::program_version() + "\ncompiler: " BUBBLESIM_COMPILER;
  const auto add = [&text](const char* what, const std::string& names) {
    if (!names.empty()) text += std::string("\n") + what + ": " + names;
  };
  add("with", BUBBLESIM_WITH);
  add("without", BUBBLESIM_WITHOUT);
  return text;
}

void add_cluster_option(CLI::App& command, JobArguments& job) {
  command.add_option("--cluster", job.cluster,
                     "Of Chakra traces whose collectives have sizes and no times: the cluster to "
                     "simulate them on, rank n on its GPU n (bubblesim clusters, or a file)");
}

CheckedResult<run::LoadedTrace> load_job(const JobArguments& job, const AppContext& context) {
  ProgressLine progress;
  std::optional<std::string> cluster;
  if (!job.cluster.empty()) cluster = job.cluster;
  return run::load_trace_on(job.paths, cluster, context.config_folder + "/clusters",
                            progress.callback(), threads_of(0));
}

}  // namespace bubblesim::app
