/// \file
/// The accuracy by which answers to VQA's questions are ranked.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace vitrail::train {

/// How many people answer a question of VQA's data.
inline constexpr std::size_t official_answers = 10;

/// An answer as it is compared where people disagree: without punctuation and articles, numbers to ten as digits, and
/// contractions with their apostrophes ("dont": "don't"), by the rules of the evaluation code of VQA's authors
/// (processPunctuation() and processDigitArticle() of GT-Vision-Lab/VQA, vqaEval.py).
std::string processed_answer(std::string_view answer);

/// The accuracy of an answer as that code computes it: the mean of min(n / 3, 1) over the people, each of whom is left
/// out once, where n of the others gave it. `answers` are as people wrote them; both are processed_answer() unless all
/// people agree.
double official_vqa_accuracy(std::span<const std::string> answers, std::string_view given);

}  // namespace vitrail::train
