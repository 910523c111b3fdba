#include "vitrail/train/detection/matching_history.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/autograd/tape.h"
#include "vitrail/data/boxes/box_batches.h"
#include "vitrail/explain/box_overlay.h"
#include "vitrail/explain/drawing/drawing.h"
#include "vitrail/explain/page.h"
#include "vitrail/io/file.h"
#include "vitrail/io/image.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/train/detection/detections.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* state_name = "matching";
constexpr std::int64_t stand_numbers = 6;

// Besides the dress of all pages.
constexpr std::string_view matching_style = R"(
#bar { display: flex; gap: .8rem; align-items: center; position: sticky; top: 0; padding: .5rem 0; background: var(--paper) }
#bar input { flex: 1 } #bar button { font: inherit; min-width: 5rem } #bar output { min-width: 11rem; font-variant-numeric: tabular-nums }
main { display: grid; gap: 1.2rem; grid-template-columns: repeat(auto-fill, minmax(min(320px, 100%), 1fr)) }
svg.view { width: 100%; height: auto; display: block; border-radius: 6px }
table { font-size: .8rem; margin-top: .3rem; width: 100%; table-layout: fixed }
td { height: 1.1rem; padding: 0; border: 0; overflow: hidden; color: #fff; text-align: center; cursor: pointer } td.now { outline: 2px solid var(--ink) }
th { width: 6.5rem; padding: 0; border: 0; font-weight: 400; overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
)";

constexpr std::string_view matching_lead =
    "Dashed: objects. Solid, with its number and the probability of the object's class: the query that stands for it. "
    "Below, the query of each object at each evaluation.";

constexpr std::string_view matching_script = R"(
const svg = (name, attributes, parent, text) => {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  parent.append(node); return node;
};
const hue = query => query < 0 ? '#667085' : `hsl(${query * 137.5 % 360} 65% 45%)`;
const slider = document.getElementById('at'), said = document.getElementById('said'), play = document.getElementById('play');
slider.max = data.records - 1;
const views = data.images.map(image => {
  const figure = document.createElement('figure'); figure.style.margin = 0;
  const view = svg('svg', { class: 'view', viewBox: `0 0 ${image.width} ${image.height}` }, figure);
  svg('image', { href: image.file, width: image.width, height: image.height }, view);
  const layer = svg('g', {}, view), table = document.createElement('table');
  const cells = image.objects.map(object => {
    const row = table.insertRow(), head = document.createElement('th'); head.textContent = object.name; row.append(head);
    return object.stands.map((stand, record) => {
      const cell = row.insertCell(); cell.style.background = hue(stand[0]); cell.title = `${record + 1}: query ${stand[0]}`;
      if (data.records <= 20) cell.textContent = stand[0] < 0 ? '' : stand[0];
      cell.onclick = () => { slider.value = record; draw(); };
      return cell;
    });
  });
  figure.append(table); document.querySelector('main').append(figure);
  return { image, layer, cells };
});
function draw() {
  const record = +slider.value;
  said.value = `evaluation ${record + 1} of ${data.records}` + (record ? `, ${data.changes[record - 1].toFixed(0)} % changed` : '');
  for (const { image, layer, cells } of views) {
    layer.replaceChildren();
    const w = image.width, h = image.height, unit = Math.max(w, h) / 100;
    image.objects.forEach((object, i) => {
      const [x0, y0, x1, y1] = object.box, [query, p, cx, cy, bw, bh] = object.stands[record];
      const color = hue(query), line = { fill: 'none', stroke: color, 'stroke-width': unit };
      svg('rect', { x: x0 * w, y: y0 * h, width: (x1 - x0) * w, height: (y1 - y0) * h, ...line, 'stroke-dasharray': 2 * unit }, layer);
      if (query >= 0) {
        svg('rect', { x: (cx - bw / 2) * w, y: (cy - bh / 2) * h, width: bw * w, height: bh * h, ...line }, layer);
        svg('line', { x1: cx * w, y1: cy * h, x2: (x0 + x1) / 2 * w, y2: (y0 + y1) / 2 * h, stroke: color, 'stroke-width': unit }, layer);
        svg('text', { x: cx * w, y: cy * h, 'font-size': 6 * unit, fill: '#fff', stroke: '#000', 'stroke-width': unit, 'paint-order': 'stroke',
                      'text-anchor': 'middle', 'dominant-baseline': 'central' }, layer, `${query}: ${(100 * p).toFixed(0)} %`);
      }
      cells[i].forEach((cell, k) => cell.classList.toggle('now', k === record));
    });
  }
}
let timer = 0;
play.onclick = () => {
  if (timer) { clearInterval(timer); timer = 0; play.textContent = 'play'; return; }
  if (+slider.value === data.records - 1) slider.value = 0;
  play.textContent = 'stop';
  timer = setInterval(() => { if (+slider.value === data.records - 1) play.click(); else { slider.value = +slider.value + 1; draw(); } }, 400);
};
slider.oninput = draw; slider.value = data.records - 1; draw();
)";

}  // namespace

MatchingHistory::MatchingHistory(const data::BoxedImages& data, std::int64_t most) : data_(&data) {
  for (std::int64_t i = 0; i < data.images->size() && std::ssize(images_) < most; ++i) {
    Followed followed{.index = i, .objects = {}};
    for (const data::BoxedObject& object : data.objects[static_cast<std::size_t>(i)]) {
      if (!object.crowd) {
        followed.objects.labels.push_back(object.label);
        followed.objects.boxes.push_back(object.box);  // in pixels, until the image's size is known
      }
    }
    if (followed.objects.labels.empty()) {
      continue;
    }
    io::Image image;
    try {
      image = data.images->image(i);
    } catch (const Error&) {
      continue;  // the evaluation says so
    }
    for (data::Box& box : followed.objects.boxes) {
      box = box.scaled(1 / static_cast<double>(image.width), 1 / static_cast<double>(image.height));
    }
    objects_ += std::ssize(followed.objects.labels);
    images_.push_back(std::move(followed));
  }
}

void MatchingHistory::record(const models::Detector& detector, const MatchCosts& costs, DType dtype) {
  const autograd::NoGrad no_grad;
  const data::BoxTransform how = box_transform(detector.images);
  for (const Followed& followed : images_) {
    const data::BoxBatch batch = data::batch_of_one(data_->images->image(followed.index), how);
    nn::Pass pass{.dtype = dtype};
    const models::SetPredictions said = detector.net->forward({batch.x, batch.pixel_mask}, pass);
    const Assignment pairs = match(said, std::span(&followed.objects, 1), costs).front();
    const Tensor probabilities = ops::softmax(said.logits, 2).contiguous();
    const Tensor boxes = said.boxes.contiguous();
    std::vector<Stand> stands(followed.objects.labels.size());
    for (std::size_t i = 0; i < pairs.rows.size(); ++i) {
      const std::int64_t query = pairs.rows[i];
      const auto object = static_cast<std::size_t>(pairs.columns[i]);
      const float* b = boxes.data<float>() + 4 * query;
      const float* p = probabilities.data<float>() + query * probabilities.size(2);
      stands[object] = {static_cast<float>(query), p[followed.objects.labels[object]], b[0], b[1], b[2], b[3]};
    }
    stands_.insert(stands_.end(), stands.begin(), stands.end());
  }
  ++records_;
}

std::vector<double> MatchingHistory::changes() const {
  std::vector<double> result;
  const auto width = static_cast<std::size_t>(objects_);
  for (std::size_t i = width; i + width <= stands_.size() && width > 0; i += width) {
    double changed = 0;
    for (std::size_t k = i; k < i + width; ++k) {
      changed += stands_[k].query == stands_[k - width].query ? 0 : 1;
    }
    result.push_back(100 * changed / static_cast<double>(width));
  }
  return result;
}

io::NamedTensors MatchingHistory::state() const {
  if (records_ == 0 || objects_ == 0) {
    return {};
  }
  std::vector<float> numbers;
  numbers.reserve(stands_.size() * stand_numbers);
  for (const Stand& stand : stands_) {
    for (const float number : {stand.query, stand.probability, stand.cx, stand.cy, stand.width, stand.height}) {
      numbers.push_back(number);
    }
  }
  return {{state_name, Tensor::from(numbers, {records_, objects_, stand_numbers})}};
}

void MatchingHistory::load_state(const io::NamedTensors& state) {
  const auto found = std::ranges::find_if(state, [](const auto& entry) { return entry.first == state_name; });
  records_ = 0;
  stands_.clear();
  if (found == state.end() || objects_ == 0 || found->second.rank() != 3 || found->second.size(1) != objects_ ||
      found->second.size(2) != stand_numbers) {
    return;
  }
  const std::vector<float> numbers = found->second.values();
  records_ = found->second.size(0);
  for (std::size_t i = 0; i < numbers.size(); i += stand_numbers) {
    stands_.push_back({numbers[i], numbers[i + 1], numbers[i + 2], numbers[i + 3], numbers[i + 4], numbers[i + 5]});
  }
}

void MatchingHistory::write_page(const fs::path& folder) const {
  check(records_ > 0 && objects_ > 0, "no matching was recorded");
  nlohmann::json json = {{"records", records_}, {"changes", changes()}, {"images", nlohmann::json::array()}};
  std::size_t first = 0;  // object of the image
  io::replace_folder(folder, [&](const fs::path& temporary) {
    for (std::size_t i = 0; i < images_.size(); ++i) {
      const Followed& followed = images_[i];
      const io::Image image = data_->images->image(followed.index);
      const std::string file = fmt::format("{}.png", i);
      io::write_png(temporary / file, image);
      nlohmann::json objects = nlohmann::json::array();
      for (std::size_t k = 0; k < followed.objects.labels.size(); ++k, ++first) {
        const data::Box& box = followed.objects.boxes[k];
        nlohmann::json stands = nlohmann::json::array();
        for (std::size_t at = first; at < stands_.size(); at += static_cast<std::size_t>(objects_)) {
          const Stand& s = stands_[at];
          stands.push_back({s.query, s.probability, s.cx, s.cy, s.width, s.height});
        }
        objects.push_back({{"name", data_->classes[static_cast<std::size_t>(followed.objects.labels[k])]},
                           {"box", {box.x0, box.y0, box.x1, box.y1}},
                           {"stands", std::move(stands)}});
      }
      json["images"].push_back(
          {{"file", file}, {"width", image.width}, {"height", image.height}, {"objects", std::move(objects)}});
    }
    const std::string body = fmt::format(
        "<div id=\"bar\"><button id=\"play\">play</button><input id=\"at\" type=\"range\" min=\"0\" value=\"0\" "
        "aria-label=\"evaluation\"><output id=\"said\"></output></div>\n<main></main>\n<script>\nconst data = {};\n{}"
        "</script>\n",
        explain::script_json(json), matching_script);
    io::write_atomically(
        temporary / "index.html",
        explain::html_frame("Matching through training", std::string(matching_lead), body, matching_style));
  });
}

}  // namespace vitrail::train
