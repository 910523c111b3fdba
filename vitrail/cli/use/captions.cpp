#include "vitrail/cli/use/captions.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/cli/images.h"
#include "vitrail/cli/texts.h"
#include "vitrail/io/json.h"
#include "vitrail/io/wording.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/train/study/captions.h"

namespace vitrail::cli {
namespace {

struct OpenCaptioner {
  explicit OpenCaptioner(const ModelFlags& flags)
      : model(open_captioner(flags)), tokenizer(text::load_tokenizer(flags.name_or_folder())) {}
  std::unique_ptr<models::Captioner> model;
  text::Tokenizer tokenizer;
};

}  // namespace

bool is_captioner(const ModelFlags& flags) { return models::is_captioner_folder(flags.name_or_folder()); }

std::unique_ptr<models::Captioner> open_captioner(const ModelFlags& flags) {
  flags.check_unchanged("captions images");
  std::unique_ptr<models::Captioner> model = models::load_captioner(flags.name_or_folder());
  as_usage([&] { data::apply(flags.images, model->image_model.pretrained); });
  return model;
}

void predict_captions(const ModelFlags& model, const ComputeFlags& compute, const PredictCaptionsFlags& flags) {
  const DType dtype = compute.apply();
  const OpenCaptioner opened(model);
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  if (flags.format == "csv") {
    fmt::print("file,caption\n");
  }
  const auto caption = [&](const std::vector<std::string>& names, const std::vector<io::Image>& images) {
    const std::vector<std::string> said =
        train::caption(*opened.model, opened.tokenizer, images, {.num_beams = 3, .dtype = dtype});
    for (std::size_t i = 0; i < said.size(); ++i) {
      if (flags.format == "json") {
        results.push_back({{"file", io::as_utf8(names[i])}, {"caption", said[i]}});
      } else if (flags.format == "csv") {
        fmt::print("{},{}\n", csv_field(names[i]), csv_field(said[i]));
      } else {
        fmt::print("{}: {}\n", names[i], said[i]);
      }
    }
  };
  for_each_batch(list_images(flags.images), flags.batch_size, flags.skip_broken, caption);
  if (flags.format == "json") {
    fmt::print("{}\n", results.dump(2));
  }
}

void evaluate_captioner(const ModelFlags& model, const ComputeFlags& compute, const DataFlags& data, bool json) {
  const train::EvaluateOptions options = data.options(compute.apply());
  const OpenCaptioner opened(model);
  data::DatasetOptions part;
  part.split = data.split;
  const auto dataset = data::open_dataset(data.data, part);
  const train::CaptionEvaluation result = train::evaluate_captions(*opened.model, opened.tokenizer, *dataset, options);
  if (json) {
    const nlohmann::ordered_json all = {{"model", model.model},  {"data", data.data},   {"count", result.count},
                                        {"exact", result.exact}, {"loss", result.loss}, {"broken", result.broken}};
    fmt::print("{}\n", all.dump(2));
    return;
  }
  fmt::print("exact {:.2f} %   loss {:.4f}   {}\n", result.exact, result.loss, io::counted(result.count, "images"));
  for (const std::string& broken : result.broken) {
    fmt::print("left out: {}\n", broken);
  }
}

}  // namespace vitrail::cli
