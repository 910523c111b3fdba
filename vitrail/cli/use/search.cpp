// `vitrail index`, `search` and `duplicates`: features of whole folders of images, and what lies near in them.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <unordered_map>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/images.h"
#include "vitrail/cli/print_json.h"
#include "vitrail/cli/say.h"
#include "vitrail/cli/use/index_model.h"
#include "vitrail/data/beside.h"
#include "vitrail/data/dataset.h"
#include "vitrail/data/resize.h"
#include "vitrail/explain/drawing/drawing.h"
#include "vitrail/explain/overlay.h"
#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/base/shipped.h"
#include "vitrail/train/run/progress.h"
#include "vitrail/train/study/image_index.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t shown_side = 128;  // pixels of an image on a contact sheet

struct IndexFlags {
  ModelFlags model;
  ComputeFlags compute;
  DataFlags images;
  std::string pool;
  std::string output;
};

void make_index(const IndexFlags& flags) {
  std::error_code none;
  train::ImageIndex index;
  bool moved = false;
  const std::string source = data::absolute_source(flags.images.data);
  if (fs::exists(flags.output, none)) {
    index = train::load_index(flags.output);
    moved = index.source != source && train::has_moved(index, source);
    if (moved) {
      say("note: '{}' is not there any more: the index goes on with '{}'\n", index.source, source);
      index.source = source;
    }
    check(index.source == source, "'{}' is an index of '{}', not of '{}'", flags.output, index.source, source);
    check(flags.pool.empty() || flags.pool == index.pool, "'{}' was made {}, not with --pool {}", flags.output,
          index.pool.empty() ? "without --pool" : "with --pool " + index.pool, flags.pool);
    const std::string changes = changes_of(flags.model);
    check(changes.empty() || changes == index.changes, "'{}' was made {}, not with {}: leave these flags out",
          flags.output, index.changes.empty() ? "with the model and images as they are" : "with " + index.changes,
          changes);
  } else {
    check_usage(!flags.model.model.empty(), "a --model is needed to make a new index, such as vitrail/cifar10_resnet");
    index.source = source;
    index.pool = flags.pool;
    index.changes = changes_of(flags.model);
  }
  ModelFlags chosen = flags.model;
  apply_changes(index.changes, flags.output, chosen);
  if (chosen.model.empty()) {
    chosen.model = index.model;
  }
  const IndexModel model(chosen, index.pool);
  const bool is_path = models::names_folder(chosen.name_or_folder()) && !models::is_shipped_name(chosen.model);
  const std::string name = is_path ? fs::absolute(chosen.model).string() : chosen.model;
  train::Progress progress(stderr);
  train::EvaluateOptions options = flags.images.options(flags.compute.apply());
  bool begun = false;
  if (progress.terminal()) {
    options.progress = [&](std::int64_t done, std::int64_t total) {
      if (!begun) {
        progress.begin("new images", total);
        begun = true;
      }
      progress.update(done, "");
    };
  }
  const train::IndexChanges changes =
      train::update_index(index, model.encoder(name), options,
                          [&](const train::ImageIndex& whole) { train::save_index(flags.output, whole); });
  progress.end();
  if (moved) {
    train::save_index(flags.output, index);  // where its images are now, even if none of them is new
  }
  std::ranges::for_each(changes.notes, say_note);
  for (const std::string& broken : changes.broken) {
    fmt::print("left out: {}\n", broken);
  }
  fmt::print("{}: {}, {} new, {} gone or changed\n", flags.output, io::counted(std::ssize(index.images), "images"),
             changes.added, changes.removed);
}

// The images of an index as they lie in its source.
class Source {
 public:
  explicit Source(const train::ImageIndex& index) : index_(index), images_(data::open_unlabeled(index.source, true)) {
    for (std::int64_t i = 0; i < images_->size(); ++i) {
      places_.emplace(io::as_utf8(images_->name(i)), i);  // as the index has them
    }
  }
  // Nothing if it is not there any more.
  std::optional<io::Image> image(std::int64_t number) const {
    const auto place = places_.find(index_.images[static_cast<std::size_t>(number)].name);
    return place == places_.end() ? std::nullopt : std::optional(images_->image(place->second));
  }

 private:
  const train::ImageIndex& index_;
  std::unique_ptr<data::Dataset> images_;
  std::unordered_map<std::string, std::int64_t> places_;
};

// An image that fits into a square of the contact sheet, over a line of text.
io::Image cell(const io::Image& image, const std::string& text) {
  const double scale = static_cast<double>(shown_side) / static_cast<double>(std::max(image.width, image.height));
  const auto width = std::max<std::int64_t>(1, static_cast<std::int64_t>(scale * static_cast<double>(image.width)));
  const auto height = std::max<std::int64_t>(1, static_cast<std::int64_t>(scale * static_cast<double>(image.height)));
  io::Image result = explain::white_image(shown_side, shown_side + explain::letter_height + 2);
  explain::paste(result, data::resize(image, width, height, data::Interpolation::bicubic), (shown_side - width) / 2,
                 (shown_side - height) / 2);
  explain::draw_text(result, 0, shown_side + 2, text, 1);
  return result;
}

// A query in words, in the place of an image.
io::Image cell(const std::string& text) {
  io::Image result = explain::white_image(shown_side, shown_side + explain::letter_height + 2);
  const auto longest = static_cast<std::size_t>(shown_side / explain::letter_width);
  std::int64_t top = 0;
  std::string line;
  const auto flush = [&] {
    explain::draw_text(result, 0, top, line, 1);
    top += explain::letter_height + 2;
    line.clear();
  };
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > longest) {
      flush();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  flush();
  return result;
}

struct SearchFlags {
  std::string index;
  std::vector<std::string> images;
  std::vector<std::string> texts;
  std::int64_t count = 10;
  std::string output;
  bool json = false;
  bool skip_broken = false;
  ComputeFlags compute;
};

// Says so if the source of an index has gone.
void note_gone(const train::ImageIndex& index) {
  std::error_code none;
  if (data::is_one_path(index.source) && !fs::exists(index.source, none)) {
    say("note: '{}' is not there any more: the index tells where its images were (if they have moved, `vitrail index` "
        "of that folder goes on with it)\n",
        index.source);
  }
}

void search_images(const SearchFlags& flags) {
  const DType dtype = flags.compute.apply();
  const train::ImageIndex index = train::load_index(flags.index);
  std::error_code none;
  if (io::is_file(flags.output) && fs::is_directory(index.source, none) && data::lies_in(flags.output, index.source)) {
    for (std::int64_t i = 0; i < std::ssize(index.images); ++i) {
      check_not_input(flags.output, train::path_of(index, i));
    }
  }
  note_gone(index);
  if (flags.compute.amp || !flags.compute.dtype.empty()) {
    note_int8_weights(index.model, flags.compute.amp ? "--amp" : "--dtype");
  }
  ModelFlags chosen;
  chosen.model = index.model;
  apply_changes(index.changes, flags.index, chosen);
  const IndexModel model(chosen, index.pool);
  train::check_made_by(index, model.encoder(index.model), fmt::format("'{}'", flags.index));
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  std::vector<std::vector<io::Image>> sheet;
  std::optional<Source> source;
  std::set<std::int64_t> gone;  // of what is found
  if (!flags.output.empty()) {
    source.emplace(index);
  }
  const auto find = [&](const std::string& query, const io::Image& shown, const Tensor& x) {
    const std::vector<train::Hit> hits = train::search(index, x, flags.count)[0];
    if (source) {
      sheet.push_back({shown});
      for (const train::Hit& hit : hits) {
        const std::optional<io::Image> image = source->image(hit.image);
        sheet.back().push_back(image ? cell(*image, fmt::format("{:.3f}", hit.cosine)) : cell("not there any more"));
      }
    }
    nlohmann::ordered_json found = nlohmann::ordered_json::array();
    for (const train::Hit& hit : hits) {
      found.push_back({{"image", train::path_of(index, hit.image)}, {"cosine", hit.cosine}});
      if (train::is_gone(index, hit.image)) {
        gone.insert(hit.image);
      }
    }
    json.push_back({{"query", io::as_utf8(query)}, {"found", found}});
  };
  if (!flags.texts.empty()) {
    const Tensor x = model.of_texts(flags.texts, dtype);
    for (std::size_t i = 0; i < flags.texts.size(); ++i) {
      find(flags.texts[i], cell(flags.texts[i]), x.narrow(0, static_cast<std::int64_t>(i), 1));
    }
  }
  if (!flags.images.empty()) {
    for (const NamedImage& query : list_images(flags.images, flags.output, flags.skip_broken)) {
      if (const std::optional<io::Image> image = read_image(query, flags.skip_broken)) {
        find(query.name, cell(*image, "query"), model.of_image(*image, dtype));
      }
    }
  }
  if (!gone.empty()) {
    say_note(fmt::format(
        "{} that {} found {} not there any more: `vitrail index {} --output {}` brings the index up to date",
        io::counted(std::ssize(gone), "images"), gone.size() == 1 ? "is" : "are", gone.size() == 1 ? "is" : "are",
        io::shell_word(index.source), io::shell_word(flags.index)));
  }
  if (source) {
    io::write_png(flags.output, explain::sheet(sheet));
  }
  if (flags.json) {
    print_json(json);
    return;
  }
  for (const auto& query : json) {
    if (json.size() > 1) {
      fmt::print("{}\n", io::on_one_line(query["query"].get<std::string>()));
    }
    for (const auto& hit : query["found"]) {
      fmt::print("{:.4f}  {}\n", hit["cosine"].get<double>(), io::on_one_line(hit["image"].get<std::string>()));
    }
  }
}

struct DuplicateFlags {
  std::string index;
  double threshold = 0.95;
  bool json = false;
  ComputeFlags compute;
};

void find_duplicates(const DuplicateFlags& flags) {
  flags.compute.apply();
  const train::ImageIndex index = train::load_index(flags.index);
  note_gone(index);
  train::Progress progress(stderr);
  if (progress.terminal()) {
    progress.begin("comparing", std::ssize(index.images));
  }
  const auto groups = train::duplicates(index, flags.threshold, [&](std::int64_t done) {
    if (progress.terminal()) {
      progress.update(done, "");
    }
  });
  progress.end();
  nlohmann::json json = nlohmann::json::array();
  for (const std::vector<std::int64_t>& group : groups) {
    nlohmann::json& names = json.emplace_back(nlohmann::json::array());
    for (const std::int64_t image : group) {
      names.push_back(train::path_of(index, image));
    }
  }
  if (flags.json) {
    print_json(json);
    return;
  }
  for (const nlohmann::json& group : json) {
    for (const nlohmann::json& name : group) {
      fmt::print("{}\n", io::on_one_line(name.get<std::string>()));
    }
    fmt::print("\n");
  }
  fmt::print("{} of alike images among {}\n", io::counted(std::ssize(groups), "groups"), index.images.size());
  const auto largest =
      groups.empty() ? 0 : std::ssize(*std::ranges::max_element(groups, {}, &std::vector<std::int64_t>::size));
  if (2 * largest > std::ssize(index.images) && largest > 2) {
    say_note(
        fmt::format("{} of {} images are alike by --threshold {}: '{}' finds most images alike, so that a larger "
                    "threshold tells more, or a model that has learnt more",
                    largest, index.images.size(), flags.threshold, index.model));
  }
}

}  // namespace

void add_index(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("index", "Keep features of a folder of images, to search in");
  const auto flags = std::make_shared<IndexFlags>();
  command.add_option("IMAGES", flags->images.data, "Folder with images at any depth, or a .tar")
      ->required()
      ->type_name("");
  command
      .add_option("--model", flags->model.model,
                  "Model to compute features by: a name or a folder (default: that of an index which is there); with a "
                  "CLIPModel or SiglipModel, texts find images too")
      ->type_name("MODEL");
  expect_ending(
      command.add_option("--output", flags->output, "Index to write; one that is there is brought up to date")
          ->required(),
      ".index");
  command.add_option("--pool", flags->pool, "Pooling, as in vitrail embed")->type_name("POOL");
  add_loading_flags(command, flags->images);
  add_compute_flags(command, flags->compute);
  add_model_changes(command, flags->model);
  add_image_flags(command, flags->model);
  add_examples(command, {"vitrail index albums --model my_dinov2 --output albums.index",
                         "vitrail search albums.index holiday.jpg -k 20 --output found.png"});
  command.callback([flags] {
    check_usage(!flags->model.num_classes, "--num-classes has no effect: an index holds features, not classes");
    make_index(*flags);
  });
}

void add_search(CLI::App& app) {
  CLI::App& command =
      *app.add_subcommand("search", "Find the images of an index that are nearest to others, or to a text");
  const auto flags = std::make_shared<SearchFlags>();
  command.add_option("INDEX", flags->index, "Index from vitrail index")->required()->type_name("");
  add_images_argument(command, flags->images);
  command.get_option("IMAGES")->required(false);
  command
      .add_option_function<std::vector<std::string>>(
          "--image",
          [flags = flags.get()](const std::vector<std::string>& more) {
            flags->images.insert(flags->images.end(), more.begin(), more.end());
          },
          "The same as IMAGES")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("IMAGE");
  command
      .add_option("--text", flags->texts,
                  "Texts to find images by, in an index that a model of images and texts has made (CLIP, SigLIP)")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("TEXT");
  command.add_option("-k,--topk", flags->count, "Number of images to find")
      ->capture_default_str()
      ->check(at_least(1))
      ->type_name("K");
  expect_ending(command.add_option("--output", flags->output, "Contact sheet to write")->type_name("FILE"), ".png");
  command.add_flag("--skip-broken", flags->skip_broken, "Leave broken images out and name them");
  command.add_flag("--json", flags->json, "Print JSON");
  add_compute_flags(command, flags->compute);
  add_examples(command, {"vitrail search albums.index holiday.jpg -k 20 --output found.png",
                         "vitrail search albums.index --text \"a red bird\" --output found.png"});
  command.callback([flags] {
    check_usage(!flags->images.empty() || !flags->texts.empty() || !io::is_image_name(flags->index),
                "'{0}' is an image: name the index to look through before it, such as `vitrail index photos --output "
                "photos.index` makes: vitrail search photos.index {0}",
                flags->index);
    check_usage(!flags->images.empty() || !flags->texts.empty(), "give IMAGES or --text to search by");
    std::error_code none;
    check_usage(
        !fs::is_directory(flags->index, none),
        "'{0}' is a folder, and no index: `vitrail index {0} --model vitrail/cifar10_resnet --output FILE.index` "
        "makes one of its images",
        flags->index);
    const auto is_blank = [](const std::string& text) {
      return text.find_first_not_of(" \t\r\n") == std::string::npos;
    };
    check_usage(std::ranges::none_of(flags->texts, is_blank), "a --text is empty: give words to search by");
    for (const std::string& text : flags->texts) {
      check_usage(!io::is_file(text), "'{}' is a file, and not what --text asks for: name images before it", text);
    }
    search_images(*flags);
  });
}

void add_duplicates(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("duplicates", "Find images of an index that are alike");
  const auto flags = std::make_shared<DuplicateFlags>();
  command.add_option("INDEX", flags->index, "Index from vitrail index")->required()->type_name("");
  command.add_option("--threshold", flags->threshold, "Cosine from which on images are alike")
      ->capture_default_str()
      ->check(share())
      ->type_name("X");
  command.add_flag("--json", flags->json, "Print JSON: a list of groups");
  add_threads_flag(command, flags->compute);
  add_examples(command, {"vitrail duplicates albums.index --threshold 0.98"});
  command.callback([flags] { find_duplicates(*flags); });
}

}  // namespace vitrail::cli
