#include "vitrail/train/vqa/answerer.h"

#include <algorithm>
#include <cmath>

#include "vitrail/autograd/tape.h"
#include "vitrail/data/transforms.h"
#include "vitrail/io/suggest.h"
#include "vitrail/models/base/shipped.h"
#include "vitrail/models/joint/blip_folder.h"
#include "vitrail/tensor/error.h"
#include "vitrail/text/unknown.h"
#include "vitrail/train/study/share_batches.h"
#include "vitrail/train/vqa/blip_answerer.h"
#include "vitrail/train/vqa/vqa_answerer.h"

namespace vitrail::train {

AnsweredQuestion Answerer::answer(const io::Image& image, const std::string& question,
                                  const AskOptions& options) const {
  const std::vector<std::string> unknown = text::unknown_words(tokenizer_, question);
  check(unknown.empty(), "the model has never read {} of the question \"{}\"", io::quoted_list(unknown, "and"),
        question);
  const text::Encoding encoding = tokenizer_.encode(question);
  check(std::ranges::find(encoding.special, false) != encoding.special.end(), "the question is empty");
  check(std::ssize(encoding.ids) <= longest_question(),
        "the question has {} tokens, but the model is made for at most {}", encoding.ids.size(), longest_question());
  const Tensor x = data::eval_transform(images())(image);
  return answer_one(x.reshape(x.shape().inserted(0, 1)), question, encoding, options);
}

AnswerEvaluation Answerer::evaluate(const data::ImageQuestions& questions, const EvaluateOptions& options) const {
  const autograd::NoGrad no_grad;
  const data::QuestionTokens tokens = tokens_of(questions, tokenizer_, longest_question());
  const auto loader = data::question_loader(*questions.images, tokens, data::eval_transform(images()),
                                            {.images = loading(options), .per_image = 0});
  AnswerEvaluation result;
  AnswerTally tally;
  std::int64_t known = 0;
  const auto judge = [&](const data::QuestionBatch& batch, dist::Packer& packer) {
    const std::vector<const data::Question*> asked = questions_of(batch, questions);
    const Said said = asked.empty() ? Said() : say(batch, asked, options.dtype);
    // Each question by the place of its image in the data set.
    std::vector<std::int64_t> images;
    images.reserve(asked.size());
    for (std::size_t b = 0; b < asked.size(); ++b) {
      images.push_back(batch.indices[static_cast<std::size_t>(batch.rows.data<std::int64_t>()[b])]);
    }
    packer.put(std::ssize(batch.indices));
    packer.put(said.loss);
    packer.put(asked.empty() ? std::int64_t{0} : with_unknown_words(batch, tokenizer_));
    packer.put_all(images);
    packer.put_all(batch.places);
    packer.put_texts(said.answers);
    return std::ssize(batch.indices);
  };
  const auto take = [&](dist::Unpacker& unpacker) {
    result.images += unpacker.get<std::ptrdiff_t>();
    result.loss += unpacker.get<double>();
    result.unknown_words += unpacker.get<std::int64_t>();
    const auto images = unpacker.get_all<std::int64_t>();
    const auto places = unpacker.get_all<std::int64_t>();
    const std::vector<std::string> answers = unpacker.get_texts();
    for (std::size_t b = 0; b < answers.size(); ++b) {
      const data::Question& question =
          questions.questions[static_cast<std::size_t>(images[b])][static_cast<std::size_t>(places[b])];
      ++(can_answer(question) ? known : result.unseen);
      tally.add(question, answers[b]);
    }
  };
  result.broken = share_batches<data::QuestionBatch>(*loader, sharing(options, questions.images->size()), judge, take);
  loader->check_any(result.images, "evaluate");
  result.loss = known > 0 ? result.loss / static_cast<double>(known) : std::nan("");
  tally.finish(result);
  return result;
}

bool answers_questions(const std::filesystem::path& folder) {
  return models::is_vqa_folder(folder) || models::is_blip_folder(folder);
}

std::unique_ptr<Answerer> load_answerer(const std::filesystem::path& folder) {
  text::Tokenizer tokenizer = text::load_tokenizer(models::shipped_or(folder));
  if (models::is_vqa_folder(folder)) {
    return std::make_unique<VqaAnswerer>(models::load_vqa(folder), std::move(tokenizer));
  }
  return std::make_unique<BlipAnswerer>(models::load_blip(folder), std::move(tokenizer));
}

}  // namespace vitrail::train
