// SPDX-License-Identifier: Apache-2.0
#include "eval/text/words.h"

#include <algorithm>
#include <array>
#include <set>

namespace mrrope::eval {

namespace {

constexpr std::array kAdjectives = {
    "able",    "amber",    "ample",   "ancient", "bare",    "bitter", "blank",  "bold",
    "brave",   "brief",    "bright",  "brisk",   "broad",   "broken", "calm",   "careful",
    "cheap",   "chilly",   "clean",   "clear",   "clever",  "cloudy", "coarse", "cold",
    "common",  "cosy",     "crooked", "curious", "damp",    "daring", "dark",   "deep",
    "dim",     "distant",  "dizzy",   "dull",    "dusty",   "eager",  "early",  "easy",
    "empty",   "even",     "faded",   "faint",   "fair",    "famous", "fancy",  "fierce",
    "fine",    "firm",     "flat",    "fond",    "fragile", "fresh",  "frosty", "gentle",
    "giant",   "glad",     "golden",  "grand",   "grave",   "greedy", "grim",   "happy",
    "hardy",   "heavy",    "hidden",  "hollow",  "honest",  "humble", "hungry", "idle",
    "jolly",   "keen",     "kind",    "lame",    "late",    "lazy",   "lean",   "lively",
    "lonely",  "loud",     "lucky",   "mellow",  "merry",   "mighty", "mild",   "modest",
    "muddy",   "narrow",   "neat",    "nimble",  "noble",   "noisy",  "odd",    "pale",
    "patient", "plain",    "polite",  "proud",   "quick",   "quiet",  "rainy",  "rapid",
    "rare",    "restless", "rich",    "rough",   "round",   "rusty",  "salty",  "scarce",
    "serious", "shallow",  "sharp",   "shiny",   "short",   "shy",    "silent", "simple",
    "sleepy",  "slender",  "slow",    "smooth",  "snowy",   "soft",   "solid",  "sour",
    "spare",   "steady",   "steep",   "stern",   "sturdy",  "sudden", "sunny",  "tame",
    "tender",  "thin",     "tidy",    "tired",   "vast",    "warm",   "weary",  "wild",
    "windy",   "wise",     "wooden",  "worn",    "young"};

constexpr std::array kNouns = {
    "acorn",    "anchor",  "apron",  "arch",    "arrow",   "attic",   "badge",  "bakery",
    "balcony",  "barge",   "barn",   "basket",  "beacon",  "bell",    "bench",  "blanket",
    "boat",     "bottle",  "bowl",   "branch",  "brick",   "bridge",  "broom",  "bucket",
    "button",   "cabin",   "candle", "canyon",  "carpet",  "cart",    "cellar", "chain",
    "chair",    "chapel",  "chest",  "chimney", "clock",   "coat",    "coin",   "copper",
    "corner",   "cottage", "cradle", "crane",   "cup",     "curtain", "desk",   "ditch",
    "dock",     "door",    "drawer", "drum",    "easel",   "engine",  "farm",   "feather",
    "fence",    "ferry",   "fiddle", "field",   "flag",    "flute",   "forest", "forge",
    "fountain", "garden",  "gate",   "glove",   "granary", "grove",   "hammer", "harbor",
    "hat",      "hedge",   "hill",   "hinge",   "hut",     "inn",     "island", "jacket",
    "jar",      "kettle",  "key",    "kiln",    "kite",    "ladder",  "lake",   "lamp",
    "lantern",  "leaf",    "ledger", "lemon",   "letter",  "lever",   "linen",  "lock",
    "loom",     "map",     "market", "marsh",   "meadow",  "mill",    "mirror", "needle",
    "nest",     "net",     "oak",    "oar",     "orchard", "oven",    "paddle", "path",
    "pebble",   "pen",     "pepper", "pier",    "pigeon",  "pillow",  "pine",   "plank",
    "plate",    "plough",  "pond",   "porch",   "pouch",   "prairie", "pump",   "quarry",
    "quay",     "quill",   "raft",   "rail",    "ribbon",  "ridge",   "ring",   "river",
    "roof",     "rope",    "saddle", "sail",    "salt",    "scarf",   "shed",   "shelf",
    "shell",    "shore",   "shovel", "spade",   "spoon",   "stable",  "stair",  "stone",
    "stool",    "stove",   "street", "summit",  "table",   "tailor",  "thread", "timber",
    "tower",    "tray",    "tunnel", "valley",  "vase",    "village", "violin", "wagon",
    "wall",     "well",    "wharf",  "wheel",   "willow",  "window",  "yard"};

// One consonant, one vowel, at times one consonant: any two of them can be told apart in a row.
constexpr std::array kSyllables = {"bal", "ber", "dor", "dun", "fal", "fen", "gal", "gor", "hal",
                                   "hem", "jor", "kal", "kes", "lam", "len", "lin", "lor", "mar",
                                   "mel", "mor", "nar", "nel", "nor", "pel", "pol", "rad", "ren",
                                   "ros", "sal", "sel", "sor", "tal", "tem", "tor", "val", "ven",
                                   "vor", "wal", "wen", "yar", "zan", "zel"};

constexpr std::array kGiven = {"Ada",   "Bruno", "Carla", "Dario", "Edda",   "Falk",   "Gesa",
                               "Hugo",  "Irma",  "Jonas", "Karin", "Lorenz", "Mira",   "Nils",
                               "Olga",  "Paula", "Rolf",  "Silke", "Tilo",   "Ursula", "Viktor",
                               "Wanda", "Xenia", "Yann",  "Zora"};

constexpr std::array kPeople = {
    "the baker",     "the ferryman",  "the miller",     "the teacher",
    "the carpenter", "the doctor",    "the gardener",   "the postman",
    "the tailor",    "the widow",     "the apprentice", "the captain",
    "the librarian", "the innkeeper", "the clockmaker", "the fisherman"};

constexpr std::array kTimes = {"In the morning",         "After lunch",
                               "On the way home",        "Late in the autumn",
                               "Before the rain came",   "When the bell rang",
                               "Towards evening",        "On market day",
                               "In the second week",     "As soon as it was light",
                               "For a long time",        "That winter",
                               "Once the snow was gone", "By and by",
                               "Without a word",         "To everybody's surprise"};

constexpr std::array kDeeds = {"carried a %a %n across the %n",
                               "mended the %n behind the %n",
                               "asked %p about the %a %n",
                               "left the %n open and went to the %n",
                               "painted the %n in a %a colour",
                               "lost a %a %n near the %n",
                               "walked twice around the %n before touching the %n",
                               "found that the %n was %a and the %n was not",
                               "told %p that no %n is ever as %a as it looks",
                               "bought a %n, two %ns and a %a %n",
                               "sat down by the %n and thought of the %a %n",
                               "wrote a %a letter about the %n and never sent it",
                               "promised %p to bring back the %n",
                               "could hear the %a %n from the %n",
                               "kept the %n in a %a %n for years",
                               "laughed at the %n, because it was so %a"};

constexpr std::array kPatterns = {"%T %p %d.",
                                  "%T %p %d, and %p %d.",
                                  "%P %d, but the %n stayed %a.",
                                  "Nobody knew why %p %d.",
                                  "It is said that %p %d, though the %n says otherwise.",
                                  "The %a %n by the %n had seen better days.",
                                  "%T the %n was %a, so %p %d.",
                                  "There was a %n in the %n, and beside it a %a %n.",
                                  "If the %n had been less %a, %p would have stayed at the %n.",
                                  "%P %d; %p only %d.",
                                  "What is a %n without a %n, asked %p, and %d.",
                                  "Between the %n and the %n lay a %a %n that belonged to %p."};

template <typename List>
std::string pick(const List& list, Random& random) {
  return list[random.below(list.size())];
}

std::string capital(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = char(text[0] - 'a' + 'A');
  return text;
}

// "a" becomes "an" where it has to.
void add_word(const std::string& word, std::string& out) {
  const bool vowel = std::string_view("aeiou").find(word[0]) != std::string_view::npos;
  if (vowel && (out.ends_with(" a ") || out == "a ")) out.insert(out.size() - 1, "n");
  out += word;
}

void expand(std::string_view pattern, Random& random, std::string& out) {
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      out.push_back(pattern[i]);
      continue;
    }
    switch (pattern[++i]) {
      case 'a':
        add_word(pick(kAdjectives, random), out);
        break;
      case 'n':
        add_word(pick(kNouns, random), out);
        break;
      case 'p':
        out += pick(kPeople, random);
        break;
      case 'P':
        out += capital(pick(kPeople, random));
        break;
      case 'T':
        out += pick(kTimes, random);
        break;
      default:
        expand(pick(kDeeds, random), random, out);
    }
  }
}

// A different name for every index below 42^3.
std::string syllables(std::uint64_t index) {
  constexpr std::uint64_t n = kSyllables.size();
  // Odd and not a multiple of 3 or 7, the prime factors of n: neighbours look nothing alike.
  index = index * 52631 % (n * n * n);
  return capital(std::string(kSyllables[index % n]) + kSyllables[index / n % n] +
                 kSyllables[index / n / n]);
}

}  // namespace

Random random_for(std::uint64_t seed, std::string_view what, std::uint64_t a, std::uint64_t b,
                  std::uint64_t c) {
  std::uint64_t state = Random(seed).next();
  for (const char ch : what) state = Random(state + std::uint64_t(std::uint8_t(ch))).next();
  for (const std::uint64_t value : {a, b, c}) state = Random(state + value).next();
  return Random(state);
}

std::vector<std::size_t> choose(std::size_t n, std::size_t count, Random& random) {
  // Floyd's: one draw for each of the chosen.
  std::set<std::size_t> chosen;
  for (std::size_t i = n - count; i < n; ++i) {
    const std::size_t at = random.below(i + 1);
    chosen.insert(chosen.count(at) > 0 ? i : at);
  }
  return {chosen.begin(), chosen.end()};
}

std::string random_key(Random& random) {
  return pick(kAdjectives, random) + "-" + pick(kNouns, random);
}

std::string random_digits(Random& random, std::size_t n) {
  std::string digits(n, '0');
  for (std::size_t i = 0; i < n; ++i) {
    digits[i] = char(i == 0 ? '1' + random.below(9) : '0' + random.below(10));
  }
  return digits;
}

std::string random_uuid(Random& random) {
  constexpr std::string_view kForm = "xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx";
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string uuid(kForm);
  for (char& c : uuid) {
    if (c == 'x') c = kHex[random.below(16)];
    if (c == 'y') c = kHex[8 + random.below(4)];
  }
  return uuid;
}

std::string random_letters(Random& random, std::size_t n, char first) {
  std::string letters(n, first);
  for (char& c : letters) c = char(c + char(random.below(26)));
  return letters;
}

std::uint64_t compound_words() {
  return std::uint64_t(kNouns.size()) * kNouns.size() * kAdjectives.size();
}

std::string plain_word(std::uint64_t index) {
  return index < kNouns.size() ? kNouns[index] : kAdjectives[index - kNouns.size()];
}

std::uint64_t plain_words() { return kNouns.size() + kAdjectives.size(); }

std::string compound_word(std::uint64_t index) {
  constexpr std::uint64_t n = kNouns.size();
  std::string word = std::string(kNouns[index % n]) + kNouns[index / n % n];
  // After all pairs of nouns an adjective in front makes more.
  const std::uint64_t more = index / n / n;
  return more == 0 ? word : kAdjectives[(more - 1) % kAdjectives.size()] + word;
}

std::string town_name(std::uint64_t index) { return syllables(index); }

std::string person_name(std::uint64_t index) {
  return std::string(kGiven[index % kGiven.size()]) + " " + syllables(index + 17);
}

std::string prose_sentence(Random& random) {
  std::string out;
  expand(pick(kPatterns, random), random, out);
  return out;
}

}  // namespace mrrope::eval
