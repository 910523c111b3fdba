#include "vitrail/data/scenes/mention.h"

#include <string_view>

namespace vitrail::data {

bool Mention::fits(const SceneObject& object) const {
  return (!shape || object.kind.shape == *shape) && (!size || object.size == *size) &&
         (!color || object.kind.color == *color);
}

std::string Mention::words() const {
  std::string text;
  if (size) {
    text += std::string(name_of(*size)) + " ";
  }
  if (color) {
    text += std::string(name_of(*color)) + " ";
  }
  return text + std::string(shape ? name_of(*shape) : "thing");
}

std::string Mention::plural() const { return words() + "s"; }

std::vector<std::size_t> objects_that_fit(const Scene& scene, const Mention& mention) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < scene.objects.size(); ++i) {
    if (mention.fits(scene.objects[i])) {
      found.push_back(i);
    }
  }
  return found;
}

std::string with_article(const std::string& words) {
  return (std::string_view("aeiou").find(words[0]) == std::string_view::npos ? "a " : "an ") + words;
}

}  // namespace vitrail::data
