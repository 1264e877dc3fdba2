// How tables call jobs, systems and devices: which characters of a name count, whether a name
// stands in a sentence, and the batch sizes that a sentence gives. Letters and digits are ASCII's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bubblesim::validate {

[[nodiscard]] bool is_digit(char c);
[[nodiscard]] bool is_letter(char c);
[[nodiscard]] std::string in_lower_case(std::string_view text);

/// What of a name counts: its letters in lower case and its digits, with a dash between two numbers
/// that follow each other. "ResNet-50, batch 64" is "resnet50 batch 64"; "Llama-2-7B" is not
/// "Llama-27B".
[[nodiscard]] std::string letters_of(std::string_view name);

/// Whether `name` is a part of `words` beside which no word and no number goes on: "batch 1" is in
/// "net batch 1 (TensorRT)", but neither in "batch 16" nor in "batch 1.5"; "BERT" is neither in
/// "DistilBERT" nor in "Tiny-BERT".
[[nodiscard]] bool is_within(std::string_view name, std::string_view words);

/// The different batch sizes in `words`, in their order: "batch 16", "batch=16", "batch-size 16",
/// "bs16", "b=16". "b16" is none: models are called so (EfficientNet-B7).
[[nodiscard]] std::vector<std::uint32_t> batches_in(std::string_view words);

/// `words` with "batch N" in place of each batch size N, however it is written.
[[nodiscard]] std::string job_words(std::string_view words);

/// letters_of(job_words): the same for all ways to write a job's name.
[[nodiscard]] std::string job_letters(std::string_view name);

/// `words` with "batch `batch`" in place of each batch size.
[[nodiscard]] std::string at_batch(std::string_view words, std::uint32_t batch);

/// `words` without their batch sizes.
[[nodiscard]] std::string without_batch(std::string_view words);

/// Whether "batch" is in `words` with nothing behind it that batches_in reads: "batch of 3", "batch
/// 1.5"; not "batched".
[[nodiscard]] bool has_unread_batch(std::string_view words);

}  // namespace bubblesim::validate
