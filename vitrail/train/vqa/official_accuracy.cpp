#include "vitrail/train/vqa/official_accuracy.h"

#include <algorithm>
#include <array>
#include <map>
#include <sstream>
#include <vector>

#include "vitrail/text/strings/unicode.h"

namespace vitrail::train {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The words whose contractions are completed: a word that lacks exactly one of their apostrophes becomes one of them.
constexpr std::string_view contracted =
    "'ow's'at 'twas ain't aren't can't could've couldn't couldn't've didn't doesn't don't hadn't hadn't've hasn't "
    "haven't he'd he'd've he's how'd how'll how's isn't it'd it'd've it'll ma'am might've mightn't mightn't've must've "
    "mustn't needn't not've o'clock oughtn't shan't she'd've should've shouldn't shouldn't've somebody'd've "
    "somebody'll somebody's someone'd someone'd've someone'll someone's something'd something'd've something'll "
    "that's there'd there'd've there're there's they'd they'd've they'll they're they've wasn't we'd've we've weren't "
    "what'll what're what's what've when's where'd where's where've who'd who'd've who'll who's who've why'll why're "
    "why's won't would've wouldn't wouldn't've y'all y'all'd've y'all'll you'd you'd've you'll you're you've";

std::map<std::string, std::string, std::less<>> make_replacements() {
  std::map<std::string, std::string, std::less<>> result = {{"somebody'd", "somebodyd"}};
  std::istringstream words{std::string(contracted)};
  for (std::string word; words >> word;) {
    for (std::size_t i = 0; i < word.size(); ++i) {
      if (word[i] == '\'') {
        std::string key = word;
        result.emplace(key.erase(i, 1), word);
      }
    }
  }
  constexpr std::array numbers = {"zero", "one",   "two",   "three", "four", "five",
                                  "six",  "seven", "eight", "nine",  "ten"};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    result.emplace(numbers[i], std::to_string(i));
  }
  result.emplace("none", "0");
  return result;
}

std::string lower_case(std::string_view text) {
  std::string lower;
  text::for_each_code_point(text, [&](char32_t c, std::size_t) { text::append_utf8(lower, text::lowercase(c)); });
  return lower;
}

// Without spaces at its ends, and with spaces for tabs and line feeds.
std::string in_one_line(std::string_view text) {
  std::string line(text);
  std::ranges::replace(line, '\n', ' ');
  std::ranges::replace(line, '\t', ' ');
  const std::size_t begin = std::min(line.find_first_not_of(" \r\f\v"), line.size());
  return line.substr(begin, line.find_last_not_of(" \r\f\v") + 1 - begin);
}

// A sign is removed where a space is beside it, or where a comma parts the digits of a number; elsewhere a space takes
// its place. A full stop is removed unless a digit follows.
std::string without_punctuation(const std::string& text) {
  constexpr std::string_view signs = ";/[]\"{}()=+\\_-><@`,?!";
  bool parts_digits = false;
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    parts_digits = parts_digits || (text[i] == ',' && is_digit(text[i - 1]) && is_digit(text[i + 1]));
  }
  std::string result = text;
  for (const char sign : signs) {
    const std::string before = {' ', sign};
    const std::string behind = {sign, ' '};
    if (parts_digits || text.find(before) != std::string::npos || text.find(behind) != std::string::npos) {
      std::erase(result, sign);
    } else {
      std::ranges::replace(result, sign, ' ');
    }
  }
  int most = 32;  // re.UNICODE, which the reference passes for the number of replacements
  for (std::size_t i = 0; i < result.size() && most > 0;) {
    if (result[i] == '.' && (i + 1 == result.size() || !is_digit(result[i + 1]))) {
      result.erase(i, 1);
      --most;
    } else {
      ++i;
    }
  }
  return result;
}

}  // namespace

std::string processed_answer(std::string_view answer) {
  static const std::map<std::string, std::string, std::less<>> replacements = make_replacements();
  std::istringstream words(lower_case(without_punctuation(in_one_line(answer))));
  std::string result;
  for (std::string word; words >> word;) {
    if (word == "a" || word == "an" || word == "the") {
      continue;
    }
    const auto other = replacements.find(word);
    result += (result.empty() ? "" : " ") + (other == replacements.end() ? word : other->second);
  }
  return result;
}

double official_vqa_accuracy(std::span<const std::string> answers, std::string_view given) {
  std::vector<std::string> said;
  std::ranges::transform(answers, std::back_inserter(said), in_one_line);
  std::string own = in_one_line(given);
  if (std::ranges::any_of(said, [&](const std::string& answer) { return answer != said.front(); })) {
    std::ranges::transform(said, said.begin(), processed_answer);
    own = processed_answer(own);
  }
  const auto all = static_cast<double>(said.size());
  const auto equal = static_cast<double>(std::ranges::count(said, own));
  const double left_out = std::min(1.0, std::max(0.0, equal - 1) / 3);  // one of those who gave it
  return all == 0 ? 0 : (equal * left_out + (all - equal) * std::min(1.0, equal / 3)) / all;
}

}  // namespace vitrail::train
