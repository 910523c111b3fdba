// `vitrail caption` says what is in images, and where it looked for each word.
#include "vitrail/cli/use/captions.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/cli/app.h"
#include "vitrail/cli/images.h"
#include "vitrail/cli/print_json.h"
#include "vitrail/cli/say.h"
#include "vitrail/cli/texts.h"
#include "vitrail/data/pairs/captioned_images.h"
#include "vitrail/explain/caption_attention.h"
#include "vitrail/explain/overlay.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/base/shipped.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/train/captions/captions.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;

class ImageCaptions {
 public:
  explicit ImageCaptions(const CaptionFlags& flags)
      : flags_(flags),
        dtype_(flags.compute.apply()),
        model_(open_captioner(flags.model)),
        tokenizer_(text::load_tokenizer(flags.model.name_or_folder())),
        options_(caption_options_of(flags, *model_, dtype_)) {
    check_usage(!flags.attention || !model_->cross_attention().empty(),
                "'{}' writes with a {}, which attends to no places of the image: its image model's attention is drawn "
                "by 'vitrail attention'",
                flags.model.model, model_->decoder_kind());
    if (flags.attention) {
      layer_ = checked_place(flags.layer.value_or(-1), std::ssize(model_->cross_attention()), "layer");
      head_ = flags.head ? std::optional(checked_place(*flags.head, model_->decoder_shape().num_heads, "head"))
                         : std::nullopt;
    }
  }

  void run() {
    const std::vector<NamedImage> listed = list_images(flags_.images, "", flags_.skip_broken);
    if (flags_.attention) {
      check_none_in(flags_.output, listed);
      outlive_reader();
    }
    if (flags_.format == "csv") {
      tell("file,caption\n");
    } else if (flags_.format == "json") {
      ids_ = ids_in_names(listed);
      say_note(ids_.empty() ? "there is no image_id, as not each image has a file name with a number of its own" : "");
    }
    for_each_batch(
        listed, flags_.batch_size, flags_.skip_broken,
        [this](const std::vector<std::string>& names, const std::vector<io::Image>& images) { take(names, images); });
    if (flags_.format == "json") {
      print_json(results_);
    } else if (flags_.attention && flags_.format == "text") {
      tell("{}: where it looked for each word\n", flags_.output);
    }
    if (flags_.attention) {
      pictures_.note_others_in(flags_.output);
    }
  }

 private:
  void take(const std::vector<std::string>& names, const std::vector<io::Image>& images) {
    const Tensor x = train::prepared(model_->image_model.pretrained, images);
    options_.generate.numbers.resize(images.size());
    std::iota(options_.generate.numbers.begin(), options_.generate.numbers.end(), captioned_);
    captioned_ += std::ssize(images);
    const auto said = train::captions_of(*model_, tokenizer_, x, options_);
    for (std::size_t i = 0; i < said.size(); ++i) {
      for (const train::Caption& one : said[i]) {
        print(names[i], one);
      }
      if (flags_.attention) {
        draw(names[i], x.narrow(0, static_cast<std::int64_t>(i), 1).contiguous(), said[i].front().ids);
      }
    }
  }

  void print(const std::string& name, const train::Caption& one) {
    if (flags_.format == "json") {
      nlohmann::ordered_json result = {{"file", io::as_utf8(name)}, {"caption", one.text}};
      if (!ids_.empty()) {
        result["image_id"] = ids_.at(name);
      }
      if (options_.config.num_beams > 1) {
        result["score"] = one.score;
      }
      results_.push_back(std::move(result));
    } else if (flags_.format == "csv") {
      tell("{},{}\n", csv_field(name), csv_field(one.text));
    } else {
      tell("{}: {}\n", io::on_one_line(name), io::on_one_line(one.text));
    }
  }

  void draw(const std::string& name, const Tensor& x, const std::vector<std::int64_t>& ids) {
    const std::vector<Tensor> layers = explain::caption_attention(*model_, x, ids, dtype_);
    const Tensor& map = layers[static_cast<std::size_t>(layer_)];
    const models::PretrainedConfig& how = model_->image_model.pretrained;
    io::make_folder(flags_.output);
    io::write_png(
        fs::path(flags_.output) / pictures_.next(name),
        explain::caption_strip(explain::image_of(x, how.mean, how.std), explain::words_of_caption(tokenizer_, ids),
                               head_ ? map.select(0, *head_).contiguous() : ops::mean(map, {0})));
  }

  static std::int64_t checked_place(std::int64_t asked, std::int64_t count, std::string_view what) {
    const std::int64_t place = from_end(asked, count);
    check(place >= 0 && place < count, "there is no {} {}: the decoder has {}, from 0", what, asked, count);
    return place;
  }

  const CaptionFlags& flags_;
  std::int64_t layer_ = 0;  // which is drawn
  std::optional<std::int64_t> head_;
  DType dtype_;
  std::unique_ptr<models::Captioner> model_;
  text::Tokenizer tokenizer_;
  train::CaptionOptions options_;
  std::int64_t captioned_ = 0;  // images so far
  PictureNames pictures_;
  std::map<std::string, std::int64_t> ids_;  // COCO's, as eval-captions reads them
  nlohmann::ordered_json results_ = nlohmann::ordered_json::array();
};

}  // namespace

std::unique_ptr<models::Captioner> open_captioner(const ModelFlags& flags) {
  flags.check_unchanged();
  const std::string folder = flags.name_or_folder();
  check(fs::exists(folder) || models::is_shipped_name(folder), "there is no model folder '{}'", folder);
  check(models::is_captioner_folder(folder), "'{}' captions no images: {}", flags.model,
        flags.instead("train --task caption"));
  std::unique_ptr<models::Captioner> model = models::load_captioner(folder);
  as_usage([&] { data::apply(flags.images, model->image_model.pretrained); });
  return model;
}

// What the folder says, which is told but for the fields that are `replaced`.
static train::CaptionOptions told_caption_options(const ModelFlags& flags, const models::Captioner& model, DType dtype,
                                                  const std::vector<std::pair<std::string, bool>>& replaced) {
  const std::string source = generate::generation_config_file(models::shipped_or(flags.name_or_folder())).string();
  std::vector<std::string> said;
  train::CaptionOptions options = train::caption_options(model, source, dtype, &said);
  say_generation_config(source, std::move(said), replaced);
  return options;
}

train::CaptionOptions caption_options_of(const CaptionFlags& flags, const models::Captioner& model, DType dtype) {
  train::CaptionOptions options =
      told_caption_options(flags.model, model, dtype,
                           {{"num_beams", flags.num_beams.has_value()},
                            {"num_return_sequences", flags.num_return_sequences.has_value()},
                            {"early_stopping", !flags.early_stopping.empty()},
                            {"length_penalty", flags.length_penalty.has_value()},
                            {"no_repeat_ngram_size", flags.no_repeat_ngram_size.has_value()},
                            {"max_new_tokens", flags.max_new_tokens.has_value()},
                            {"max_length", flags.max_new_tokens.has_value()}});
  const std::int64_t longest = model.max_positions() - 1;
  generate::GenerationConfig& c = options.config;
  c.num_beams = flags.num_beams.value_or(c.num_beams);
  c.num_return_sequences = flags.num_return_sequences.value_or(c.num_return_sequences);
  c.no_repeat_ngram_size = flags.no_repeat_ngram_size.value_or(c.no_repeat_ngram_size);
  c.length_penalty = flags.length_penalty.value_or(c.length_penalty);
  if (!flags.early_stopping.empty()) {
    c.early_stopping = generate::early_stopping_named(flags.early_stopping);
  }
  if (flags.max_new_tokens) {
    check_usage(*flags.max_new_tokens <= longest, "--max-new-tokens is {}, but '{}' is made for {}",
                *flags.max_new_tokens, flags.model.model, longest);
    c.max_new_tokens = flags.max_new_tokens;
  }
  check_usage(c.num_return_sequences == 1 || c.num_beams > 1 || c.do_sample,
              "--num-return-sequences {} would be the same caption each time: it needs --num-beams of at least as many",
              c.num_return_sequences);
  as_generation_usage([&] { generate::validate(c); });
  if (c.num_beams == 1) {
    note_idle(
        {{"--length-penalty", flags.length_penalty.has_value()}, {"--early-stopping", !flags.early_stopping.empty()}},
        "more than one beam");
  }
  if (!c.do_sample) {
    note_idle({{"--seed", flags.seed.has_value()}}, "do_sample in generation_config.json");
  }
  options.generate.seed = flags.seed.value_or(0);
  return options;
}

void caption_images(const CaptionFlags& flags) { ImageCaptions(flags).run(); }

void evaluate_captioner(const ModelFlags& model, const ComputeFlags& compute, const DataFlags& data,
                        std::int64_t num_beams, bool json) {
  const train::EvaluateOptions options = data.options(compute.apply());
  const std::unique_ptr<models::Captioner> captioner = open_captioner(model);
  const text::Tokenizer tokenizer = text::load_tokenizer(model.name_or_folder());
  const data::CaptionedImages pairs =
      data::open_captioned_images(data.data, {.split = data.split, .scenes = true, .skip_broken = data.skip_broken});
  say_notes_of(*pairs.images);
  std::vector<std::pair<std::string, bool>> replaced;
  for (const char* field : {"num_beams", "num_return_sequences", "do_sample", "temperature", "top_k", "top_p"}) {
    replaced.emplace_back(field, true);
  }
  train::CaptionOptions how = told_caption_options(model, *captioner, options.dtype, replaced);
  how.config.num_beams = num_beams;
  how.config.num_return_sequences = 1;
  how.config.do_sample = false;
  const train::CaptionEvaluation result = train::evaluate_captions(*captioner, tokenizer, pairs, options, how);
  say_note(result.unknown);
  if (json) {
    nlohmann::ordered_json all = {
        {"model", model.model}, {"data", data.data}, {"count", result.count}, {"num_beams", num_beams}};
    for (std::size_t n = 0; n < result.scores.bleu.size(); ++n) {
      all[fmt::format("Bleu_{}", n + 1)] = result.scores.bleu[n];
    }
    all["ROUGE_L"] = result.scores.rouge_l;
    all["CIDEr"] = result.scores.cider;
    if (result.truth) {
      all["true"] = *result.truth;
    }
    if (result.counting) {
      all["counts"] = result.counting->right;
      all["count_error"] = result.counting->error;
    }
    all["exact"] = result.exact;
    all["loss"] = result.loss;
    all["cut"] = result.cut;
    all["broken"] = result.broken;
    print_json(all);
    return;
  }
  const auto counting = [](const train::CaptionEvaluation::Counting& c) {
    return fmt::format(
        "   numbers right {:.2f} %, {}", c.right,
        std::isnan(c.error) ? "none of which can be understood" : fmt::format("off by {:.2f} in the mean", c.error));
  };
  const std::string known = result.truth      ? fmt::format("   true of the scene {:.2f} %", *result.truth)
                            : result.counting ? counting(*result.counting)
                                              : "";
  tell("CIDEr {:.4f}   BLEU-4 {:.4f}   ROUGE-L {:.4f}{}   exact {:.2f} %   loss {:.4f}   {}, {}\n", result.scores.cider,
       result.scores.bleu[3], result.scores.rouge_l, known, result.exact, result.loss,
       io::counted(result.count, "images"), num_beams == 1 ? "greedy" : io::counted(num_beams, "beams"));
  if (result.cut > 0) {
    tell("{} longer than the model's {}, of which the loss is that of the beginning\n",
         result.cut == 1 ? "1 caption is" : fmt::format("{} captions are", result.cut),
         io::counted(train::most_new_tokens(*captioner, train::usual_caption_tokens), "tokens"));
  }
  for (const std::string& broken : result.broken) {
    tell("left out: {}\n", broken);
  }
}

void add_caption(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("caption", "Say what is in images, and show where the model looked");
  const auto flags = std::make_shared<CaptionFlags>();
  command
      .add_option("MODEL", flags->model.model,
                  "Captioner: the folder of a run, or of transformers' VisionEncoderDecoderModel or "
                  "BlipForConditionalGeneration with its tokenizer")
      ->required();
  add_images_argument(command, flags->images);
  const auto count = [&](const char* name, std::optional<std::int64_t>& field, const char* help, int least = 1) {
    command.add_option(name, field, help)->check(at_least(least))->type_name("N")->group("Search");
  };
  count("--num-beams,--beams", flags->num_beams, "Beams of the search; 1: none (default: the model's, or 3)");
  count("--num-return-sequences", flags->num_return_sequences, "Captions of each image");
  count("--max-new-tokens", flags->max_new_tokens, "Most tokens of a caption (default: the model's)");
  count("--no-repeat-ngram-size", flags->no_repeat_ngram_size, "No sequence of N tokens comes twice; 0: any may", 0);
  command
      .add_option("--length-penalty", flags->length_penalty,
                  "Beams are compared by log-probability / length to this power")
      ->check(finite())
      ->type_name("X")
      ->group("Search");
  command.add_option("--early-stopping", flags->early_stopping, "When a beam search ends: see `vitrail generate`")
      ->check(CLI::IsMember({"true", "false", "never"}))
      ->type_name("WHEN")
      ->group("Search");
  add_seed_flag(command, flags->seed);
  CLI::Option* const output =
      command.add_option("--output", flags->output, "Folder for the strips of --attention")->type_name("DIR");
  CLI::Option* const attention =
      command
          .add_flag("--attention", flags->attention,
                    "Draw for each word where the decoder looked in the step that produced it")
          ->needs(output);
  output->needs(attention);
  const auto choice = [&](const char* name, std::optional<std::int64_t>& field, const char* help) {
    command.add_option(name, field, help)->check(whole_number())->type_name("N")->needs(attention);
  };
  choice("--layer", flags->layer, "Layer that is drawn; negative: from the end (default: the last)");
  choice("--head", flags->head, "Head that is drawn (default: the mean of all)");
  command.add_option("-b,--batch-size", flags->batch_size, "Images a batch")->capture_default_str()->check(at_least(1));
  command.add_flag("--skip-broken", flags->skip_broken, "Leave broken images out and name them");
  command.add_option("--format", flags->format, "Output: text or csv, a line for each caption; json, a list")
      ->capture_default_str()
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "csv", "json"}));
  add_compute_flags(command, flags->compute);
  add_image_flags(command, flags->model);
  add_examples(command, {"vitrail caption runs/scenes photo.png --beams 4",
                         "vitrail caption vit-gpt2-image-captioning photos/ --attention --output looked"});
  command.callback([flags] { caption_images(*flags); });
}

}  // namespace vitrail::cli
