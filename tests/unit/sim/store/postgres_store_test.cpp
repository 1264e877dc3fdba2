// The store in PostgreSQL, against a real server: what every store does, and faults of servers.
// One process for all cases, so that one server serves them.
#include <gmock/gmock.h>

#include "tests/unit/sim/store/postgres_server.hpp"
#include "tests/unit/sim/store/sample_record.hpp"
#include "tests/unit/sim/store/store_cases.hpp"

namespace bubblesim::store {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Started by the first case that asks, stopped after the last.
class Server final : public testing::Environment {
 public:
  void TearDown() override { server_.reset(); }
  PostgresServer* get(std::string& why_not) {
    if (!server_ && reason_.empty()) server_ = PostgresServer::start(reason_);
    why_not = reason_;
    return server_.get();
  }

 private:
  std::unique_ptr<PostgresServer> server_;
  std::string reason_;
};

auto* const server = static_cast<Server*>(testing::AddGlobalTestEnvironment(new Server));

class Database final : public StorePlace {
 public:
  explicit Database(std::string where) : where_(std::move(where)) {}
  [[nodiscard]] std::string where() const override { return where_; }

 private:
  std::string where_;
};

std::unique_ptr<StorePlace> make_place(std::string& why_not) {
  PostgresServer* const running = server->get(why_not);
  return running ? std::make_unique<Database>(running->new_database()) : nullptr;
}

INSTANTIATE_TEST_SUITE_P(Postgres, StoreCases,
                         testing::Values(StoreBackend{"postgres", make_place}));

class PostgresStore : public testing::Test {
 protected:
  void SetUp() override {
    std::string why_not;
    running_ = server->get(why_not);
    if (!running_) GTEST_SKIP() << why_not;
    where_ = running_->new_database();
  }
  [[nodiscard]] std::string fault(const std::string& where) const {
    const auto store = open_store(where, StoreAccess::kWrite);
    return store ? "opened" : store.error().text();
  }

  PostgresServer* running_ = nullptr;
  std::string where_;
};

TEST_F(PostgresStore, FaultsNameTheServerAndNeverThePassword) {
  const std::string text = fault("postgresql://someone:secret@/nowhere?host=/nonexistent");
  EXPECT_THAT(text, AllOf(HasSubstr("/nonexistent"), HasSubstr("cannot be reached")));
  EXPECT_THAT(text, Not(HasSubstr("secret")));
  EXPECT_THAT(fault("postgresql://a:secret@b:port/c?d=e"),
              AllOf(HasSubstr("is no connection string"), Not(HasSubstr("secret"))));
  std::string missing = where_;
  missing.replace(missing.find("/results"), 8, "/missing");
  EXPECT_THAT(fault(missing), AllOf(HasSubstr("does not exist"), Not(HasSubstr("secret"))));
}

TEST_F(PostgresStore, AReaderOfAnEmptyDatabaseIsToldThatItIsNoStore) {
  const auto store = open_store(where_, StoreAccess::kRead);
  ASSERT_FALSE(store);
  EXPECT_THAT(store.error().text(), HasSubstr("is no results store"));
}

TEST_F(PostgresStore, ANewerVersionIsRefused) {
  ASSERT_TRUE(open_store(where_, StoreAccess::kWrite));
  EXPECT_EQ(running_->sql(where_, "UPDATE meta SET value = '9' WHERE name = 'schema_version'"),
            "");
  EXPECT_THAT(fault(where_), AllOf(HasSubstr("newer bubblesim"), HasSubstr("version 9")));
}

TEST_F(PostgresStore, OtherProgramsReadTheView) {
  const RunRecord record = sample_record(4);
  ASSERT_TRUE((*open_store(where_, StoreAccess::kWrite))->add({&record, 1}));
  EXPECT_EQ(running_->sql(where_, "SELECT policy, plan_index FROM results ORDER BY policy"),
            "exclusive|4\nmps|4\n");
}

TEST_F(PostgresStore, AChangedValueIsFoundByTheCheck) {
  const RunRecord record = sample_record(4);
  const auto store = open_store(where_, StoreAccess::kWrite);
  ASSERT_TRUE((*store)->add({&record, 1}));
  EXPECT_TRUE((*store)->check());
  EXPECT_EQ(running_->sql(where_, "UPDATE rows SET events = events + 1"), "");
  const auto found = (*store)->check();
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().text(), HasSubstr("check sum"));
}

TEST_F(PostgresStore, TextsThatItCannotHoldAreRefusedAndTheStoreGoesOn) {
  RunRecord record = sample_record(4);
  record.run.config = std::string("a\0b", 3);
  const auto store = open_store(where_, StoreAccess::kWrite);
  const auto added = (*store)->add({&record, 1});
  ASSERT_FALSE(added);
  EXPECT_THAT(added.error().text(), HasSubstr("NUL"));
  record.run.config = "\xFF";
  EXPECT_FALSE((*store)->add({&record, 1}));
  record.run.config = "{}";
  EXPECT_EQ((*store)->add({&record, 1}).value_or(9), 1U);
}

TEST_F(PostgresStore, ALostServerIsAFaultThatSaysWhatIsKept) {
  const RunRecord record = sample_record(4);
  const auto store = open_store(where_, StoreAccess::kWrite);
  const auto pid = running_->sql(where_, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                                         "WHERE application_name = 'bubblesim'");
  const auto added = (*store)->add({&record, 1});
  ASSERT_FALSE(added);
  EXPECT_THAT(added.error().text(), HasSubstr("what was stored before is kept"));
}

}  // namespace
}  // namespace bubblesim::store
