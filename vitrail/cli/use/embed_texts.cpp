// `vitrail embed` with a model of texts: vectors of sentences, how near two are, and the nearest of many.
#include <algorithm>
#include <filesystem>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/cli/print_json.h"
#include "vitrail/cli/say.h"
#include "vitrail/cli/texts.h"
#include "vitrail/data/dataset.h"
#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/text/sentence_model.h"
#include "vitrail/ops/math/normalize.h"
#include "vitrail/ops/math/order.h"
#include "vitrail/ops/products/matmul.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/train/run/progress.h"
#include "vitrail/train/study/features.h"
#include "vitrail/train/study/texts.h"

namespace vitrail::cli {
namespace {

using SearchJson = nlohmann::ordered_json;

// The vectors of texts under a progress bar.
class Embedder {
 public:
  Embedder(const std::string& folder, const train::TextRunOptions& options)
      : model_(models::open_sentence_model(folder)),
        tokenizer_(open_tokenizer(folder, model_.model.net->shape().vocab_size)),
        options_(options) {}

  Tensor operator()(const std::vector<std::string>& texts) const {
    train::Progress progress(stderr);
    train::TextRunOptions options = options_;
    if (progress.terminal()) {
      progress.begin("texts", std::ssize(texts));
      options.progress = [&](std::int64_t done, std::int64_t) { progress.update(done, ""); };
    }
    std::string cut;
    Tensor vectors = train::embed_texts(model_, tokenizer_, texts, options, &cut);
    progress.end();
    note_unknown(tokenizer_, texts);
    say_note(cut);
    return vectors;
  }

 private:
  models::SentenceModel model_;
  text::Tokenizer tokenizer_;
  train::TextRunOptions options_;
};

// The cosines [N, M] of the rows of both.
Tensor cosines_of_rows(const Tensor& a, const Tensor& b) {
  return ops::matmul(ops::normalize(a), ops::transpose(ops::normalize(b), 0, 1));
}

void print_nearest(const Embedder& embedder, const std::vector<std::string>& queries, const EmbedTextsFlags& flags,
                   bool skip_broken) {
  check(flags.search == "-" || io::is_file(flags.search),
        "--search looks for texts among the lines of a file, but there is no file '{}'", flags.search);
  const std::vector<std::string> corpus = list_texts({flags.search}, skip_broken);
  const auto most = std::min<std::int64_t>(flags.topk, std::ssize(corpus));
  const ops::Ordered best = ops::topk(cosines_of_rows(embedder(queries), embedder(corpus)), most);
  SearchJson all = SearchJson::array();
  for (std::size_t q = 0; q < queries.size(); ++q) {
    const std::int64_t row = static_cast<std::int64_t>(q) * most;
    SearchJson hits = SearchJson::array();
    if (!flags.json && queries.size() > 1) {
      fmt::print("{}{}\n", q == 0 ? "" : "\n", queries[q]);
    }
    for (std::int64_t k = row; k < row + most; ++k) {
      const auto i = static_cast<std::size_t>(best.indices.data<std::int64_t>()[k]);
      const float score = best.values.data<float>()[k];
      hits.push_back({{"score", score}, {"index", i}, {"text", corpus[i]}});
      if (!flags.json) {
        fmt::print("{:.4f}  {}\n", score, corpus[i]);
      }
    }
    all.push_back({{"query", queries[q]}, {"hits", std::move(hits)}});
  }
  if (flags.json) {
    print_json(all);
  }
}

void print_vectors(const std::vector<std::string>& texts, const Tensor& vectors) {
  SearchJson all = SearchJson::array();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    all.push_back({{"text", texts[i]}, {"embedding", vectors.select(0, static_cast<std::int64_t>(i)).values()}});
  }
  fmt::print("{}\n", all.dump());
}

}  // namespace

void embed_texts(const ModelFlags& model, const ComputeFlags& compute, const DataFlags& data,
                 const EmbedTextsFlags& flags, const std::string& output) {
  const bool compares = !flags.similarity.empty();
  check_usage(compares != !data.data.empty(), "name texts to embed, or two by --similarity");
  check_usage(!compares || flags.similarity.size() == 2, "--similarity compares two texts, but {} given",
              flags.similarity.size() == 1 ? "one is" : fmt::format("{} are", flags.similarity.size()));
  check_usage(!compares || flags.search.empty(),
              "--similarity compares two texts, and --search looks for others: take one");
  check_usage(compares || !flags.search.empty() || flags.json || !output.empty(),
              "name what to do with the vectors: --output FILE, --json or --search CORPUS");
  check_usage(output.empty() || (!compares && flags.search.empty()),
              "--output writes the vectors of texts: it goes with neither --similarity nor --search");
  check_usage(data.split.empty(), "--split takes a part of images");
  const DType dtype = compute.apply();
  const Embedder embedder(text_model_folder(model),
                          {.dtype = dtype, .batch_size = data.batch_size, .batch_tokens = flags.batch_tokens});
  if (compares) {
    const Tensor vectors = embedder(flags.similarity);
    const float cosine = cosines_of_rows(vectors.narrow(0, 0, 1), vectors.narrow(0, 1, 1)).item();
    fmt::print("{}\n", flags.json ? SearchJson{{"similarity", cosine}}.dump() : fmt::format("{:.4f}", cosine));
    return;
  }
  std::vector<std::string> texts;  // of a table those of its column of texts
  for (text::LabelledText& one : list_texts_to_classify({data.data}, data.skip_broken)) {
    texts.push_back(std::move(one.text));
  }
  if (!flags.search.empty()) {
    print_nearest(embedder, texts, flags, data.skip_broken);
    return;
  }
  train::Features features;
  features.x = embedder(texts);
  if (flags.json) {
    print_vectors(texts, features.x);
  }
  if (!output.empty()) {
    check_not_input(output, data.data);
    check_not_of_model(output, model);
    features.labels = Tensor::empty({features.x.size(0)}, DType::i64);
    features.labels.fill(static_cast<double>(data::unlabeled));
    features.names = texts;
    train::save_features(output, features, {{"format", "pt"}, {"model", model.model}});
    fmt::print(flags.json ? stderr : stdout, "{}: features {} f32, with {}\n", output, features.x.shape().str(),
               io::counted(features.x.size(0), "texts"));
  }
}

}  // namespace vitrail::cli
