#include "vitrail/data/scenes/truth.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "vitrail/data/scenes/mention.h"
#include "vitrail/io/wording.h"

namespace vitrail::data {
namespace {

// "a small bird", or "two small birds".
struct Claim {
  Mention mention;
  std::optional<std::size_t> number;  // of all that there are; none behind an article
  std::string words;
  std::string_view verb = "is";
};

struct Sentence {
  std::vector<Claim> claims;                // one, two in a relation, several in a list
  std::optional<SceneSide> side;            // of the only claim
  std::optional<SceneRelation> relation;    // of the first claim to the second
  std::optional<std::string> unclear = {};  // why it is not understood
};

class CaptionReader {
 public:
  explicit CaptionReader(std::string_view caption) {
    std::string word;
    const auto end_word = [&] {
      if (!word.empty()) {
        words_.push_back(std::exchange(word, {}));
      }
    };
    for (const char c : io::lower_case(caption)) {
      if (std::isspace(static_cast<unsigned char>(c)) != 0) {
        end_word();
      } else if (c == ',') {
        end_word();
        words_.emplace_back(",");
      } else {
        word += c;
      }
    }
    end_word();
    if (!words_.empty() && words_.back().ends_with('.')) {
      words_.back().pop_back();
      std::erase(words_, "");
    }
  }

  Sentence sentence() {
    Sentence result;
    if (read(result)) {
      return result;
    }
    const std::string before = at_ > 0 ? fmt::format(" behind '{}'", io::shown(words_[at_ - 1])) : std::string();
    result.unclear = at_ < words_.size()
                         ? fmt::format("{} was expected{}, not '{}'", expected_, before, io::shown(words_[at_]))
                         : fmt::format("{} was expected{}", expected_, before);
    return result;
  }

 private:
  bool read(Sentence& result) {
    if (!read_claim(result.claims.emplace_back())) {
      return false;
    }
    if (at_ == words_.size()) {
      return true;
    }
    if ((result.side = one_of<SceneSide>(scene_sides))) {
      return at_end();
    }
    if ((result.relation = one_of<SceneRelation>(scene_relations))) {
      return read_claim(result.claims.emplace_back()) && at_end();
    }
    while (skip(",")) {
      if (!read_claim(result.claims.emplace_back())) {
        return false;
      }
    }
    if (skip("and")) {
      return read_claim(result.claims.emplace_back()) && at_end();
    }
    expected_ = result.claims.size() > 1 ? "'and'" : "a side, a relation, a comma, 'and' or the end";
    return false;
  }

  bool at_end() {
    expected_ = "the end";
    return at_ == words_.size();
  }

  bool read_claim(Claim& claim) {
    const std::size_t begin = at_;
    expected_ = "'a' or a number";
    if (!skip("a") && !skip("an")) {
      claim.number = one_of<std::size_t>(scene_numbers);
      if (!claim.number) {
        return false;
      }
    }
    claim.mention.size = one_of<SceneSize>(scene_sizes);
    claim.mention.color = one_of<SceneColor>(scene_colors);
    const bool plural = claim.number && *claim.number != 1;
    expected_ = plural ? "a shape in the plural" : "a shape";
    for (std::size_t i = 0; i < scene_shapes.size(); ++i) {
      if (skip(std::string(scene_shapes[i]) + (plural ? "s" : ""))) {
        claim.mention.shape = static_cast<SceneShape>(i);
        claim.verb = plural ? "are" : "is";
        for (std::size_t w = begin; w < at_; ++w) {
          claim.words += (w == begin ? "" : " ") + words_[w];
        }
        return true;
      }
    }
    return false;
  }

  // Skips words if they come next.
  bool skip(std::string_view words) {
    std::size_t at = at_;
    while (!words.empty()) {
      const std::string_view word = words.substr(0, words.find(' '));
      if (at == words_.size() || words_[at] != word) {
        return false;
      }
      ++at;
      words.remove_prefix(std::min(words.size(), word.size() + 1));
    }
    at_ = at;
    return true;
  }

  // The one of these names that comes next, which it skips.
  template <class T, class Names>
  std::optional<T> one_of(const Names& names) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (skip(names[i])) {
        return static_cast<T>(i);
      }
    }
    return {};
  }

  std::vector<std::string> words_;
  std::size_t at_ = 0;
  std::string_view expected_;
};

// The objects that a claim may be about, each of which must be so if it has a number.
using Found = std::vector<std::size_t>;

// Whether a claim's objects do: one of them, or all that a number means.
template <class Holds>
bool claim_holds(const Claim& claim, const Found& found, const Holds& holds) {
  return claim.number ? std::ranges::all_of(found, holds) : std::ranges::any_of(found, holds);
}

// Whether each of the claims from `next` on can have an object that none of the others has.
bool all_different(const std::vector<Found>& found, std::size_t next, std::vector<std::size_t>& taken) {
  if (next == found.size()) {
    return true;
  }
  return std::ranges::any_of(found[next], [&](std::size_t object) {
    if (std::ranges::find(taken, object) != taken.end()) {
      return false;
    }
    taken.push_back(object);
    const bool all = all_different(found, next + 1, taken);
    taken.pop_back();
    return all;
  });
}

SceneVerdict fails(std::string reason) { return {SceneTruth::fails, std::move(reason)}; }

}  // namespace

SceneVerdict caption_truth(std::string_view caption, const Scene& scene) {
  const Sentence sentence = CaptionReader(caption).sentence();
  if (sentence.unclear) {
    return {SceneTruth::not_understood, *sentence.unclear};
  }
  std::vector<Found> found;
  found.reserve(sentence.claims.size());
  std::vector<Found> single;  // of the claims without a number
  for (const Claim& claim : sentence.claims) {
    found.push_back(objects_that_fit(scene, claim.mention));
    if (claim.number && found.back().size() != *claim.number) {
      return fails(fmt::format("there are {} {}, not {}", found.back().size(), claim.mention.plural(), *claim.number));
    }
    if (!claim.number) {
      if (found.back().empty()) {
        return fails(fmt::format("there is no {}", claim.mention.words()));
      }
      single.push_back(found.back());
    }
  }
  const auto object = [&](std::size_t i) -> const SceneObject& { return scene.objects[i]; };
  if (sentence.side) {
    const auto is_there = [&](std::size_t i) { return is_on(object(i), *sentence.side); };
    if (!claim_holds(sentence.claims[0], found[0], is_there)) {
      return fails(
          fmt::format("{} {} not {}", sentence.claims[0].words, sentence.claims[0].verb, name_of(*sentence.side)));
    }
  }
  if (sentence.relation) {
    const auto is_so = [&](std::size_t a) {
      return claim_holds(sentence.claims[1], found[1],
                         [&](std::size_t b) { return relation_of(object(a), object(b)) == sentence.relation; });
    };
    if (!claim_holds(sentence.claims[0], found[0], is_so)) {
      return fails(fmt::format("{} {} not {} {}", sentence.claims[0].words, sentence.claims[0].verb,
                               name_of(*sentence.relation), sentence.claims[1].words));
    }
  }
  std::vector<std::size_t> taken;
  if (!all_different(single, 0, taken)) {
    return fails("there are fewer objects of a kind than are named");
  }
  return {};
}

}  // namespace vitrail::data
