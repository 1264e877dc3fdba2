#include "sim/store/merge_stores.hpp"

#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>

#include "sim/store/results_store.hpp"
#include "sim/store/store_schema.hpp"

namespace bubblesim::store {
namespace {

constexpr std::size_t kBatch = 100;

/// Less: comes first. Ends with what tells apart runs of one instant.
using Rank = std::tuple<int, std::int64_t, std::string, std::int64_t, std::string, std::string,
                        std::uint64_t, std::string>;

Rank rank_of(const RunRecord& run) {
  const bool done = run.status == RunStatus::kDone;
  return {done ? 0 : 1,
          done ? run.finished_unix_ns : -run.finished_unix_ns,
          run.host,
          to_ns(run.cpu),
          run.version,
          run.sweep,
          run.run.index,
          run.reason};
}

struct ChosenRun {
  Rank rank;
  std::string sweep;  ///< that stored it
  std::size_t store = 0;
};
using ChosenRuns = std::unordered_map<std::string, ChosenRun>;
using Stores = std::vector<std::unique_ptr<ResultsStore>>;

Result<ChosenRuns> choose(const Stores& stores) {
  ChosenRuns choices;
  for (std::size_t i = 0; i < stores.size(); ++i) {
    BUBBLESIM_RETURN_IF_ERROR(stores[i]->each_record([&](const RunRecord& run) {
      ChosenRun choice{rank_of(run), run.sweep, i};
      const auto [place, is_new] = choices.try_emplace(run.run.key, choice);
      if (!is_new && choice.rank < place->second.rank) place->second = std::move(choice);
    }));
  }
  return choices;
}

/// Where sweeps differ over a run, whatever the order of the inputs.
bool comes_first(const PlannedRun& a, const PlannedRun& b) {
  const auto rank = [](const PlannedRun& run) {
    return std::tuple(run.index, run.repetition, run.point,
                      settings_text_of(run.settings));
  };
  return rank(a) < rank(b);
}

/// What other sweeps say of runs than those under which they are chosen.
Result<void> merge_memberships(const Stores& stores, const ChosenRuns& choices, ResultsStore& out) {
  std::map<std::string, std::map<std::string, PlannedRun>> members;  // by sweep and key
  for (const auto& store : stores) {
    BUBBLESIM_RETURN_IF_ERROR(store->each_run({}, [&](const RunRecord& stored) {
      const auto choice = choices.find(stored.run.key);
      if (choice == choices.end() || choice->second.sweep == stored.sweep) return;
      PlannedRun run = stored.run;
      run.config.clear();
      const auto [place, is_new] = members[stored.sweep].try_emplace(run.key, run);
      if (!is_new && comes_first(run, place->second)) place->second = std::move(run);
    }));
  }
  for (const auto& [sweep, by_key] : members) {
    std::vector<PlannedRun> runs;
    for (const auto& [key, run] : by_key) runs.push_back(run);
    BUBBLESIM_RETURN_IF_ERROR(out.join(sweep, runs));
  }
  return {};
}

}  // namespace

Result<MergeCount> merge_stores(
    const std::vector<std::string>& inputs, const std::string& output,
    const std::function<void(std::uint64_t done, std::uint64_t all)>& progress) {
  Stores stores;
  for (const std::string& input : inputs) {
    BUBBLESIM_ASSIGN_OR_RETURN(auto store, open_store(input, StoreAccess::kRead));
    stores.push_back(std::move(store));
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const ChosenRuns choices, choose(stores));
  BUBBLESIM_ASSIGN_OR_RETURN(auto out, open_store(output, StoreAccess::kWrite));
  MergeCount count{choices.size(), 0};
  std::uint64_t read = 0;
  for (std::size_t i = 0; i < stores.size(); ++i) {
    std::vector<RunRecord> batch;
    Result<void> stored;
    const auto flush = [&] {
      const auto added = out->add(batch);
      batch.clear();
      if (!added) stored = tl::unexpected<Error>(added.error());
      if (added) count.stored += *added;
      if (progress) progress(read, choices.size());
    };
    BUBBLESIM_RETURN_IF_ERROR(stores[i]->each_record([&](const RunRecord& record) {
      const auto choice = choices.find(record.run.key);
      if (!stored || choice == choices.end() || choice->second.store != i) return;
      batch.push_back(record);
      ++read;
      if (batch.size() == kBatch) flush();
    }));
    if (stored && !batch.empty()) flush();
    BUBBLESIM_RETURN_IF_ERROR(stored);
  }
  BUBBLESIM_RETURN_IF_ERROR(merge_memberships(stores, choices, *out));
  return count;
}

}  // namespace bubblesim::store
