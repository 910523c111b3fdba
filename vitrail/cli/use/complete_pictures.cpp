#include "vitrail/cli/use/complete_pictures.h"

#include <algorithm>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "vitrail/cli/flags.h"
#include "vitrail/cli/images.h"
#include "vitrail/cli/interrupted.h"
#include "vitrail/data/color_clusters.h"
#include "vitrail/data/resize.h"
#include "vitrail/explain/drawing/drawing.h"
#include "vitrail/generate/generate.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/random.h"
#include "vitrail/train/run/interrupt.h"

namespace vitrail::cli {
namespace {

using Ids = std::vector<std::int64_t>;

constexpr std::int64_t drawn_side = 96;  // least pixels of a side in the strip
constexpr std::int64_t gap = 4;
constexpr std::int64_t most_height = 65500;  // which programs that show images take

io::Image enlarged(const io::Image& image) {
  const std::int64_t times = std::max<std::int64_t>(1, drawn_side / image.width);
  return data::resize(image, image.width * times, image.height * times, data::Interpolation::nearest);
}

// The first `rows` rows of a picture, and gray below them.
io::Image upper_part(io::Image image, std::int64_t rows) {
  std::fill(image.pixels.begin() + rows * image.width * 3, image.pixels.end(), std::uint8_t{225});
  return image;
}

io::Image strip_of(const std::vector<std::vector<io::Image>>& lines) {
  const io::Image first = enlarged(lines.front().front());
  const std::int64_t step = first.width + gap;
  const auto columns = std::ssize(lines.front());
  io::Image strip = explain::white_image(columns * step + gap, std::ssize(lines) * step + gap);
  for (std::int64_t line = 0; line < std::ssize(lines); ++line) {
    const std::vector<io::Image>& images = lines[static_cast<std::size_t>(line)];
    for (std::int64_t i = 0; i < std::ssize(images); ++i) {
      explain::paste(strip, enlarged(images[static_cast<std::size_t>(i)]), gap + i * step, gap + line * step);
    }
  }
  return strip;
}

}  // namespace

void complete_pictures(const models::LanguageBody& model, const std::filesystem::path& folder,
                       const std::optional<std::string>& pictures, const PictureFlags& flags,
                       generate::GenerationConfig config, std::uint64_t seed, DType dtype) {
  check_usage(!flags.output.empty(), "the model's words are colours: --output FILE.png says where its pictures go");
  const data::ColorClusters clusters = data::read_clusters(folder);
  const std::int64_t pixels = clusters.size * clusters.size;
  check(model.vocab_size() == clusters.count() + 1,
        "'{}': {} colours and the token that begins a picture are not the {} "
        "tokens that the model knows",
        folder.string(), clusters.count(), model.vocab_size());
  check_usage(!flags.rows || *flags.rows < clusters.size,
              "--rows {} leaves nothing of a picture of {} rows to complete", flags.rows.value_or(0), clusters.size);
  const std::int64_t rows = pictures ? flags.rows.value_or(clusters.size / 2) : 0;
  check_usage(pictures || flags.rows.value_or(0) == 0, "--rows {} of no picture cannot be given: name one",
              flags.rows.value_or(0));
  std::vector<NamedImage> named;
  if (pictures) {
    named = list_images({*pictures}, flags.output);
  }
  const std::int64_t height =
      std::ssize(named) * (clusters.size * std::max<std::int64_t>(1, drawn_side / clusters.size) + gap) + gap;
  check(height <= most_height, "{} make an image of {} pixels in height, but at most {} are drawn: name fewer",
        io::counted(std::ssize(named), "pictures"), height, most_height);
  config.max_new_tokens = pixels - rows * clusters.size;
  config.eos_token_id = {};
  std::vector<std::vector<io::Image>> lines;
  for (std::size_t i = 0; i < std::max<std::size_t>(named.size(), 1); ++i) {
    Ids prompt = {clusters.count()};
    std::vector<io::Image> line;
    if (pictures) {
      const Ids whole = clusters.encode(named[i].read());
      line.push_back(clusters.decode(whole));
      line.push_back(upper_part(line.front(), rows));
      prompt.insert(prompt.end(), whole.begin(), whole.begin() + rows * clusters.size);
    }
    const generate::GenerateOptions options{
        .dtype = dtype, .seed = mix(seed, i), .interrupted = train::Interrupt::requested};
    for (const generate::Sequence& sequence : generate::generate(model, prompt, config, options)) {
      end_if_interrupted();
      Ids all(prompt.begin() + 1, prompt.end());
      all.insert(all.end(), sequence.ids.begin(), sequence.ids.end());
      line.push_back(clusters.decode(all));
    }
    lines.push_back(std::move(line));
  }
  io::write_png(flags.output, strip_of(lines));
  fmt::print("{}\n", flags.output);
}

}  // namespace vitrail::cli
