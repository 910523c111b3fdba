"""Strings on which tokenizers are known to differ: scripts, marks, emoji, white space, controls, special tokens."""

import random
import unicodedata

SCRIPTS = {
    "latin": "The quick brown fox isn't JUMPING over Straße, naïve café — don't you'll we've I'm he'd.",
    "latin accents": "Ångström Žluťoučký kůň İstanbul ıI ﬁancé ﬂuß ŉ ǅ Ǳ ĳ ſharp Kelvin K Å",
    "vietnamese": "Tiếng Việt: Đường phố đông đúc, Nguyễn Ái Quốc",
    "greek": "Ὀδυσσεύς ἄνδρα μοι ἔννεπε, ΜΟΎΣΑ ΐΰ ὈΔΥΣΣΕΎΣ",
    "cyrillic": "Съешь же ещё этих мягких французских булок, да выпей чаю. Йод Ѣ ѳ ҍ",
    "armenian": "Բարև Ձեզ և աշխարհ, եւ",
    "georgian": "გამარჯობა Ⴀბგ ᲐᲑᲒ",
    "hebrew": "שָׁלוֹם עוֹלָם (123) שלום",
    "arabic": "السَّلامُ عَلَيْكُمْ ١٢٣ ﷺ ﻻ لا ــــ",
    "persian": "می‌خواهم کتاب‌ها ۱۲۳",
    "urdu": "آپ کیسے ہیں؟ ۔ٹھیک",
    "syriac": "ܫܠܡܐ ܥܠܡܐ",
    "thaana": "ދިވެހި ބަސް",
    "devanagari": "नमस्ते दुनिया क्षत्रिय ज्ञान क़ ड़ हिन्दी १२३ ॐ।",
    "bengali": "বাংলা ভাষা ড় ঢ় য় ক্ষ",
    "gurmukhi": "ਪੰਜਾਬੀ ਸ਼ ਖ਼",
    "gujarati": "ગુજરાતી ક્ષ જ્ઞ",
    "oriya": "ଓଡ଼ିଆ କ୍ଷ",
    "tamil": "தமிழ் கொ கௌ க்ஷ ௧௨௩",
    "telugu": "తెలుగు క్ష జ్ఞ",
    "kannada": "ಕನ್ನಡ ಕೊ ಕ್ಷ",
    "malayalam": "മലയാളം ൻ ന്‍ ക്ഷ",
    "sinhala": "සිංහල ශ්‍රී කෝ",
    "thai": "สวัสดีชาวโลก กำ น้ำ ๑๒๓",
    "lao": "ສະບາຍດີ ຊາວໂລກ ໜ ໝ ຳ",
    "tibetan": "བོད་སྐད། ཀྵ ༡༢༣",
    "burmese": "မြန်မာဘာသာ က္က ၁၂၃",
    "khmer": "ភាសាខ្មែរ ក្ក ១២៣",
    "ethiopic": "ሰላም ለዓለም። ፩፪፫",
    "cherokee": "ᏣᎳᎩ ꭰꭱꭲ",
    "mongolian": "ᠮᠣᠩᠭᠣᠯ ᠬᠡᠯᠡ᠋ a\u180eb",
    "japanese": "日本語のテスト。カタカナ ｶﾞｷﾞ ㍿ ㌔ ゔ が が 々 ー",
    "chinese": "我爱北京天安门，門𠀀𪚥㐀豈更 １２３ＡＢＣ",
    "korean": "안녕하세요 세계 한글 각 ᄒᆞᆫ ㄱㄴ",
    "math": "𝓗𝔢𝕝𝖑𝗈 ∑∞ x² x₂ ½ ⅷ ① ㉈ ∰ a̸b ≠ ≠",
    "runic, gothic, cuneiform": "ᚠᚢᚦ 𐌰𐌱 𒀀𒁀 𓀀",
    "adlam, n'ko": "𞤀𞤣𞤤𞤢𞤥 ߒߞߏ",
}

EMOJI = [
    "😀😃 👍🏽 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇫🇷🇺 1️⃣ #️⃣ ❤️ ❤ ☺︎ 👨🏿‍🦰 🫠 🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "©‍© ™️ ‍ a‍b \U0001f9d1\u200d\u2695\ufe0f",
]

SPACES = [
    "",
    " ",
    "  ",
    "   a",
    "a   ",
    " a ",
    "a b  c   d    e     f",
    "a\tb\t\tc",
    "a\nb\n\nc\n\n\nd",
    "a\r\nb\r\rc\r\n\r\n",
    " \n ",
    "\n",
    "\n\n  \n x",
    "a\x0bb\x0cc\x1cd\x1de\x1ef\x1fg",
    "a\x85b\u2028c\u2029d",
    "a\u00a0b\u1680c\u2000d\u2003e\u2009f\u200ag\u202fh\u205fi\u3000j",
    "a\u200bb\u200cc\u200dd\u2060e\ufefff",
    "\u3000\u3000x\u3000",
    "▁a▁▁b ▁ c",
    "  leading and trailing  ",
    "def f(x):\n    if x:\n\t\treturn  x  # ok\n",
    "x" * 120 + " " + "ab" * 30,
]

CONTROLS = [
    "\x00",
    "a\x00b",
    "a\x01b\x02c\x7fd\x80e\x8ff\x9fg\xadh",
    "\ufffd a\ufffdb \ufffe\uffff",
    "\u202eabc\u202c \u2066x\u2069",
    "\ue000\U000f0000\U0010ffff",
    "\u0378\u0dff\U000e0001",
    "\u0301a\u0301\u0323 e\u0323\u0301 \u0345\u0301",
    "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘",
    "가\u11a8 \u1100\u1161\u11a8 \u1161\u0301 \u1100\u1161\u0301",
    "\u0958\u09dc\u0f73\u2126\u212b\ufb1d\ufb2c\U0001d15e",
    "ﬃ ﬆ Ǆ ʼn ẞß ΑΣ ας Ϊ́",
    "\u0600x\u06dd1\U000110bd2",
]

PUNCTUATION = [
    "Hello, world! How's it going? It's $3.50 (50% off) -- \"wow\"... [ok] {x} <y> a/b\\c_d e@f.g #h &i *j* ^k ~l `m` |n|",
    "I'M HE'S they'LL We'Ve 'S 'ſ ''s 't't don''t ’s",
    "1234567890 12,345.67 1e-10 0x1F ½²³ ١٢٣ ⅷ Ⅷ 一二三 1a2b3c",
    "… — – ‘q’ “q” «q» „q“ ¿¡ 。、「」 ！？ ؟ ، ॥ ༻ ‿ ⁀ _a_ $+<=>^`|~ §¶ ©® °",
    "http://example.com/a?b=c&d=e#f user@host.org C++ #include <x> e.g. i.e. U.S.A.",
    "a b . c ? d ! e , f ' g n't h 'm do not 's 've 're",
    "aaaaaaaaaaaaaaaaaaaa bababababababa abcabcabcabc",
]

SPECIAL = [
    "<|endoftext|>",
    "a<|endoftext|>b <|endoftext|> c",
    "<s>a</s> <unk> <pad> x<mask>y  <mask>  z",
    "[CLS] [SEP] [MASK] [UNK] [PAD] [cls] a[MASK]b",
    "<0x41> <0xE2> <0x0A> <unk><unk>",
    "<|begin_of_text|><|end_of_text|> <|begin_of_text",
    "Hello hello HELLO helloworld hello_world hello, ahello é hello",
    "left   lefty  right   righty both  both",
    " <unk> a <unk>",
    "<|endoftext<|endoftext|>|>",
]


def hard_texts():
    """All of them, and further ones that mix them, the same in each run."""
    texts = list(SCRIPTS.values()) + EMOJI + SPACES + CONTROLS + PUNCTUATION + SPECIAL
    draw = random.Random(0)
    return texts + [mixture(draw, texts) for _ in range(30)]


def mixture(draw, texts):
    """Pieces of some texts, joined, doubled, in another case or with a character from anywhere between."""
    parts = []
    for _ in range(draw.randint(1, 5)):
        text = draw.choice(texts)
        begin = draw.randint(0, len(text))
        part = text[begin : begin + draw.randint(0, 12)]
        change = draw.randint(0, 9)
        if change == 0:
            part = part.upper()
        elif change == 1:
            part = part * draw.randint(2, 4)
        elif change == 2:
            part += anywhere(draw)
        parts.append(part)
    return draw.choice(["", "", " ", "\n"]).join(parts)


def anywhere(draw):
    """A code point of any plane that Python's version of Unicode knows: others PCRE2 or ICU may not know either."""
    while True:
        point = draw.randrange(draw.choice([0x300, 0x3000, 0x20000, 0x110000]))
        if unicodedata.category(chr(point)) not in ("Cn", "Cs"):
            return chr(point)
