#include "vitrail/explain/scene_sheet.h"

#include <algorithm>
#include <string>

#include "vitrail/data/scenes/describe.h"
#include "vitrail/data/scenes/draw.h"
#include "vitrail/data/scenes/questions.h"
#include "vitrail/explain/drawing/drawing.h"
#include "vitrail/explain/overlay.h"

namespace vitrail::explain {
namespace {

constexpr std::size_t scenes_a_row = 4;
constexpr std::int64_t captions_shown = 3;
constexpr std::int64_t questions_shown = 3;

// A frame just outside of a box, white with black around it, and a word in its corner if there is one.
void draw_box(io::Image& image, const data::SceneBox& box, const std::string& text) {
  const auto frame = [&](std::int64_t out, std::uint8_t value) {
    for (std::int64_t y = box.top - out; y < box.bottom + out; ++y) {
      for (std::int64_t x = box.left - out; x < box.right + out; ++x) {
        const bool edge =
            x == box.left - out || x == box.right + out - 1 || y == box.top - out || y == box.bottom + out - 1;
        if (edge && x >= 0 && y >= 0 && x < image.width && y < image.height) {
          std::fill_n(image.at(x, y), 3, value);
        }
      }
    }
  };
  frame(2, 0);
  frame(1, 255);
  if (text.empty()) {
    return;
  }
  const io::Image tag = [&] {
    io::Image label = white_image(text_width(text, 1) + 2, letter_height + 1);
    draw_text(label, 1, 1, text, 1);
    return label;
  }();
  paste(image, tag, std::clamp<std::int64_t>(box.left - 2, 0, image.width - tag.width),
        std::clamp<std::int64_t>(box.top - 2, 0, image.height - tag.height));
}

// What is known of a scene, in lines.
std::vector<std::string> said_of(const data::Scene& scene, const data::SceneFolder& what) {
  if (what.scenes.task != data::SceneTask::none) {
    return {std::string(data::scene_class(what.scenes.task, scene))};
  }
  std::vector<std::string> lines;
  for (const data::SceneCaption& caption : data::scene_captions(scene, std::min(captions_shown, what.captions))) {
    lines.push_back(caption.text);
  }
  for (const data::SceneQuestion& question :
       data::scene_questions(scene, std::min(questions_shown, what.questions), what.paraphrase)) {
    lines.push_back(question.text + " " + question.answer);
  }
  return lines;
}

io::Image shown_scene(const data::Scene& scene, const data::SceneFolder& what) {
  const std::int64_t side = what.side;
  const data::DrawnScene drawn = data::draw_scene(scene, side);
  const std::int64_t zoom = std::max<std::int64_t>(1, 256 / side);
  io::Image image = magnified(drawn.image, zoom);
  for (std::int64_t number = 1; number <= std::ssize(scene.objects); ++number) {
    const data::SceneBox box = data::box_of_object(drawn.objects, side, number);
    draw_box(image, {box.left * zoom, box.top * zoom, box.right * zoom, box.bottom * zoom}, std::to_string(number));
  }
  const std::vector<std::string> lines = said_of(scene, what);
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    image = captioned(image, *line, 1);
  }
  return captioned(image, "scene " + std::to_string(scene.index), 1);
}

io::Image shown_cells(const data::CellScene& scene, std::int64_t side) {
  const std::int64_t zoom = std::max<std::int64_t>(1, 256 / side);
  io::Image image = magnified(data::draw_cells(scene, side).image, zoom);
  for (const data::Cell& cell : scene.cells) {
    const data::SceneBox box = data::box_of_object(data::mask_of_cell(cell, side), side, 1);
    draw_box(image, {box.left * zoom, box.top * zoom, box.right * zoom, box.bottom * zoom},
             cell.kind == data::CellKind::rbc ? "" : std::string(name_of(cell.kind).substr(0, 1)));
  }
  return captioned(image, "scene " + std::to_string(scene.index), 1);
}

// Images in rows, each on white of the size of the largest.
template <class Scenes, class Show>
io::Image sheet_of(const Scenes& scenes, const Show& show) {
  std::vector<std::vector<io::Image>> rows;
  std::int64_t width = 0;
  std::int64_t height = 0;
  for (std::size_t i = 0; i < scenes.size(); ++i) {
    if (i % scenes_a_row == 0) {
      rows.emplace_back();
    }
    rows.back().push_back(show(scenes[i]));
    width = std::max(width, rows.back().back().width);
    height = std::max(height, rows.back().back().height);
  }
  for (std::vector<io::Image>& row : rows) {
    for (io::Image& image : row) {
      io::Image even = white_image(width, height);
      paste(even, image, 0, height - image.height);
      image = std::move(even);
    }
  }
  return sheet(rows, 12);
}

}  // namespace

io::Image scene_sheet(const std::vector<data::Scene>& scenes, const data::SceneFolder& what) {
  return sheet_of(scenes, [&](const data::Scene& scene) { return shown_scene(scene, what); });
}

io::Image cell_sheet(const std::vector<data::CellScene>& scenes, std::int64_t side) {
  return sheet_of(scenes, [&](const data::CellScene& scene) { return shown_cells(scene, side); });
}

}  // namespace vitrail::explain
