// The store in a file: what every store does, and faults of files.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <set>

#include "tests/fault.hpp"
#include "tests/temp_folder.hpp"
#include "tests/unit/sim/store/sample_record.hpp"
#include "tests/unit/sim/store/store_cases.hpp"

namespace bubblesim::store {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Folder final : public StorePlace {
 public:
  [[nodiscard]] std::string where() const override { return folder_.path("results.db"); }
  [[nodiscard]] fs::path folder() const { return folder_.path(); }

 private:
  TempFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Sqlite, StoreCases, testing::Values(StoreBackend{
    "sqlite", [](std::string&) { return std::make_unique<Folder>(); }}));

std::string fault_of(const std::string& where, StoreAccess access) {
  const auto store = open_store(where, access);
  return store ? "opened" : store.error().text();
}

void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A closed store of so many runs.
void fill(const std::string& where, std::uint64_t runs) {
  const auto store = must(open_store(where, StoreAccess::kWrite));
  ASSERT_TRUE(store->add(sample_records(0, runs)));
}

/// Key and all cells of every row, a text a row; nothing: the store says that it is damaged.
std::optional<std::set<std::string>> rows_of(const std::string& where) {
  const auto store = open_store(where, StoreAccess::kRead);
  if (!store) return std::nullopt;
  std::set<std::string> rows;
  const auto read = (*store)->each_row({}, [&](const StoredRow& row) {
    std::string text = row.run.key + " " + row.sweep + " " + std::to_string(row.run.index);
    for (const observe::Cell& cell : row.row.cells) {
      std::visit([&text](const auto& value) {
        if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>) {
          text += " " + std::to_string(value);
        } else if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
          text += " " + value;
        }
      }, cell);
    }
    rows.insert(std::move(text));
  });
  return read ? std::optional(rows) : std::nullopt;
}

/// The status of a child process that does this and exits with its result.
int status_of_child(const std::function<int()>& act) {
  const pid_t child = fork();
  if (child == 0) _exit(act());
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

struct SqliteStore : testing::Test { const Folder place; };

// One bit of the file is another, 150 times: rows are as they were stored, or there are none.
TEST_F(SqliteStore, GivesNoRowThatWasNotStored) {
  fill(place.where(), 20);
  const std::string whole = read(place.where());
  const auto expected = must(rows_of(place.where()));
  std::mt19937_64 random(54);
  std::size_t refused = 0;
  for (int flip = 0; flip < 150; ++flip) {
    const std::size_t bit = random() % (whole.size() * 8);
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    write(place.where(), damaged);
    const auto rows = rows_of(place.where());
    refused += rows ? 0 : 1;
    EXPECT_TRUE(!rows || std::ranges::includes(expected, *rows)) << "bit " << bit;
  }
  EXPECT_GT(refused, 30U);
}

TEST_F(SqliteStore, WhoseFileIsGoneOrAnotherOneIsNotAddedTo) {
  for (const bool replaced : {false, true}) {
    const Folder one;
    fill(one.where(), 1);
    const auto store = must(open_store(one.where(), StoreAccess::kWrite));
    EXPECT_FALSE(store->is_gone());
    fs::remove(one.where());
    if (replaced) write(one.where(), "another file");
    EXPECT_TRUE(store->is_gone());
    const auto added = error_of(store->add(sample_records(1, 2)));
    EXPECT_THAT(added.text(), HasSubstr("was deleted, moved or replaced"));
    std::size_t kept = 0;
    EXPECT_TRUE(store->each_record([&kept](const RunRecord&) { ++kept; }));
    EXPECT_EQ(kept, 1U);
  }
}

TEST_F(SqliteStore, IsOneFileWhenItIsClosed) {
  fill(place.where(), 3);
  ASSERT_TRUE(open_store(place.where(), StoreAccess::kRead));
  EXPECT_EQ(std::distance(fs::directory_iterator(place.folder()), fs::directory_iterator()), 1);
}

TEST_F(SqliteStore, WhatIsNoStoreIsRefusedAndLeftAsItIs) {
  const std::string where = place.where();
  EXPECT_THAT(fault_of(where, StoreAccess::kRead), HasSubstr("found no such results store"));
  EXPECT_FALSE(fs::exists(where));
  EXPECT_THAT(fault_of((place.folder() / "no/results.db").string(), StoreAccess::kWrite),
              HasSubstr("found no folder"));
  EXPECT_THAT(fault_of(place.folder().string(), StoreAccess::kWrite), HasSubstr("found a folder"));
  EXPECT_THAT(fault_of("mysql://host/db", StoreAccess::kWrite), HasSubstr("no kind of store"));
  for (const StoreAccess access : {StoreAccess::kRead, StoreAccess::kWrite}) {
    const std::string text(4096, 'x');
    write(where, text);
    EXPECT_THAT(fault_of(where, access), HasSubstr("found no SQLite file"));
    EXPECT_EQ(read(where), text);
  }
  write(where, "");
  EXPECT_THAT(fault_of(where, StoreAccess::kRead), HasSubstr("found an empty file"));
  EXPECT_EQ(fault_of(where, StoreAccess::kWrite), "opened");
}

TEST_F(SqliteStore, ACutFileIsNamedAsDamaged) {
  fill(place.where(), 50);
  const auto size = fs::file_size(place.where());
  fs::resize_file(place.where(), size / 2);
  EXPECT_THAT(fault_of(place.where(), StoreAccess::kRead), HasSubstr("is damaged"));
  EXPECT_THAT(fault_of(place.where(), StoreAccess::kWrite), HasSubstr("is damaged"));
  EXPECT_EQ(fs::file_size(place.where()), size / 2);
}

TEST_F(SqliteStore, EveryFlippedByteIsFoundByTheCheckOrChangesNothing) {
  fill(place.where(), 4);
  const std::string whole = read(place.where());
  const auto content_of = [](ResultsStore& store) {
    std::vector<RunRecord> records;
    EXPECT_TRUE(store.each_record([&](const RunRecord& record) { records.push_back(record); }));
    return records;
  };
  const auto before = content_of(**open_store(place.where(), StoreAccess::kRead));
  std::size_t found = 0;
  for (std::size_t at = 0; at < whole.size(); at += 211) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    write(place.where(), flipped);
    const auto store = open_store(place.where(), StoreAccess::kRead);
    if (!store || !(*store)->check()) {
      ++found;
      continue;
    }
    EXPECT_EQ(content_of(**store), before) << "byte " << at;
  }
  EXPECT_GT(found, 0U);
}

TEST_F(SqliteStore, AFullDiskKeepsWhatWasStored) {
  fill(place.where(), 20);
  const int status = status_of_child([this] {
    std::signal(SIGXFSZ, SIG_IGN);
    auto store = open_store(place.where(), StoreAccess::kWrite);
    // Files may grow to no more than 64 KiB above what the store has.
    const auto limit = fs::file_size(place.where()) + 65'536;
    const rlimit files{limit, limit};
    setrlimit(RLIMIT_FSIZE, &files);
    Result<std::size_t> added = std::size_t{0};
    for (std::uint64_t i = 20; added && i < 2000; i += 20) {
      added = (*store)->add(sample_records(i, i + 20));
    }
    if (added) return 1;
    const std::string text = added.error().text();
    if (text.find("what was stored before is kept") == std::string::npos) return 2;
    // Goes on where there is room again: the store is as it was after the last add().
    return (*store)->done() ? 0 : 3;
  });
  EXPECT_EQ(status, 0);
  const auto store = must(open_store(place.where(), StoreAccess::kWrite));
  const std::size_t kept = store->done().value().size();
  EXPECT_GE(kept, 20U);
  EXPECT_EQ(kept % 20, 0U) << "whole batches";
  EXPECT_TRUE(store->check());
  EXPECT_TRUE(store->add(sample_records(3000, 3001)));
}

TEST_F(SqliteStore, AKilledWriterLosesNothingThatWasAdded) {
  const int status = status_of_child([this] {
    auto store = open_store(place.where(), StoreAccess::kWrite);
    return (*store)->add(sample_records(0, 30)) ? raise(SIGKILL) : 1;
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  const auto store = must(open_store(place.where(), StoreAccess::kRead));
  EXPECT_EQ(store->done().value().size(), 30U);
}

TEST_F(SqliteStore, AFileThatMayNotBeWrittenIsReadAndNotWritten) {
  fill(place.where(), 2);
  fs::permissions(place.where(), fs::perms(0444));
  fs::permissions(place.folder(), fs::perms(0555));
  const int status = status_of_child([this] {
    if (geteuid() == 0 && setuid(65534) != 0) return 4;  // root may write everything
    const auto reader = open_store(place.where(), StoreAccess::kRead);
    if (!reader || (*reader)->done().value().size() != 2) return 1;
    const std::string fault = fault_of(place.where(), StoreAccess::kWrite);
    return fault.find("may not be written") == std::string::npos ? 2 : 0;
  });
  EXPECT_EQ(status, 0);
  fs::permissions(place.folder(), fs::perms(0755));
}

}  // namespace
}  // namespace bubblesim::store
