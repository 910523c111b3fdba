/// \file
/// How well captions of images agree with those that people wrote: BLEU, ROUGE-L and CIDEr-D, as pycocoevalcap 1.2
/// computes them.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::text {

/// The words of a caption, in lower case and with one space between them, without punctuation: what pycocoevalcap's
/// PTBTokenizer makes of plain English. Contractions are cut as in the Penn Treebank ("man's" is "man 's", "doesn't" is
/// "does n't", "cannot" is "can not"), signs such as % or & are words of their own unless they join letters
/// ("black/white", "t-shirt"), and brackets become "-lrb-", "-rsb-" and so on, which pycocoevalcap leaves in.
///
/// Stanford's tokenizer, which is behind PTBTokenizer, knows more: abbreviations that end in a full stop (here only
/// those with another one inside, "u.s.", and mr., mrs., ms., dr., st., jr., sr.), addresses of the web, smileys,
/// markup, fractions and numbers of telephones, "'tis", "'90s" and words of other writing systems. Throws Error unless
/// the caption is UTF-8.
std::string caption_tokenized(std::string_view caption);

/// Scores of the captions of some images.
struct CaptionScores {
  std::array<double, 4> bleu = {};      ///< BLEU-1 … BLEU-4 of all captions (Papineni et al. 2002), 0 … 1
  double rouge_l = 0;                   ///< the mean of rouge_l_of
  double cider = 0;                     ///< the mean of cider_of
  std::vector<double> rouge_l_of = {};  ///< ROUGE-L (Lin 2004) of each image, 0 … 1
  std::vector<double> cider_of = {};    ///< CIDEr-D (Vedantam et al. 2015) of each image, 0 … 10
};

/// Scores `candidates`, one caption of each image, by `references`, one or more of each image. Both are words between
/// white space, as caption_tokenized() has them. They are those of `Bleu`, `Rouge` and `Cider` of pycocoevalcap:
/// - BLEU-n: clipped matches of 1- to n-grams of all images together, with 1e-15 added to matches and 1e-9 to totals,
/// and
///   a brevity penalty by the reference that is closest in length, of two the shorter;
/// - ROUGE-L: the longest common subsequence, by the best precision and the best recall among the references, in an
///   F-measure of beta 1.2;
/// - CIDEr-D: ten times the mean of the clipped cosines of tf-idf weights of 1- to 4-grams, over n and the references,
///   with a Gaussian penalty of sigma 6 on the difference in bigrams. The frequency of an n-gram in documents is the
///   number of images that have it in a reference, so that the CIDEr of a single image is 0.
///
/// Throws Error unless there are as many candidates as lists of references, at least one, none of which is empty.
CaptionScores caption_scores(const std::vector<std::string>& candidates,
                             const std::vector<std::vector<std::string>>& references);

}  // namespace vitrail::text
