// `vitrail gallery` makes a page of images with what a detector, a captioner and a model for questions say about them.
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "vitrail/cli/app.h"
#include "vitrail/cli/images.h"
#include "vitrail/cli/say.h"
#include "vitrail/cli/see/detector_attention.h"
#include "vitrail/cli/see/find_by_path.h"
#include "vitrail/cli/use/ask.h"
#include "vitrail/cli/use/captions.h"
#include "vitrail/cli/use/detect.h"
#include "vitrail/data/pairs/questions.h"
#include "vitrail/data/scenes/read.h"
#include "vitrail/data/scenes/truth.h"
#include "vitrail/data/transforms.h"
#include "vitrail/explain/box_overlay.h"
#include "vitrail/explain/caption_attention.h"
#include "vitrail/explain/gallery_page.h"
#include "vitrail/explain/overlay.h"
#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/train/captions/captions.h"
#include "vitrail/train/detection/detection_sheet.h"
#include "vitrail/train/vqa/answerer.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;
using explain::Looks;

constexpr std::int64_t most_cells = 1 << 15;  // of all maps of one thing: beyond it, heads are left out
constexpr std::size_t shown_answers = 5;

struct GalleryFlags {
  std::vector<std::string> images;
  ModelFlags detector, captioner, vqa;
  ComputeFlags compute;
  std::string questions;
  std::string split;
  std::vector<std::string> ask;
  std::string scenes;
  std::optional<double> threshold;  // none: train::shown_score
  bool skip_broken = false;
  std::string title = "What models see";
  std::string output = "gallery.html";
};

// The maps of layers, each [H, rows, columns]: the mean over heads, and each head where these are not too many. The
// last layer's mean is shown first.
Looks looks_of_layers(const std::vector<Tensor>& layers) {
  Looks looks;
  const std::int64_t heads = layers.front().size(0);
  const std::int64_t cells = layers.front().numel() / heads * (heads + 1) * std::ssize(layers);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Tensor layer = layers[i].contiguous();
    looks.first = looks.maps.size();
    looks.maps.emplace_back(fmt::format("layer {}, all heads", i), ops::mean(layer, {0}));
    for (std::int64_t h = 0; cells <= most_cells && h < heads; ++h) {
      looks.maps.emplace_back(fmt::format("layer {}, head {}", i, h), layer.select(0, h).contiguous());
    }
  }
  return looks;
}

class DetectorPart {
 public:
  DetectorPart(const GalleryFlags& flags, DType dtype)
      : flags_(flags), dtype_(dtype), detector_(open_detector(flags.detector)) {}

  void add(const io::Image& image, explain::GalleryPicture& picture) const {
    const DetectorLooks looked = looks_of(detector_, image, dtype_);
    std::vector<explain::GalleryBox>& boxes = picture.boxes.emplace();
    for (const train::FoundObject& object : looked.found) {
      if (object.score < flags_.threshold.value_or(train::shown_score)) {
        continue;
      }
      std::vector<Tensor> layers;
      layers.reserve(looked.decoder.size());
      for (const Tensor& map : looked.decoder) {
        layers.push_back(
            map.select(1, object.query).contiguous().reshape({map.size(0), looked.grid[0], looked.grid[1]}));
      }
      boxes.push_back(
          {.label = detector_.labels[static_cast<std::size_t>(object.label)],
           .score = object.score,
           .place = object.box.scaled(1.0 / static_cast<double>(image.width), 1.0 / static_cast<double>(image.height)),
           .color = explain::class_color(object.label),
           .looks = looks_of_layers(layers)});
    }
  }

 private:
  const GalleryFlags& flags_;
  DType dtype_;
  models::Detector detector_;
};

// The number that a scene's image is named by: 100003 of 100003.png.
std::optional<std::int64_t> index_of_scene(const std::string& name) {
  const std::string stem = fs::path(name).stem().string();
  const bool is_number = !stem.empty() && stem.size() < 18 && stem.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? std::optional(std::stoll(stem)) : std::nullopt;
}

class CaptionerPart {
 public:
  CaptionerPart(const GalleryFlags& flags, const std::vector<NamedImage>& images, DType dtype)
      : dtype_(dtype),
        model_(open_captioner(flags.captioner)),
        tokenizer_(text::load_tokenizer(flags.captioner.name_or_folder())) {
    CaptionFlags usual;
    usual.model = flags.captioner;
    options_ = caption_options_of(usual, *model_, dtype);
    if (!flags.scenes.empty()) {
      scenes_ = data::read_scenes(fs::is_directory(flags.scenes) ? fs::path(flags.scenes) / "scene.json"
                                                                 : fs::path(flags.scenes));
      check(std::ranges::any_of(images, [&](const NamedImage& image) { return scene_of(image.name) != nullptr; }),
            "'{}' knows none of these images: scenes are found by numbers, as 000007.png is the scene 7", flags.scenes);
    }
  }

  void add(const io::Image& image, explain::GalleryPicture& picture) const {
    const models::PretrainedConfig& how = model_->image_model.pretrained;
    const Tensor x = train::prepared(how, {image});
    const train::Caption said = train::captions_of(*model_, tokenizer_, x, options_).front().front();
    if (!data::shows_whole(how, image.width, image.height)) {
      picture.seen = explain::image_of(x, how.mean, how.std, 1);
    }
    std::vector<explain::GalleryWord>& caption = picture.caption.emplace();
    std::vector<Tensor> layers;
    if (!model_->cross_attention().empty() && !said.ids.empty()) {
      layers = explain::caption_attention(*model_, x, said.ids, dtype_);
    }
    for (const explain::CaptionWord& word : explain::words_of_caption(tokenizer_, said.ids)) {
      const auto first = static_cast<std::int64_t>(word.first);
      const auto count = static_cast<std::int64_t>(word.last - word.first);
      std::vector<Tensor> of_word;
      of_word.reserve(layers.size());
      for (const Tensor& layer : layers) {  // [H, N, rows, columns]
        of_word.push_back(ops::mean(layer.narrow(1, first, count).contiguous(), {1}));
      }
      const bool is_end = said.ids[word.first] == model_->end;
      caption.push_back({is_end ? "(end)" : word.word, of_word.empty() ? Looks{} : looks_of_layers(of_word)});
    }
    picture.caption_note = note_on(said.text, picture.name);
  }

 private:
  // What is in an image of this name; null if that is not known.
  const data::Scene* scene_of(const std::string& name) const {
    const auto index = index_of_scene(name);
    const auto scene = index ? scenes_.find(*index) : scenes_.end();
    return scene == scenes_.end() ? nullptr : &scene->second;
  }

  std::string note_on(const std::string& caption, const std::string& name) const {
    const data::Scene* const scene = scene_of(name);
    if (scene == nullptr) {
      return "";
    }
    const data::SceneVerdict verdict = data::caption_truth(caption, *scene);
    return verdict.truth == data::SceneTruth::holds ? "This is true of the scene."
           : verdict.truth == data::SceneTruth::fails
               ? fmt::format("This is not true of the scene: {}.", verdict.reason)
               : fmt::format("It cannot be told whether this is true: {}.", verdict.reason);
  }

  DType dtype_;
  std::unique_ptr<models::Captioner> model_;
  text::Tokenizer tokenizer_;
  train::CaptionOptions options_;
  std::map<std::int64_t, data::Scene> scenes_;
};

class QuestionsPart {
 public:
  QuestionsPart(const GalleryFlags& flags, const std::vector<NamedImage>& images, DType dtype)
      : flags_(flags), dtype_(dtype), answerer_(open_answerer(flags.vqa)) {
    if (answerer_->vqa() != nullptr) {
      known_.insert(answerer_->vqa()->answers.begin(), answerer_->vqa()->answers.end());
    }
    if (flags.questions.empty()) {
      return;
    }
    const data::ImageQuestions read = data::open_questions_of(flags.questions, flags.split, false, flags.skip_broken);
    std::vector<std::string> named;
    for (std::int64_t i = 0; i < read.images->size(); ++i) {
      named.push_back(read.images->name(i));
    }
    std::vector<std::string> unclear;
    for (const auto& [path, index] : find_by_path(images, named, unclear)) {
      questions_.emplace(path, read.questions[index]);
    }
    for (const std::string& path : unclear) {
      say("note: it is not clear which image '{}' of '{}' is: its questions are left out\n", path, flags.questions);
    }
    check(!questions_.empty(), "'{}' has no question about any of these images: it asks about {} and others",
          flags.questions, named.front());
  }

  void add(const io::Image& image, const std::string& path, explain::GalleryPicture& picture) const {
    const auto own = questions_.find(path);
    if (own != questions_.end()) {
      for (const data::Question& question : own->second) {
        picture.questions.push_back(answered(image, question.text, &question));
      }
    }
    for (const std::string& question : flags_.ask) {
      picture.questions.push_back(answered(image, question, nullptr));
    }
  }

 private:
  explain::GalleryQuestion answered(const io::Image& image, const std::string& text,
                                    const data::Question* question) const {
    explain::GalleryQuestion result;
    result.text = text;
    train::AnsweredQuestion answer;
    try {
      answer = answerer_->answer(image, text, {.best = shown_answers, .maps = true, .dtype = dtype_});
    } catch (const Error& error) {  // words that the model has never read, or too many of them
      result.note = error.what();
      return result;
    }
    for (train::GivenAnswer& one : answer.best) {
      result.best.push_back({std::move(one.text), one.probability});
    }
    if (question != nullptr) {
      result.right = data::vqa_accuracy(question->answers, result.best.front().text) == 1;
      result.note = *result.right ? "" : fmt::format("The right answer is {}.", question->answer);
      if (!known_.empty() && !known_.contains(question->answer)) {
        result.note += " The model has never learnt it.";
      }
    }
    result.looks = looks(answer);
    return result;
  }

  // The mean over words by layer and head, and before these the gradient-weighted map, if there is one.
  static Looks looks(const train::AnsweredQuestion& answer) {
    if (answer.maps.empty()) {
      return {};
    }
    const auto on_grid = [&](const Tensor& map) {  // [H, words, patches]
      return ops::mean(map.contiguous(), {1}).reshape({map.size(0), answer.grid[0], answer.grid[1]});
    };
    std::vector<Tensor> layers;
    layers.reserve(answer.maps.size());
    std::ranges::transform(answer.maps, std::back_inserter(layers), on_grid);
    Looks result = looks_of_layers(layers);
    if (answer.weighted.defined()) {
      const Tensor weighted = ops::mean(answer.weighted.contiguous(), {0}).reshape({answer.grid[0], answer.grid[1]});
      result.maps.emplace(result.maps.begin(), "what raised the answer", weighted);
      result.first = 0;
    }
    return result;
  }

  const GalleryFlags& flags_;
  DType dtype_;
  std::unique_ptr<train::Answerer> answerer_;
  std::set<std::string> known_;                                   // answers; empty: it writes them word by word
  std::map<std::string, std::vector<data::Question>> questions_;  // by the paths of images
};

void make_gallery(const GalleryFlags& flags) {
  const bool asks = !flags.questions.empty() || !flags.ask.empty();
  check_usage(!flags.detector.model.empty() || !flags.captioner.model.empty() || !flags.vqa.model.empty(),
              "there is nothing to show: give --detector, --captioner or --vqa, or several of them");
  check_usage(flags.split.empty() || !flags.questions.empty(), "--split is a part of --questions");
  check_usage(flags.vqa.model.empty() || asks, "--vqa answers questions: give --questions DATA or --ask QUESTION");
  check_usage(!flags.vqa.model.empty() || !asks, "--questions and --ask are for --vqa");
  check_usage(!flags.captioner.model.empty() || flags.scenes.empty(), "--scenes judges what --captioner says");
  check_usage(!flags.detector.model.empty() || !flags.threshold, "--threshold is for the boxes of --detector");
  check_own_page(flags.output);
  const DType dtype = flags.compute.apply();
  const std::vector<NamedImage> images = list_images(flags.images, flags.output);
  std::optional<DetectorPart> detector;
  std::optional<CaptionerPart> captioner;
  std::optional<QuestionsPart> questions;
  std::vector<std::string> said;
  if (!flags.detector.model.empty()) {
    detector.emplace(flags, dtype);
    said.push_back(fmt::format("boxes by {}", flags.detector.model));
  }
  if (!flags.captioner.model.empty()) {
    captioner.emplace(flags, images, dtype);
    said.push_back(fmt::format("captions by {}", flags.captioner.model));
  }
  if (!flags.vqa.model.empty()) {
    questions.emplace(flags, images, dtype);
    said.push_back(fmt::format("answers by {}", flags.vqa.model));
  }
  std::vector<explain::GalleryPicture> pictures;
  for_each_batch(images, 1, flags.skip_broken,
                 [&](const std::vector<std::string>& names, const std::vector<io::Image>& batch) {
                   explain::GalleryPicture& picture = pictures.emplace_back();
                   picture.name = fs::path(names.front()).filename().string();
                   picture.image = batch.front();
                   if (detector) {
                     detector->add(picture.image, picture);
                   }
                   if (captioner) {
                     captioner->add(picture.image, picture);
                   }
                   if (questions) {
                     questions->add(picture.image, names.front(), picture);
                   }
                 });
  const std::string lead = fmt::format("{}: {}.", io::counted(std::ssize(pictures), "pictures"), fmt::join(said, ", "));
  io::make_folder(fs::absolute(flags.output).parent_path());
  io::write_atomically(flags.output, explain::gallery_page(flags.title, lead, pictures));
  fmt::print("{}\n", lead);
  if (questions) {
    std::int64_t known = 0;
    std::int64_t right = 0;
    std::int64_t unanswered = 0;
    for (const explain::GalleryPicture& picture : pictures) {
      for (const explain::GalleryQuestion& question : picture.questions) {
        known += question.right.has_value() ? 1 : 0;
        right += question.right.value_or(false) ? 1 : 0;
        unanswered += question.best.empty() ? 1 : 0;
      }
    }
    if (known > 0) {
      fmt::print("{} of {} answers are right\n", right, known);
    }
    if (unanswered > 0) {
      fmt::print("{} the model could not answer: the page says why\n", io::counted(unanswered, "questions"));
    }
  }
  fmt::print("{}\n", flags.output);
}

}  // namespace

void add_gallery(CLI::App& app) {
  CLI::App& command = *app.add_subcommand(
      "gallery", "Make a page of images with boxes, captions and answers, and where a model looked for each");
  const auto flags = std::make_shared<GalleryFlags>();
  add_images_argument(command, flags->images);
  command.add_option("--detector", flags->detector.model, "Model whose boxes are drawn: see `vitrail detect`")
      ->type_name("MODEL");
  command.add_option("--captioner", flags->captioner.model, "Model that says what is in them: see `vitrail caption`")
      ->type_name("MODEL");
  command.add_option("--vqa", flags->vqa.model, "Model that answers questions about them: see `vitrail ask`")
      ->type_name("MODEL");
  command
      .add_option(
          "--questions", flags->questions,
          "Questions about these images with their answers, as `train --task vqa` takes them: VQA v2's layout, a "
          "folder of `vitrail scenes`, a .csv of path,question,answer. Images are found by their file names and "
          "folders")
      ->type_name("DATA");
  command.add_option("--split", flags->split, "Part of --questions, if it has parts: train, validation, test")
      ->type_name("NAME");
  command
      .add_option("--ask", flags->ask, "A question about each of the images; of several, each has an --ask of its own")
      ->type_name("QUESTION")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  command.add_option("--scenes", flags->scenes, "The scene.json of `vitrail scenes`: says which captions are true")
      ->type_name("FILE");
  command
      .add_option("--threshold", flags->threshold,
                  fmt::format("Least score of a box that is shown (default: {:g})", train::shown_score))
      ->type_name("P")
      ->check(share());
  command.add_flag("--skip-broken", flags->skip_broken, "Leave broken images out and name them");
  command.add_option("--title", flags->title, "Title of the page")->capture_default_str()->type_name("TEXT");
  expect_ending(
      command.add_option("--output", flags->output, "The page, with all that it shows inside")->capture_default_str(),
      ".html");
  add_compute_flags(command, flags->compute);
  add_examples(command, {"vitrail gallery photos/ --detector detr-resnet-50 --captioner vit-gpt2-image-captioning",
                         "vitrail gallery scenes/test/images --detector vitrail/scenes_detr --captioner "
                         "vitrail/scenes_caption --vqa vitrail/scenes_vqa --questions scenes/test",
                         "vitrail gallery street.jpg --vqa blip-vqa-base --ask \"how many dogs are there?\""});
  command.callback([flags] { make_gallery(*flags); });
}

}  // namespace vitrail::cli
