#include "vitrail/explain/gallery_page.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "vitrail/explain/drawing/drawing.h"
#include "vitrail/explain/page.h"
#include "vitrail/io/base64.h"
#include "vitrail/io/charts/svg.h"
#include "vitrail/tensor/error.h"

namespace vitrail::explain {
namespace {

using nlohmann::json;

constexpr std::int64_t largest_side = 640;  // of a picture in the page
constexpr std::int64_t pixels_shown = 200;  // of a longer side: a picture of fewer is shown as squares

constexpr std::string_view gallery_style = R"(
[hidden] { display: none !important }
.picture { border-top: 1px solid var(--line); margin-top: 2.2rem }
.picture h2 { border: 0; padding: 0; margin: 1.2rem 0 .8rem; overflow-wrap: anywhere }
.columns { display: grid; gap: 1.5rem; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); align-items: start }
.columns > * { min-width: 0 }
.view { position: sticky; top: 0; z-index: 1; padding: .5rem 0; background: var(--paper) }
@media (max-width: 44rem) { .columns { display: block } .view { margin-bottom: .6rem } .stage { max-width: max(14rem, 42vh) } }
.stage { position: relative; overflow: hidden; border-radius: 6px; background: #888 }
.stage img, .stage canvas { position: absolute; inset: 0; width: 100%; height: 100% }
.stage img.coarse { image-rendering: pixelated }
.stage canvas { opacity: .6; pointer-events: none }
.box { position: absolute; padding: 0; background: none; border: 2px solid var(--own); outline: 1px solid #0008; border-radius: 2px; cursor: pointer; font: inherit }
.box span { position: absolute; left: -2px; bottom: 100%; padding: 0 .3em; font-size: .72rem; line-height: 1.35; white-space: nowrap; color: #111; background: var(--own); border-radius: 2px }
.box.low span { bottom: auto; top: 0 } .box.right span { left: auto; right: -2px }
.seen-other .box { visibility: hidden }
button:focus-visible, input:focus-visible, select:focus-visible { outline: 3px solid var(--accent); outline-offset: 1px }
.box.on, .box:hover { border-width: 4px }
.status { margin: .5rem 0 .4rem; font-size: .92rem; color: var(--soft); min-height: 3em }
.controls { display: flex; flex-wrap: wrap; gap: .6rem; align-items: center; font-size: .92rem; min-height: 2.2rem }
select, .clear { font: inherit; max-width: 100%; min-width: 0; color: inherit; background: var(--paper); border: 1px solid var(--line); border-radius: 6px; padding: .2rem .5rem }
.said h3 { font-size: 1rem; margin: 0 0 .3rem } .said h3 + * { margin-top: 0 } .said > * + h3 { margin-top: 1.2rem }
.caption { display: flex; flex-wrap: wrap; gap: .15rem; margin: 0 0 .3rem; font-size: 1.1rem }
.word { font: inherit; color: inherit; background: none; border: 1px solid transparent; border-radius: 4px; padding: 0 .2rem; cursor: pointer }
button.word { border-bottom-color: var(--line) } button.word:hover, .word.on { background: var(--accent); color: var(--paper) }
.note { margin: 0; font-size: .9rem; color: var(--soft) }
.question { border-bottom: 1px solid var(--line); padding: .35rem 0 }
.question > label { display: grid; grid-template-columns: auto 1fr auto; gap: .6rem; cursor: pointer; align-items: baseline }
.question > label > * { min-width: 0; overflow-wrap: anywhere }
.given { text-align: right; max-width: 11rem } .right { color: #1a7f45 } .wrong { color: #c0362c }
@media (prefers-color-scheme: dark) { .right { color: #5fce8f } .wrong { color: #ff8d80 } }
.answers { display: none; margin: .4rem 0 .4rem 1.6rem } .question:has(input:checked) .answers { display: block }
.bar { display: grid; grid-template-columns: minmax(0, 9rem) 1fr 4rem; gap: .5rem; align-items: center; font-size: .9rem }
.bar i { height: .6rem; background: var(--accent); border-radius: 3px; min-width: 1px } .bar b { font-weight: 400; overflow-wrap: anywhere } .bar span { text-align: right; font-variant-numeric: tabular-nums }
)";

// Draws maps as overlay() does: stretched bilinearly, with the colours of inferno.
constexpr std::string_view gallery_script = R"(
const bytes = text => Uint8Array.from(atob(text), c => c.charCodeAt(0)), colors = bytes(data.colors);
function paint(canvas, look, number, ratio) {
  const rows = look.rows, columns = look.columns, map = look.bytes ||= bytes(look.maps), from = number * rows * columns;
  const width = canvas.width = ratio >= 1 ? 256 : Math.max(1, Math.round(256 * ratio));
  const height = canvas.height = ratio >= 1 ? Math.max(1, Math.round(256 / ratio)) : 256;
  const pen = canvas.getContext('2d'), image = pen.createImageData(width, height);
  const place = (i, size, cells) => {
    const at = Math.min(Math.max((i + .5) * cells / size - .5, 0), cells - 1), low = Math.floor(at);
    return [low, Math.min(low + 1, cells - 1), at - low];
  };
  for (let y = 0; y < height; ++y) {
    const [top, below, v] = place(y, height, rows);
    for (let x = 0; x < width; ++x) {
      const [left, right, u] = place(x, width, columns), at = (r, c) => map[from + r * columns + c];
      const value = (at(top, left) * (1 - u) + at(top, right) * u) * (1 - v) + (at(below, left) * (1 - u) + at(below, right) * u) * v;
      const color = 3 * Math.round(value), to = 4 * (y * width + x);
      image.data.set([colors[color], colors[color + 1], colors[color + 2], 255], to);
    }
  }
  pen.putImageData(image, 0, 0);
}
for (const section of document.querySelectorAll('.picture')) {
  const find = name => section.querySelector(name), stage = find('.stage'), canvas = find('canvas'), status = find('.status');
  const which = find('select'), clear = find('.clear'), whole = find('img'), seen = find('img.seen'), hint = status.textContent;
  const all = [...section.querySelectorAll('[data-look]')], chosen = {};
  let pinned = null, over = null;
  function show() {
    const element = over || pinned, look = element && data.looks[element.dataset.look], names = look && data.names[look.names];
    for (const other of all) other.classList.toggle('on', other === element);
    for (const other of all) if (other.type === 'button') other.setAttribute('aria-pressed', other === pinned);
    const mapped = !!names, other = mapped && look.seen;
    canvas.hidden = !mapped; which.hidden = !mapped; clear.hidden = !element;
    status.textContent = look ? look.text : hint;
    if (seen) { seen.hidden = !other; stage.classList.toggle('seen-other', other); stage.style.aspectRatio = other ? stage.dataset.seen : stage.dataset.whole; }
    if (!mapped) return;
    let number = names.indexOf(chosen[look.kind]);
    if (number < 0) number = look.first;
    if (which.dataset.names !== String(look.names)) {
      which.replaceChildren(...names.map((name, i) => new Option(name, i)));
      which.dataset.names = look.names;
    }
    which.value = number;
    const shown = other ? seen : whole;
    paint(canvas, look, number, shown.naturalWidth / shown.naturalHeight);
  }
  which.addEventListener('change', () => { const look = data.looks[(over || pinned).dataset.look]; chosen[look.kind] = data.names[look.names][which.value]; show(); });
  function free() { pinned = over = null; for (const input of section.querySelectorAll('input')) input.checked = false; show(); }
  clear.addEventListener('click', free);
  section.addEventListener('keydown', event => { if (event.key === 'Escape') free(); });
  for (const element of all) {
    if (element.type === 'radio') { element.addEventListener('change', () => { pinned = element; over = null; show(); }); continue; }
    element.addEventListener('pointerenter', event => { if (event.pointerType === 'mouse') { over = element; show(); } });
    element.addEventListener('pointerleave', () => { over = null; show(); });
    element.addEventListener('focus', () => { if (element.matches(':focus-visible')) { over = element; show(); } });
    element.addEventListener('blur', () => { over = null; show(); });
    element.addEventListener('click', () => {
      const again = pinned === element;
      free();
      pinned = again ? null : element;
      show();
    });
  }
  whole.decode().then(show, show);
}
)";

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string picture_source(const io::Image& image) {
  const std::vector<std::uint8_t> png = io::encode_png(image);
  return "data:image/png;base64," + io::encode_base64({reinterpret_cast<const char*>(png.data()), png.size()});
}

// The page as it grows: its body, and the maps for its script.
class Gallery {
 public:
  std::string finish(const std::string& title, const std::string& lead, const std::vector<GalleryPicture>& pictures) {
    for (const GalleryPicture& picture : pictures) {
      append(picture);
    }
    std::string colors;
    for (int i = 0; i < 256; ++i) {
      const Color color = inferno(static_cast<float>(i) / 255);
      colors.append(color.begin(), color.end());
    }
    const json data = {{"colors", io::encode_base64(colors)}, {"names", names_}, {"looks", looks_}};
    body_ += fmt::format("<script>\nconst data = {};\n{}</script>\n", script_json(data), gallery_script);
    return html_frame(title, lead, body_, gallery_style);
  }

 private:
  void append(const GalleryPicture& picture) {
    const std::string name = io::escape_xml(picture.name);
    body_ +=
        fmt::format("<section class=\"picture\">\n<h2>{}</h2>\n<div class=\"columns\">\n<div class=\"view\">\n", name);
    const io::Image image = small_enough(picture.image, largest_side);
    const std::string ratio = ratio_of(image);
    body_ += fmt::format(
        "<div class=\"stage\" style=\"aspect-ratio: {0}\" data-whole=\"{0}\"{1}>\n<img src=\"{2}\"{3} alt=\"{4}\">\n",
        ratio, picture.seen ? fmt::format(" data-seen=\"{}\"", ratio_of(*picture.seen)) : "", picture_source(image),
        coarse(image, ""), name);
    if (picture.seen) {
      body_ += fmt::format("<img src=\"{}\"{} alt=\"What the captioner saw of {}\" hidden>\n",
                           picture_source(*picture.seen), coarse(*picture.seen, "seen"), name);
    }
    body_ += "<canvas hidden></canvas>\n";
    if (picture.boxes) {
      append(*picture.boxes);
    }
    body_ += fmt::format(
        "</div>\n<p class=\"status\" aria-live=\"polite\">{}</p>\n<div class=\"controls\"><select "
        "aria-label=\"Attention\" "
        "hidden></select><button class=\"clear\" type=\"button\" hidden>Clear</button></div>\n</div>\n<div "
        "class=\"said\">\n",
        hint(picture));
    if (picture.boxes && picture.boxes->empty()) {
      body_ += "<h3>Objects</h3>\n<p class=\"note\">The detector found none.</p>\n";
    }
    if (picture.caption) {
      append(*picture.caption, picture.caption_note, picture.seen.has_value());
    }
    if (!picture.questions.empty()) {
      append(picture.questions);
    }
    body_ += "</div>\n</div>\n</section>\n";
    ++pictures_;
  }

  static std::string ratio_of(const io::Image& image) { return fmt::format("{} / {}", image.width, image.height); }
  static std::string coarse(const io::Image& image, std::string_view name) {
    const bool squares = std::max(image.width, image.height) <= pixels_shown;
    return fmt::format(" class=\"{}{}\"", name, squares ? (name.empty() ? "coarse" : " coarse") : "");
  }

  // What can be chosen, in words.
  static std::string hint(const GalleryPicture& picture) {
    const auto any = [](const auto& said) {
      return std::ranges::any_of(said, [](const auto& one) { return !one.looks.maps.empty(); });
    };
    std::vector<std::string> choices;
    if (picture.boxes && any(*picture.boxes)) {
      choices.emplace_back("a box");
    }
    if (picture.caption && any(*picture.caption)) {
      choices.emplace_back("a word");
    }
    if (any(picture.questions)) {
      choices.emplace_back("a question");
    }
    return choices.empty() ? ""
                           : fmt::format("Choose {} to see where the model looked: bright where it looked most.",
                                         fmt::join(choices, " or "));
  }

  // The larger ones first, so that smaller ones lie on top.
  void append(const std::vector<GalleryBox>& boxes) {
    std::vector<std::size_t> order(boxes.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return boxes[i].place.area(); });
    for (const std::size_t i : order) {
      const GalleryBox& box = boxes[i];
      const auto inside = [](double share) { return 100 * std::clamp(share, 0.0, 1.0); };
      const double left = inside(box.place.x0);
      const double top = inside(box.place.y0);
      const std::string label = fmt::format("{} {:.2f}", box.label, box.score);
      body_ += fmt::format(
          "<button type=\"button\" class=\"box{}{}\" style=\"left: {:.2f}%; top: {:.2f}%; width: {:.2f}%; height: "
          "{:.2f}%; --own: rgb({})\"{}><span>{}</span></button>\n",
          top < 8 ? " low" : "", left > 70 ? " right" : "", left, top, inside(box.place.x1) - left,
          inside(box.place.y1) - top, fmt::format("{}, {}, {}", box.color[0], box.color[1], box.color[2]),
          look("box", fmt::format("Where the decoder looked for the box “{}”.", label), box.looks, false),
          io::escape_xml(label));
    }
  }

  void append(const std::vector<GalleryWord>& caption, const std::string& note, bool seen) {
    body_ += "<h3>Caption</h3>\n<p class=\"caption\">";
    for (const GalleryWord& word : caption) {
      const std::string text = io::escape_xml(word.word);
      body_ += word.looks.maps.empty()
                   ? fmt::format("<span class=\"word\">{}</span> ", text)
                   : fmt::format("<button type=\"button\" class=\"word\"{}>{}</button> ",
                                 look("word",
                                      fmt::format("Where the captioner looked when it wrote “{}”{}.", word.word,
                                                  seen ? ", in the part of the picture that it saw" : ""),
                                      word.looks, seen),
                                 text);
    }
    body_ += "</p>\n";
    append_note(note);
  }

  void append_note(const std::string& note) {
    if (!note.empty()) {
      body_ += fmt::format("<p class=\"note\">{}</p>\n", io::escape_xml(note));
    }
  }

  void append(const std::vector<GalleryQuestion>& questions) {
    body_ += "<h3>Questions</h3>\n<div role=\"radiogroup\" aria-label=\"Questions\">\n";
    for (const GalleryQuestion& question : questions) {
      std::string given = "no answer";
      if (!question.best.empty()) {
        const GalleryAnswer& first = question.best.front();
        given = fmt::format("{} {}", io::escape_xml(first.text), percent(first.probability));
      }
      if (question.right) {
        given = fmt::format("<span class=\"{0}\">{1} {2}</span>", *question.right ? "right" : "wrong",
                            *question.right ? "✓" : "✗", given);
      }
      const std::string text =
          question.looks.maps.empty()
              ? "This model looks at no part of the picture more than at others."
              : fmt::format("Where the model looked to answer “{}”: {}.", question.text, question.best.front().text);
      body_ += fmt::format(
          "<div class=\"question\"><label><input type=\"radio\" name=\"question-{}\"{}><span>{}</span><span "
          "class=\"given\">{}</span></label>\n<div class=\"answers\">",
          pictures_, look("question", question.best.empty() ? question.note : text, question.looks, false, true),
          io::escape_xml(question.text), given);
      for (const GalleryAnswer& answer : question.best) {
        body_ += fmt::format("<div class=\"bar\"><b>{}</b><i style=\"width: {:.1f}%\"></i><span>{}</span></div>\n",
                             io::escape_xml(answer.text), 100 * answer.probability, percent(answer.probability));
      }
      append_note(question.note);
      body_ += "</div></div>\n";
    }
    body_ += "</div>\n";
  }

  // Keeps what the script shows, and returns the attribute that names it; "" if there is nothing to show.
  std::string look(const char* kind, const std::string& text, const Looks& looks, bool seen, bool always = false) {
    if (looks.maps.empty() && !always) {
      return "";
    }
    json entry = {{"kind", kind}, {"text", text}};
    if (!looks.maps.empty()) {
      std::vector<std::string> names;
      std::string values;
      const Shape shape = looks.maps.front().second.shape();
      for (const auto& [name, map] : looks.maps) {
        check(map.rank() == 2 && map.shape() == shape,
              "the maps of a gallery are [rows, columns], those of one thing "
              "of one shape");
        names.push_back(name);
        const std::vector<float> cells = map.contiguous().values();
        const auto [low, high] = std::ranges::minmax(cells);
        const float range = high > low ? high - low : 1.0F;
        for (const float cell : cells) {
          values.push_back(static_cast<char>(std::lround(255 * (cell - low) / range)));
        }
      }
      const auto [place, is_new] = places_.try_emplace(names, names_.size());
      if (is_new) {
        names_.push_back(names);
      }
      entry.update({{"names", place->second},
                    {"first", looks.first},
                    {"rows", shape[0]},
                    {"columns", shape[1]},
                    {"seen", seen},
                    {"maps", io::encode_base64(values)}});
    }
    looks_.push_back(std::move(entry));
    return fmt::format(" data-look=\"{}\"", looks_.size() - 1);
  }

  std::string body_;
  json looks_ = json::array();
  json names_ = json::array();
  std::map<std::vector<std::string>, std::size_t> places_;  // of lists of names
  int pictures_ = 0;
};

}  // namespace

std::string gallery_page(const std::string& title, const std::string& lead,
                         const std::vector<GalleryPicture>& pictures) {
  return Gallery().finish(title, lead, pictures);
}

}  // namespace vitrail::explain
