#include "sim/advise/fleet/fleet_files.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "sim/base/json.hpp"

namespace bubblesim::advise {
namespace {

using ::testing::HasSubstr;

class FleetFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_ / "traces");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& text) const {
    const std::string path = (folder_ / "table.csv").string();
    std::ofstream(path) << text;
    return path;
  }

  std::filesystem::path folder_;
};

template <class Rows>
std::string faults_of(const CheckedResult<Rows>& read) {
  std::string text;
  if (!read) {
    for (const Error& fault : read.error()) text += fault.text() + "\n";
  }
  return text;
}

TEST_F(FleetFiles, jobs_are_traces_or_plans) {
  const auto jobs = read_fleet_jobs(write(
      "job,hours,gpus,trace,model,plan,cluster,memory\n"
      "a,30,64,traces,,,,24GB\n"
      "b,0.5,,,gpt2-large,pp-4-1f1b,a100-40gb-4,\n"));
  ASSERT_TRUE(jobs) << faults_of(jobs);
  ASSERT_EQ(jobs->size(), 2U);
  EXPECT_EQ((*jobs)[0].gpus, 64);
  const Json traced = Json::parse((*jobs)[0].training);
  EXPECT_EQ(traced["trace"][0], (folder_ / "traces").string());
  EXPECT_EQ(traced["memory"], "24GB");
  EXPECT_FALSE((*jobs)[1].gpus);
  EXPECT_EQ(Json::parse((*jobs)[1].training)["synth"]["plan"], "pp-4-1f1b");
}

// Spreadsheets begin a file with a byte order mark.
TEST_F(FleetFiles, a_byte_order_mark_is_no_part_of_the_first_column) {
  const auto jobs = read_fleet_jobs(write("\xEF\xBB\xBFjob,hours,trace\na,30,traces\n"));
  ASSERT_TRUE(jobs) << faults_of(jobs);
  EXPECT_EQ((*jobs)[0].name, "a");
}

TEST_F(FleetFiles, work_has_a_program_and_perhaps_an_end) {
  const auto work = read_fill_work(write(
      "work,trace,model,batch,output_tokens,prompt_tokens,requests,weight\n"
      "embed,traces,,,,,5000,\n"
      "chat,,llama-68m,8,64,128,,2\n"));
  ASSERT_TRUE(work) << faults_of(work);
  EXPECT_EQ((*work)[0].requests, 5000);
  EXPECT_EQ((*work)[0].weight, 1);
  EXPECT_EQ((*work)[1].weight, 2);
  const Json filler = Json::parse((*work)[1].filler);
  EXPECT_EQ(filler["mode"], "offline");
  EXPECT_EQ(filler["program"]["prompt_tokens"], 128);
  EXPECT_FALSE((*work)[1].requests);
}

TEST_F(FleetFiles, all_faults_are_told_by_their_lines) {
  const std::string text = faults_of(read_fleet_jobs(write(
      "job,hours,gpu,trace,model\n"
      "a,-1,2,traces,\n"
      "a,3,2,traces,gpt2-large\n"
      "b,,2,elsewhere,\n")));
  EXPECT_THAT(text, HasSubstr("unknown column \"gpu\"; did you mean \"gpus\"?"));
  EXPECT_THAT(text, HasSubstr("a number above 0"));
  EXPECT_THAT(text, HasSubstr("a name of its own"));
  EXPECT_THAT(text, HasSubstr("either a trace, or a model"));
  EXPECT_THAT(text, HasSubstr("a file or folder that exists"));
  EXPECT_THAT(faults_of(read_fleet_jobs(write("job,trace\na,traces\n"))), HasSubstr("hours"));
  EXPECT_THAT(faults_of(read_fill_work(write("work,trace,model\nx,,\n"))),
              HasSubstr("either a trace or a model"));
  EXPECT_THAT(faults_of(read_fill_work(write(""))), HasSubstr("is empty"));
}

TEST_F(FleetFiles, what_only_a_model_has_is_a_fault_beside_a_trace) {
  const std::string jobs = faults_of(read_fleet_jobs(write(
      "job,hours,trace,model,plan,cluster\n"
      "a,24,traces,,pp-4-1f1b,nonsense\n")));
  EXPECT_THAT(jobs, HasSubstr("table.csv: line 2: plan: found \"pp-4-1f1b\"; expected nothing, as "
                              "there is a trace"));
  EXPECT_THAT(jobs, HasSubstr("line 2: cluster: found \"nonsense\""));
  const std::string work = faults_of(read_fill_work(write(
      "work,trace,model,batch,prompt_tokens,output_tokens\n"
      "e,traces,,8,128,64\n")));
  for (const char* column : {"batch: ", "prompt_tokens: ", "output_tokens: "}) {
    EXPECT_THAT(work, HasSubstr(std::string("line 2: ") + column));
  }
}

TEST_F(FleetFiles, memory_is_a_size) {
  EXPECT_THAT(faults_of(read_fleet_jobs(write("job,hours,trace,memory\na,24,traces,24\n"))),
              HasSubstr("table.csv: line 2: memory: found \"24\": it has no unit"));
  EXPECT_THAT(faults_of(read_fill_work(write("work,trace,memory\ne,traces,0GB\n"))),
              HasSubstr("memory: found \"0GB\"; expected more than that"));
}

}  // namespace
}  // namespace bubblesim::advise
