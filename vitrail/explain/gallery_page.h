/// \file
/// A page of pictures with what models say about them, and where each of them looked.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/data/boxes/box.h"
#include "vitrail/explain/drawing/colormap.h"
#include "vitrail/io/image.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::explain {

/// Where a model looked for one thing that it says: maps [rows, columns] of one shape, with their names ("layer 2, head
/// 0"). Without any, the page offers none.
struct Looks {
  std::vector<std::pair<std::string, Tensor>> maps;
  std::size_t first = 0;  ///< the map that is shown at first
};

struct GalleryBox {
  std::string label;  ///< "bird"
  double score = 0;
  data::Box place;  ///< in shares of the picture's width and height
  Color color = {255, 255, 255};
  Looks looks;
};

struct GalleryWord {
  std::string word;
  Looks looks;
};

struct GalleryAnswer {
  std::string text;
  double probability = 0;
};

struct GalleryQuestion {
  std::string text;
  std::vector<GalleryAnswer> best;  ///< the likeliest first; none if there is no answer
  std::optional<bool> right;        ///< whether the first is, if that is known
  std::string note;                 ///< what else is to be said: the right answer, or why there is none
  Looks looks;
};

/// A picture and what was said about it. What no model was asked for is left out of the page.
struct GalleryPicture {
  std::string name;
  io::Image image;
  std::optional<std::vector<GalleryBox>> boxes;
  std::optional<std::vector<GalleryWord>> caption;
  std::string caption_note;       ///< what else is to be said of the caption
  std::optional<io::Image> seen;  ///< what the captioner saw, if that is not the whole picture
  std::vector<GalleryQuestion> questions;
};

/// One self-contained HTML page, pictures, maps and script inside: boxes, words and questions can be chosen by pointer,
/// touch or keyboard, and the map of what is chosen lies over the picture as overlay() draws it. Large pictures are
/// made smaller. It is readable on a phone and in dark mode, and without scripts, but then shows no maps.
std::string gallery_page(const std::string& title, const std::string& lead,
                         const std::vector<GalleryPicture>& pictures);

}  // namespace vitrail::explain
