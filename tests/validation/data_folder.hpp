// The files of the data folder (BUBBLESIM_DATA_DIR) that are recordings, and those that are the
// ranks of one job. Both follow from the folder's INDEX.tsv, so every test uses a job that is added
// there.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace bubblesim::validation {

namespace fs = std::filesystem;

/// A recorded job: the files that are read together.
struct RecordedJob {
  std::string name;                ///< of the file or folder, below the data folder
  std::vector<std::string> paths;  ///< one a rank

  /// For GoogleTest, which prints the parameter of a case.
  friend std::ostream& operator<<(std::ostream& out, const RecordedJob& job) {
    return out << job.name;
  }
};

/// What INDEX.tsv says of a recording.
struct IndexRow {
  std::string path;
  std::string kind;
  std::string gpu;
  std::string rank;   ///< empty: not known
  std::string world;  ///< empty: not known
};

// The cells of a line; columns that a line lacks are empty.
inline std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> cells;
  std::size_t begin = 0;
  while (true) {
    const std::size_t tab = line.find('\t', begin);
    cells.push_back(line.substr(begin, tab - begin));
    if (tab == std::string::npos) return cells;
    begin = tab + 1;
  }
}

// The rows of the index, by the names in its first line.
inline std::vector<IndexRow> index_of(const std::string& data_folder) {
  std::vector<IndexRow> rows;
  std::ifstream index(fs::path(data_folder) / "INDEX.tsv");
  std::string line;
  if (!std::getline(index, line)) return rows;
  const std::vector<std::string> names = cells(line);
  while (std::getline(index, line)) {
    const std::vector<std::string> values = cells(line);
    const auto cell = [&](const char* name) -> std::string {
      const auto column = std::find(names.begin(), names.end(), name) - names.begin();
      return static_cast<std::size_t>(column) < values.size() ? values[column] : std::string{};
    };
    rows.push_back({cell("path"), cell("kind"), cell("gpu"), cell("rank"), cell("world")});
  }
  return rows;
}

inline bool is_recording(const IndexRow& row) {
  return row.kind == "kineto" || row.kind == "nsys-sqlite";
}

inline bool is_named_as_recording(const std::string& name) {
  const auto ends = [&name](const char* ending) { return name.ends_with(ending); };
  return ends(".btr") || ends(".sqlite") || ends(".sqlite.gz") || ends(".pt.trace.json") ||
         ends(".pt.trace.json.gz");
}

inline std::string folder_of(const std::string& path) {
  return fs::path(path).parent_path().string();
}

inline RecordedJob by_itself(const std::string& data_folder, const std::string& path) {
  return {path, {(fs::path(data_folder) / path).string()}};
}

// Recordings of several ranks, by place, GPU and world size; each list in order of the names.
using Place = std::tuple<std::string, std::string, std::string>;
inline std::map<Place, std::vector<IndexRow>> places_of(const std::vector<IndexRow>& rows) {
  std::map<std::string, int> recordings;
  for (const IndexRow& row : rows) recordings[folder_of(row.path)] += is_recording(row) ? 1 : 0;
  std::map<Place, std::vector<IndexRow>> places;
  for (const IndexRow& row : rows) {
    if (!is_recording(row) || row.rank.empty() || row.world.empty() || row.world == "1") continue;
    std::string folder = folder_of(row.path);
    if (recordings[folder] == 1) folder = folder_of(folder);
    places[{folder, row.gpu, row.world}].push_back(row);
  }
  for (auto& [place, ranks] : places) {
    std::sort(ranks.begin(), ranks.end(),
              [](const IndexRow& a, const IndexRow& b) { return a.path < b.path; });
  }
  return places;
}

// The runs of one place: a rank that comes a second time begins the next.
inline std::vector<std::vector<std::string>> runs_of(const std::vector<IndexRow>& ranks) {
  std::vector<std::vector<std::string>> runs;
  std::set<std::string> seen;
  for (const IndexRow& rank : ranks) {
    if (runs.empty() || seen.contains(rank.rank)) {
      runs.emplace_back();
      seen.clear();
    }
    seen.insert(rank.rank);
    runs.back().push_back(rank.path);
  }
  return runs;
}

/// True if the folder and its index exist.
inline bool has_data(const std::string& data_folder) {
  return fs::exists(fs::path(data_folder) / "INDEX.tsv");
}

/// Every Kineto file of INDEX.tsv as a job of its own, in the order of the index.
inline std::vector<RecordedJob> single_files(const std::string& data_folder) {
  std::vector<RecordedJob> jobs;
  for (const IndexRow& row : index_of(data_folder)) {
    if (row.kind == "kineto") jobs.push_back(by_itself(data_folder, row.path));
  }
  return jobs;
}

/// Jobs of two ranks or more, in order of their names: recordings of the same GPU and world size
/// from one place. A place is a folder, or, where each rank has a folder of its own, the folder
/// above. Files are taken in order of name: a rank number that comes a second time begins the next
/// job of the place.
inline std::vector<RecordedJob> whole_jobs(const std::string& data_folder) {
  std::vector<RecordedJob> jobs;
  for (const auto& [place, ranks] : places_of(index_of(data_folder))) {
    const auto runs = runs_of(ranks);
    for (std::size_t run = 0; run < runs.size(); ++run) {
      if (runs[run].size() < 2) continue;
      RecordedJob job;
      job.name = std::get<0>(place);
      if (runs.size() > 1) job.name += ", run " + std::to_string(run + 1);
      for (const std::string& path : runs[run]) {
        job.paths.push_back((fs::path(data_folder) / path).string());
      }
      jobs.push_back(std::move(job));
    }
  }
  return jobs;
}

/// Every set of files that a user would read as one job, in order of name: the whole jobs; each
/// Kineto file and each Nsight report that is no rank of them; each file that the index does not
/// list and that has the name of a recording (.btr, .sqlite, .pt.trace.json, plain or .gz).
inline std::vector<RecordedJob> every_job(const std::string& data_folder) {
  std::vector<RecordedJob> jobs = whole_jobs(data_folder);
  std::set<std::string> ranks, listed;
  for (const RecordedJob& job : jobs) ranks.insert(job.paths.begin(), job.paths.end());
  for (const IndexRow& row : index_of(data_folder)) {
    listed.insert((fs::path(data_folder) / row.path).string());
    const RecordedJob job = by_itself(data_folder, row.path);
    if (is_recording(row) && !ranks.contains(job.paths.front())) jobs.push_back(job);
  }
  std::error_code fault;
  for (fs::recursive_directory_iterator it(data_folder, fault), end; !fault && it != end;
       it.increment(fault)) {
    const std::string path = it->path().string();
    if (listed.contains(path) || !is_named_as_recording(path)) continue;
    jobs.push_back(by_itself(data_folder, fs::relative(it->path(), data_folder).string()));
  }
  std::sort(jobs.begin(), jobs.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return jobs;
}

}  // namespace bubblesim::validation
