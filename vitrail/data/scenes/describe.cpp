#include "vitrail/data/scenes/describe.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "vitrail/data/scenes/mention.h"
#include "vitrail/tensor/error.h"
#include "vitrail/tensor/random.h"

namespace vitrail::data {
namespace {

constexpr std::int64_t tries_a_caption = 8;

// A phrase, and the objects that it is about.
struct Phrase {
  std::string words;
  std::vector<const SceneObject*> objects;
};

class Captioner {
 public:
  explicit Captioner(const Scene& scene)
      : scene_(scene),
        draws_(Philox(mix(scene.seed, hash("captions of a scene")), static_cast<std::uint64_t>(scene.index))) {}

  SceneCaption caption() {
    const auto count = std::ssize(scene_.objects);
    const std::vector<const SceneObject*> order = shuffled();
    switch (draws_.integer(0, 5)) {
      case 0:
        return placed(one(*order[0]));
      case 1:
        return placed(group(*order[0]));
      case 2:
        if (count >= 2) {
          return listed(order, std::min<std::int64_t>(count, draws_.integer(2, 4)));
        }
        return placed(one(*order[0]));
      default:
        return related(order);
    }
  }

 private:
  bool chance(std::int64_t of, std::int64_t in) { return draws_.integer(0, in) < of; }

  std::vector<const SceneObject*> shuffled() {
    std::vector<const SceneObject*> order;
    for (const SceneObject& object : scene_.objects) {
      order.push_back(&object);
    }
    for (std::int64_t i = std::ssize(order) - 1; i > 0; --i) {
      std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(draws_.integer(0, i + 1))]);
    }
    return order;
  }

  Phrase one(const SceneObject& object) {
    Mention mention{.color = object.kind.color, .shape = object.kind.shape};
    if (chance(2, 3)) {
      mention.size = object.size;
    }
    return {with_article(mention.words()), {&object}};
  }

  // All objects that are like this one in its shape, and maybe in its colour and its size.
  Phrase group(const SceneObject& object) {
    Mention mention{.shape = object.kind.shape};
    if (chance(1, 2)) {
      mention.color = object.kind.color;
    }
    if (chance(1, 2)) {
      mention.size = object.size;
    }
    Phrase phrase;
    for (const std::size_t i : objects_that_fit(scene_, mention)) {
      phrase.objects.push_back(&scene_.objects[i]);
    }
    if (phrase.objects.size() == 1) {
      return one(object);
    }
    phrase.words = fmt::format("{} {}", scene_numbers.at(phrase.objects.size()), mention.plural());
    return phrase;
  }

  // The caption that is a phrase, or several of them as `text`.
  SceneCaption about(std::string text, std::initializer_list<const Phrase*> phrases) const {
    SceneCaption caption{std::move(text)};
    for (const Phrase* phrase : phrases) {
      for (const SceneObject* object : phrase->objects) {
        caption.about.push_back(static_cast<std::size_t>(object - scene_.objects.data()));
      }
    }
    return caption;
  }

  // The phrase with the side of the scene that its objects are on, if they are on one.
  SceneCaption placed(const Phrase& phrase) {
    std::vector<std::string_view> sides;
    for (std::size_t i = 0; i < scene_sides.size(); ++i) {
      const auto is_there = [&](const SceneObject* object) { return is_on(*object, static_cast<SceneSide>(i)); };
      if (std::ranges::all_of(phrase.objects, is_there)) {
        sides.push_back(scene_sides[i]);
      }
    }
    if (sides.empty()) {
      return about(phrase.words, {&phrase});
    }
    const std::string_view side = sides[static_cast<std::size_t>(draws_.integer(0, std::ssize(sides)))];
    return about(fmt::format("{} {}", phrase.words, side), {&phrase});
  }

  SceneCaption listed(const std::vector<const SceneObject*>& order, std::int64_t count) {
    Phrase list;
    for (std::int64_t i = 0; i < count; ++i) {
      const Phrase phrase = one(*order[static_cast<std::size_t>(i)]);
      list.words += i == 0 ? "" : (i == count - 1 ? " and " : ", ");
      list.words += phrase.words;
      list.objects.push_back(phrase.objects.front());
    }
    return about(list.words, {&list});
  }

  // Two phrases and how the objects of the first lie to all those of the second; a list if no relation holds.
  SceneCaption related(const std::vector<const SceneObject*>& order) {
    for (std::size_t i = 1; i < order.size(); ++i) {
      const Phrase first = one(*order[0]);
      const Phrase second = chance(1, 2) ? group(*order[i]) : one(*order[i]);
      const auto relation = relation_of(*order[0], *second.objects[0]);
      if (relation && std::ranges::all_of(second.objects, [&](const SceneObject* other) {
            return other != order[0] && relation_of(*order[0], *other) == relation;
          })) {
        return about(fmt::format("{} {} {}", first.words, name_of(*relation), second.words), {&first, &second});
      }
    }
    return order.size() < 2 ? placed(one(*order[0])) : listed(order, 2);
  }

  const Scene& scene_;
  Draws draws_;
};

}  // namespace

std::vector<SceneCaption> scene_captions(const Scene& scene, std::int64_t count) {
  check(!scene.objects.empty() && scene.objects.size() < scene_numbers.size(), "a scene of {} objects has no captions",
        scene.objects.size());
  Captioner captioner(scene);
  std::vector<SceneCaption> captions;
  for (std::int64_t i = 0; i < count; ++i) {
    SceneCaption caption = captioner.caption();
    for (std::int64_t again = 1;
         again < tries_a_caption && std::ranges::count(captions, caption.text, &SceneCaption::text) > 0; ++again) {
      caption = captioner.caption();
    }
    captions.push_back(std::move(caption));
  }
  return captions;
}

}  // namespace vitrail::data
