// Stores of results, for reading. bubblesim/_store.py makes of it what users see.
#include <fmt/ranges.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <set>

#include "sim/plugin/python/arrays.hpp"
#include "sim/plugin/python/bindings.hpp"
#include "sim/plugin/python/errors.hpp"
#include "sim/store/compare_policies.hpp"
#include "sim/store/results_store.hpp"

namespace bubblesim::plugin::python {
namespace {

/// Python's lock is kept while a store is read: a store is used from one thread at a time.
struct Store {
  std::unique_ptr<store::ResultsStore> store;
  std::string path;

  [[nodiscard]] store::ResultsStore& get() const {
    if (!store) throw py::value_error("the store is closed");
    return *store;
  }
};

std::unique_ptr<Store> open(const std::string& where) {
  auto opened = good(store::open_store(where, store::StoreAccess::kRead));
  return std::make_unique<Store>(Store{std::move(opened), where});
}

/// The filter, whose names are those of the store.
store::RowFilter filter_of(const Store& self, const py::dict& given) {
  store::RowFilter filter;
  filter.sweeps = given["sweeps"].cast<std::vector<std::string>>();
  filter.policies = given["policies"].cast<std::vector<std::string>>();
  filter.fillers = given["fillers"].cast<std::vector<std::string>>();
  filter.key = given["key"].cast<std::string>();
  for (const auto& [pointer, value] : given["settings"].cast<py::dict>()) {
    filter.settings.push_back({pointer.cast<std::string>(), value.cast<std::string>()});
  }
  good(self.get().check_names(filter));
  return filter;
}

/// A column a pointer, by name: "json", a list of JSON texts or None.
void add_settings(py::list& columns, const std::vector<const std::vector<store::Setting>*>& rows) {
  std::set<std::string> pointers;
  for (const auto* settings : rows) {
    for (const store::Setting& setting : *settings) pointers.insert(setting.pointer);
  }
  for (const std::string& pointer : pointers) {
    py::list values;
    for (const auto* settings : rows) {
      const auto found = std::find_if(settings->begin(), settings->end(), [&](const auto& setting) {
        return setting.pointer == pointer;
      });
      if (found == settings->end()) values.append(py::none());
      else values.append(found->value);
    }
    columns.append(py::make_tuple(pointer, "json", values, py::none()));
  }
}

/// A column of what `cell` gives of each row.
template <class Rows, class Cell>
py::tuple texts(const char* name, const Rows& rows, Cell cell) {
  py::list values;
  for (const auto& row : rows) values.append(cell(row));
  return text_column(name, std::move(values));
}

template <class Rows, class Cell>
py::tuple integers(const char* name, const Rows& rows, Cell cell) {
  std::vector<std::optional<std::int64_t>> values;
  for (const auto& row : rows) values.emplace_back(static_cast<std::int64_t>(cell(row)));
  return integer_column(name, values);
}

py::list results(const Store& self, const py::dict& given) {
  std::vector<store::StoredRow> rows;
  good(self.get().each_row(filter_of(self, given), [&](const auto& row) { rows.push_back(row); }));
  std::vector<const observe::ResultRow*> cells;
  std::vector<const std::vector<store::Setting>*> settings;
  for (const store::StoredRow& row : rows) {
    cells.push_back(&row.row);
    settings.push_back(&row.run.settings);
  }
  py::list columns = result_columns_of(cells);
  columns.append(texts("key", rows, [](const auto& row) { return row.run.key; }));
  columns.append(texts("sweep", rows, [](const auto& row) { return row.sweep; }));
  columns.append(integers("index", rows, [](const auto& row) { return row.run.index; }));
  columns.append(texts("point", rows, [](const auto& row) { return row.run.point; }));
  columns.append(integers("repetition", rows, [](const auto& row) { return row.run.repetition; }));
  add_settings(columns, settings);
  return columns;
}

py::list runs(const Store& self, const py::dict& given) {
  std::vector<store::RunRecord> rows;
  good(self.get().each_run(filter_of(self, given), [&](const auto& row) { rows.push_back(row); }));
  std::vector<const std::vector<store::Setting>*> settings;
  for (const store::RunRecord& row : rows) settings.push_back(&row.run.settings);
  py::list columns;
  columns.append(texts("key", rows, [](const auto& row) { return row.run.key; }));
  columns.append(texts("sweep", rows, [](const auto& row) { return row.sweep; }));
  columns.append(integers("index", rows, [](const auto& row) { return row.run.index; }));
  columns.append(texts("point", rows, [](const auto& row) { return row.run.point; }));
  columns.append(integers("seed", rows, [](const auto& row) { return row.run.seed; }));
  columns.append(integers("repetition", rows, [](const auto& row) { return row.run.repetition; }));
  columns.append(texts("status", rows, [](const auto& row) {
    return row.status == store::RunStatus::kDone ? "done" : "failed";
  }));
  columns.append(texts("reason", rows, [](const auto& row) { return row.reason; }));
  columns.append(texts("host", rows, [](const auto& row) { return row.host; }));
  columns.append(texts("version", rows, [](const auto& row) { return row.version; }));
  columns.append(integers("finished_unix_ns", rows, [](const auto& row) {
    return row.finished_unix_ns;
  }));
  columns.append(integers("cpu_ns", rows, [](const auto& row) { return to_ns(row.cpu); }));
  add_settings(columns, settings);
  return columns;
}

/// (key, policy, filler, their numbers) of the rows that may have latencies.
py::list places(const Store& self, const py::dict& given) {
  py::list list;
  const std::size_t policy = good(store::find_column("policy"));
  const std::size_t filler = good(store::find_column("filler"));
  good(self.get().each_row(filter_of(self, given), [&](const store::StoredRow& row) {
    const auto* name = std::get_if<std::string>(&row.row.cells[filler]);
    if (name == nullptr) return;
    const auto* policy_name = std::get_if<std::string>(&row.row.cells[policy]);
    list.append(py::make_tuple(row.run.key, policy_name == nullptr ? "" : *policy_name, *name,
                               row.row.policy, row.row.filler));
  }));
  return list;
}

/// (key, config as JSON) of the first two runs whose keys begin with `key`.
py::list configs_of(const Store& self, const std::string& key) {
  store::RowFilter filter;
  filter.key = key;
  py::list found;
  good(self.get().each_run(filter, [&](const store::RunRecord& run) {
    if (found.size() < 2) found.append(py::make_tuple(run.run.key, run.run.config));
  }));
  return found;
}

py::dict compare(const Store& self, const py::dict& given, std::vector<std::string> metrics,
                 const std::string& baseline, bool by_point, double confidence) {
  store::CompareOptions options;
  options.metrics = std::move(metrics);
  options.baseline = baseline;
  options.confidence = confidence;
  options.filter = filter_of(self, given);
  if (by_point) options.group = store::ComparisonGroup::kPoint;
  const store::Comparison compared = good(store::compare_policies(self.get(), options));
  py::list lines;
  for (const store::PolicyComparison& line : compared.lines) {
    py::dict point;
    for (const store::Setting& setting : line.point)
      point[py::str(setting.pointer)] = setting.value;
    py::dict entry;
    entry["metric"] = line.metric;
    entry["filler"] = line.filler;
    entry["point"] = point;
    entry["policy"] = line.policy;
    entry["pairs"] = line.pairs;
    entry["mean"] = line.mean;
    entry["baseline_mean"] = line.baseline_mean;
    entry["difference"] = line.difference;
    entry["half_width"] = line.half_width;
    entry["unpaired"] = line.unpaired;
    entry["lower_bounds"] = line.lower_bounds;
    entry["overloaded"] = line.overloaded;
    entry["losses"] = fmt::format("{}", fmt::join(line.losses, "; "));
    lines.append(entry);
  }
  py::dict result;
  result["baseline"] = compared.baseline;
  result["confidence"] = compared.confidence;
  result["lines"] = lines;
  return result;
}

}  // namespace

void bind_store(py::module_& module) {
  py::class_<Store>(module, "StoreFile")
      .def_readonly("path", &Store::path)
      .def("results", &results)
      .def("runs", &runs)
      .def("places", &places)
      .def("configs", &configs_of)
      .def("latency", [](const Store& self, const std::string& key, std::uint32_t policy,
                         std::uint32_t filler) {
        return good(self.get().latency(key, policy, filler));
      })
      .def("compare", &compare)
      .def("check", [](const Store& self) { good(self.get().check()); })
      .def("close", [](Store& self) { self.store.reset(); });
  module.def("read_store", &open);
}

}  // namespace bubblesim::plugin::python
