// A bundle of two requests, written into a folder of its own.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "sim/base/output_file.hpp"
#include "sim/base/scratch_folder.hpp"

namespace bubblesim::validate::test {

inline std::string request_line(const std::string& id, int prompt, int output, double arrival,
                                double first, double last) {
  return "{\"request_id\": \"" + id + "\", \"input_toks\": " + std::to_string(prompt) +
         ", \"output_toks\": " + std::to_string(output) +
         ", \"arrival_time\": " + std::to_string(1000 + arrival) +
         ", \"queued_ts\": " + std::to_string(arrival) +
         ", \"first_token_ts\": " + std::to_string(first) +
         ", \"last_token_ts\": " + std::to_string(last) + "}\n";
}

class SmallBundle {
 public:
  SmallBundle() {
    auto folder = ScratchFolder::make(::testing::TempDir(), "bundle");
    EXPECT_TRUE(folder);
    folder_ = std::move(*folder);
    put("config.json",
        R"({"link_bw": 16, "link_latency": 2000,
            "nodes": [{"instances": [{"hardware": "RTX4090"}]}]})");
    put("vllm/meta.json", meta(""));
    put("vllm/requests.jsonl",
        request_line("b", 300, 3, 2, 2.5, 2.7) + request_line("a", 100, 1, 1, 1.25, 1.25));
  }

  static std::string meta(const std::string& more) {
    return R"({"model": "meta-llama/Llama-3.1-8B", "vllm_version": "0.19.0", "engine_kwargs": )"
           R"({"max_num_seqs": 8, "max_num_batched_tokens": 512, "max_model_len": 4096})" +
           more + "}";
  }

  void put(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = std::filesystem::path(path()) / name;
    std::filesystem::create_directories(file.parent_path());
    EXPECT_TRUE(write_whole_file(file.string(), text));
  }

  [[nodiscard]] std::string path() const { return folder_->path(); }

 private:
  std::unique_ptr<ScratchFolder> folder_;
};

}  // namespace bubblesim::validate::test
