#include "vitrail/explain/map_page.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/explain/drawing/colormap.h"
#include "vitrail/explain/drawing/drawing.h"
#include "vitrail/explain/page.h"
#include "vitrail/io/charts/svg.h"
#include "vitrail/io/file.h"
#include "vitrail/tensor/error.h"

namespace vitrail::explain {
namespace {

constexpr Color no_class = {0x66, 0x70, 0x85};
// Points are drawn in steps of this prime number, since those of a class, which come together, would cover all others.
constexpr std::size_t mixing_step = 15485863;

void check_map(const MapPoints& points) {
  const Tensor& at = points.coordinates;
  check(at.defined() && at.rank() == 2 && at.size(1) == 2 && at.dtype() == DType::f32 && at.size(0) > 0,
        "a map has coordinates [N, 2] f32");
  const auto fits = [&](std::size_t count) { return count == 0 || static_cast<std::int64_t>(count) == at.size(0); };
  check(fits(points.names.size()) && fits(points.labels.size()) && fits(points.thumbnails.size()),
        "a map of {} points has {} names, {} labels and {} thumbnails", at.size(0), points.names.size(),
        points.labels.size(), points.thumbnails.size());
  for (const io::Image& image : points.thumbnails) {
    check(image.width == points.thumbnails[0].width && image.height == image.width && image.width > 0,
          "the thumbnails of a map are squares of one size");
  }
}

Color color_of_hex(std::string_view hex) {
  const auto part = [&](std::size_t begin) {
    return static_cast<std::uint8_t>(std::stoi(std::string(hex.substr(begin, 2)), nullptr, 16));
  };
  return {part(1), part(3), part(5)};
}

// The colour of each class: distinct ones as long as there are enough of them.
std::vector<Color> class_colors(std::size_t classes) {
  std::vector<Color> colors;
  for (std::size_t c = 0; c < classes; ++c) {
    colors.push_back(classes <= io::svg_palette.size()
                         ? color_of_hex(io::svg_palette[c])
                         : viridis(static_cast<float>(c) / static_cast<float>(classes - 1)));
  }
  return colors;
}

std::size_t classes_of(const MapPoints& points) {
  std::int64_t largest = std::ssize(points.classes) - 1;
  for (const std::int64_t label : points.labels) {
    largest = std::max(largest, label);
  }
  return static_cast<std::size_t>(largest + 1);
}

std::string class_name(const MapPoints& points, std::size_t c) {
  return c < points.classes.size() ? points.classes[c] : std::to_string(c);
}

// The coordinates, moved and scaled so that both lie in 0 … 1 and the larger extent is 1.
std::vector<std::pair<double, double>> unit_places(const Tensor& coordinates) {
  const std::span<const float> values = coordinates.span<float>();
  float low[2] = {INFINITY, INFINITY};
  float high[2] = {-INFINITY, -INFINITY};
  for (std::size_t k = 0; k < values.size(); ++k) {
    check(std::isfinite(values[k]), "point {} of the map has a coordinate that is not finite", k / 2);
    low[k % 2] = std::min(low[k % 2], values[k]);
    high[k % 2] = std::max(high[k % 2], values[k]);
  }
  const double extent = std::max({static_cast<double>(high[0] - low[0]), static_cast<double>(high[1] - low[1]), 1e-12});
  const auto place = [&](std::size_t k) {
    const double middle = (static_cast<double>(low[k % 2]) + static_cast<double>(high[k % 2])) / 2;
    return 0.5 + (static_cast<double>(values[k]) - middle) / extent;
  };
  std::vector<std::pair<double, double>> places;
  for (std::size_t k = 0; k < values.size(); k += 2) {
    places.emplace_back(place(k), place(k + 1));
  }
  return places;
}

void fill_rectangle(io::Image& image, std::int64_t left, std::int64_t top, std::int64_t size, const Color& color) {
  for (std::int64_t y = std::max<std::int64_t>(top, 0); y < std::min(top + size, image.height); ++y) {
    for (std::int64_t x = std::max<std::int64_t>(left, 0); x < std::min(left + size, image.width); ++x) {
      std::ranges::copy(color, image.at(x, y));
    }
  }
}

Color color_of(const MapPoints& points, const std::vector<Color>& colors, std::size_t i) {
  const std::int64_t label = points.labels.empty() ? -1 : points.labels[i];
  return label < 0 ? no_class : colors[static_cast<std::size_t>(label)];
}

// All thumbnails in rows on one image, as many in each row.
io::Image thumbnail_sheet(const std::vector<io::Image>& thumbnails, std::int64_t columns) {
  const std::int64_t side = thumbnails[0].width;
  io::Image result = white_image(columns * side, (std::ssize(thumbnails) + columns - 1) / columns * side);
  for (std::int64_t i = 0; i < std::ssize(thumbnails); ++i) {
    paste(result, thumbnails[static_cast<std::size_t>(i)], i % columns * side, i / columns * side);
  }
  return result;
}

constexpr std::string_view map_style = R"(
:root { color-scheme: light dark; --ink: #1c2024; --soft: #60646c; --paper: #fcfcfd; --line: #d9d9e0 }
@media (prefers-color-scheme: dark) { :root { --ink: #edeef0; --soft: #b0b4ba; --paper: #16181b; --line: #363a3f } }
* { box-sizing: border-box }
html, body { height: 100% }
body { margin: 0; display: flex; flex-direction: column; font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper) }
header { padding: .8rem 1.25rem .4rem } h1 { font-size: 1.4rem; margin: 0 } p { margin: 0; color: var(--soft) }
main { flex: 1; position: relative; min-height: 0 }
canvas { position: absolute; inset: 0; width: 100%; height: 100%; cursor: grab; touch-action: none }
#legend { position: absolute; top: .5rem; right: .75rem; padding: .4rem .7rem; max-height: 90%; overflow-y: auto; border: 1px solid var(--line); border-radius: 6px; background: var(--paper); font-size: .86rem }
#legend label { display: block; cursor: pointer } #legend i { display: inline-block; width: .8em; height: .8em; margin: 0 .35em; border-radius: 2px }
#tip { position: absolute; display: none; pointer-events: none; padding: .35rem .5rem; border: 1px solid var(--line); border-radius: 6px; background: var(--paper); font-size: .86rem; max-width: 20rem; overflow-wrap: anywhere }
#tip canvas { position: static; display: block; width: 128px; height: 128px; image-rendering: pixelated; margin-bottom: .3rem }
)";

constexpr std::string_view map_script = R"(
const view = document.getElementById('map'), tip = document.getElementById('tip'), legend = document.getElementById('legend');
const pen = view.getContext('2d');
const hidden = new Set();
let scale = 0, left = 0, top_ = 0, pictures = !!data.side, sheet = null;
const name = c => c < 0 ? 'no class' : data.classes[c], color = c => c < 0 ? '#667085' : data.colors[c];
function fit() {
  const room = Math.min(view.clientWidth - (view.clientWidth > 700 ? 200 : 40), view.clientHeight) - 60;
  scale = Math.max(room, 50); left = (view.clientWidth - (view.clientWidth > 700 ? 160 : 0) - scale) / 2; top_ = (view.clientHeight - scale) / 2;
}
const px = i => left + data.x[i] * scale, py = i => top_ + data.y[i] * scale;
function side() { return pictures ? Math.max(10, Math.min(data.side, data.side * scale / 1800)) : Math.max(4, Math.min(12, scale / 200)); }
function draw() {
  const ratio = window.devicePixelRatio || 1;
  view.width = view.clientWidth * ratio; view.height = view.clientHeight * ratio;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  const s = side();
  for (let k = 0; k < data.x.length; ++k) {
    const i = k * data.step % data.x.length;
    if (hidden.has(data.labels[i])) continue;
    const x = px(i) - s / 2, y = py(i) - s / 2;
    if (x < -s || y < -s || x > view.clientWidth || y > view.clientHeight) continue;
    pen.fillStyle = color(data.labels[i]);
    if (pictures && sheet) {
      pen.fillRect(x - 2, y - 2, s + 4, s + 4);
      pen.drawImage(sheet, i % data.columns * data.side, Math.floor(i / data.columns) * data.side, data.side, data.side, x, y, s, s);
    } else pen.fillRect(x, y, s, s);
  }
}
function nearest(x, y) {
  let best = -1, least = Math.max(side(), 12) ** 2;
  for (let i = 0; i < data.x.length; ++i) {
    if (hidden.has(data.labels[i])) continue;
    const d = (px(i) - x) ** 2 + (py(i) - y) ** 2;
    if (d <= least) { least = d; best = i; }
  }
  return best;
}
view.addEventListener('wheel', e => {
  e.preventDefault();
  const factor = Math.exp(-e.deltaY / 400), x = e.offsetX, y = e.offsetY;
  left = x - (x - left) * factor; top_ = y - (y - top_) * factor; scale *= factor; draw();
}, { passive: false });
let grip = null;
view.addEventListener('pointerdown', e => { grip = [e.offsetX - left, e.offsetY - top_]; view.setPointerCapture(e.pointerId); });
view.addEventListener('pointerup', () => { grip = null; });
view.addEventListener('dblclick', () => { fit(); draw(); });
view.addEventListener('pointermove', e => {
  if (grip) { left = e.offsetX - grip[0]; top_ = e.offsetY - grip[1]; tip.style.display = 'none'; draw(); return; }
  const i = nearest(e.offsetX, e.offsetY);
  tip.style.display = i < 0 ? 'none' : 'block';
  if (i < 0) return;
  tip.replaceChildren();
  if (sheet) {
    const picture = document.createElement('canvas'); picture.width = picture.height = data.side;
    picture.getContext('2d').drawImage(sheet, i % data.columns * data.side, Math.floor(i / data.columns) * data.side, data.side, data.side, 0, 0, data.side, data.side);
    tip.append(picture);
  }
  const words = document.createElement('div');
  words.textContent = [data.names[i], data.colors.length ? name(data.labels[i]) : ''].filter(Boolean).join(' · ');
  tip.append(words);
  tip.style.left = Math.min(e.offsetX + 14, view.clientWidth - tip.offsetWidth - 4) + 'px';
  tip.style.top = Math.min(e.offsetY + 14, view.clientHeight - tip.offsetHeight - 4) + 'px';
});
view.addEventListener('pointerleave', () => { tip.style.display = 'none'; });
function entry(words, swatch, on, change) {
  const line = document.createElement('label'), box = document.createElement('input'), mark = document.createElement('i');
  box.type = 'checkbox'; box.checked = on; box.onchange = () => { change(box.checked); draw(); };
  mark.style.background = swatch; line.append(box, mark, words); legend.append(line);
}
for (const c of [...new Set(data.labels)].sort((a, b) => a - b)) {
  if (data.colors.length) entry(name(c), color(c), true, on => on ? hidden.delete(c) : hidden.add(c));
}
if (data.side) {
  entry('images', 'transparent', true, on => { pictures = on; });
  sheet = new Image(); sheet.onload = draw; sheet.src = 'thumbnails.png';
}
if (!legend.children.length) legend.remove();
window.addEventListener('resize', () => { fit(); draw(); });
fit(); draw();
)";

}  // namespace

io::Image draw_map(const MapPoints& points, std::int64_t size) {
  check_map(points);
  const std::vector<Color> colors = class_colors(classes_of(points));
  const bool pictures = !points.thumbnails.empty();
  const std::int64_t side = pictures ? points.thumbnails[0].width : 9;
  const std::int64_t frame = pictures ? 2 : 0;
  constexpr std::int64_t scale = 2;  // of letters
  std::int64_t legend = 0;
  for (std::size_t c = 0; c < colors.size(); ++c) {
    legend = std::max(legend, text_width(class_name(points, c), scale) + 3 * letter_height * scale);
  }
  const std::int64_t line = letter_height * scale + 8;
  io::Image image = white_image(size + legend, std::max(size, line * std::ssize(colors) + 20));
  const std::vector<std::pair<double, double>> places = unit_places(points.coordinates);
  const auto room = static_cast<double>(size - side - 2 * frame);
  for (std::size_t k = 0; k < places.size(); ++k) {
    const std::size_t i = k * mixing_step % places.size();
    const auto left = static_cast<std::int64_t>(places[i].first * room);
    const auto top = static_cast<std::int64_t>(places[i].second * room);
    fill_rectangle(image, left, top, side + 2 * frame, color_of(points, colors, i));
    if (pictures) {
      paste(image, points.thumbnails[i], left + frame, top + frame);
    }
  }
  for (std::size_t c = 0; c < colors.size(); ++c) {
    const std::int64_t top = 10 + line * static_cast<std::int64_t>(c);
    fill_rectangle(image, size + 8, top, letter_height * scale, colors[c]);
    draw_text(image, size + 16 + letter_height * scale, top, class_name(points, c), scale);
  }
  return image;
}

void write_map_page(const std::filesystem::path& folder, const std::string& title, const std::string& lead,
                    const MapPoints& points) {
  check_map(points);
  nlohmann::json data = {{"x", nlohmann::json::array()},
                         {"y", nlohmann::json::array()},
                         {"names", nlohmann::json::array()},
                         {"labels", nlohmann::json::array()},
                         {"classes", nlohmann::json::array()},
                         {"colors", nlohmann::json::array()},
                         {"side", 0},
                         {"step", mixing_step},
                         {"columns", 0}};
  const auto rounded = [](double value) { return std::round(1e5 * value) / 1e5; };
  for (const auto& [x, y] : unit_places(points.coordinates)) {
    data["x"].push_back(rounded(x));
    data["y"].push_back(rounded(y));
  }
  const auto count = static_cast<std::size_t>(points.coordinates.size(0));
  data["names"] = points.names.empty() ? std::vector<std::string>(count) : points.names;
  data["labels"] = points.labels.empty() ? std::vector<std::int64_t>(count, -1) : points.labels;
  const std::vector<Color> colors = class_colors(classes_of(points));
  for (std::size_t c = 0; c < colors.size(); ++c) {
    data["classes"].push_back(class_name(points, c));
    data["colors"].push_back(fmt::format("#{:02x}{:02x}{:02x}", colors[c][0], colors[c][1], colors[c][2]));
  }
  if (!points.thumbnails.empty()) {
    const std::int64_t columns = std::max<std::int64_t>(1, std::llround(std::sqrt(static_cast<double>(count))));
    data["side"] = points.thumbnails[0].width;
    data["columns"] = columns;
    io::write_png(folder / "thumbnails.png", thumbnail_sheet(points.thumbnails, columns));
  }
  io::write_png(folder / "map.png", draw_map(points));
  io::write_atomically(
      folder / "index.html",
      fmt::format("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n{5}\n<meta name=\"viewport\" "
                  "content=\"width=device-width, initial-scale=1\">\n<title>{0}</title>\n<style>{1}</style>\n</head>\n"
                  "<body>\n<header><h1>{0}</h1><p>{2}</p></header>\n<main><canvas id=\"map\"></canvas><div "
                  "id=\"legend\"></div><div id=\"tip\"></div></main>\n<script>\nconst data = {3};\n{4}</script>\n"
                  "</body>\n</html>\n",
                  io::escape_xml(title), map_style, io::escape_xml(lead), script_json(data), map_script,
                  page_generator));
}

}  // namespace vitrail::explain
