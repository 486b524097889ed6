#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the Python package rouge_score says about answers of our own: ROUGE-1 recall with and without
stemming.

    record_rouge.py >tests/golden/rouge.json
"""
import importlib.metadata
import json

from rouge_score import rouge_scorer

MILL = "row across the lake and drink hot cider under the old mill"
PIER = "watching the herons feeding along the wooden piers before the fishing boats return"
BAKE = "carry three baskets of cherries to the bakery and trade them for almond cakes"

# (expected, what a model may say)
PAIRS = [
    (MILL, MILL),
    (MILL, "Row across the lake, and drink hot cider under the old mill."),
    (MILL, "The loveliest way is to row across the lake and then drink cider."),
    (MILL, "Rowing across lakes and drinking ciders under older mills"),
    (MILL, "rowed over the lake; drank something hot"),
    (MILL, "I do not know."),
    (MILL, ""),
    (MILL, "the the the the and and"),
    (MILL, "mill old the under cider hot drink and lake the across row"),
    (MILL, "ROW ACROSS THE LAKE AND DRINK HOT CIDER UNDER THE OLD MILL!!!"),
    (MILL, "row-across-the-lake/and_drink.hot,cider"),
    (MILL, "It is said that people there sit by the water and sing."),
    (PIER, PIER),
    (PIER, "watch a heron feed along a wooden pier before the fisher's boat returns"),
    (PIER, "Watched herons fed along wood piers before boats returned."),
    (PIER, "The herons were feeding while the fishing boats returned."),
    (PIER, "fish, boat, return, pier"),
    (PIER, "feedings and watchings"),
    (BAKE, BAKE),
    (BAKE, "carrying three basket of cherry to bakeries, trading them for almonds and cake"),
    (BAKE, "Carries 3 baskets of cherries to the baker"),
    (BAKE, "trade cherries for cakes"),
    (BAKE, "To the bakery.\nTo the bakery.\nTo the bakery."),
    ("skies dying lying tying news innings", "sky die lie tie new inning"),
    ("proceed exceed succeed howe", "proceeds exceeded succeeding howes"),
    ("flies tries dies spied tied cried", "fly try die spy tie cry"),
    ("relational conditional rational valency", "relate condition ration valence"),
    ("digitizer conformably radically differently", "digitize conformable radical different"),
    ("vilely analogously organization predication", "vile analogous organize predicate"),
    ("operator feudalism decisiveness hopefulness", "operate feudal decisive hopeful"),
    ("callousness formality sensitivity sensibility", "callous formal sensitive sensible"),
    ("triplicate formative formalize electricity", "triplic form formal electric"),
    ("revival allowance inference airliner", "revive allow infer airlines"),
    ("gyroscopic adjustable defensible irritant", "gyroscope adjust defense irritate"),
    ("replacement adjustment dependent adoption", "replace adjusts depend adopted"),
    ("homologous communism activate angularity", "homolog commune active angular"),
    ("effective bowdlerize probate controlling", "effect bowdler probates control"),
    ("hopping tanned falling hissing fizzed failing filing", "hop tan fall hiss fizz fail file"),
    ("enjoyment happily geology apology", "enjoy happy geologies apologies"),
    ("agreed feed plastered bled motoring sing", "agree feeds plaster bleed motor singing"),
    ("it's 3.14 or 2,718", "3 14 and 2718, it is"),
    ("room 42 on floor 7", "Floor 7, room 42"),
    ("caf\u00e9 na\u00efve co-operate", "cafe naive cooperate caf na ve co operate"),
    ("300 \u212aelvin at the pole", "about 300 kelvin, at a pole"),
    ("\u0130zmir harbour at dawn", "i zmir harbour; izmir harbour at dawn"),
    ("a a b b c", "a b b b"),
    ("...", "anything"),
    ("under_the_blue_stone", "under the blue stone"),
    ("tab\tand\nline\r\nbreaks", "tabs and lines break"),
    ("yes", "Yesterday, yes or yeses"),
]


def main():
    assert len(PAIRS) == 50, len(PAIRS)
    plain = rouge_scorer.RougeScorer(["rouge1"], use_stemmer=False)
    stems = rouge_scorer.RougeScorer(["rouge1"], use_stemmer=True)
    cases = [{"expected": expected, "text": text,
              "recall": plain.score(expected, text)["rouge1"].recall,
              "stemmed": stems.score(expected, text)["rouge1"].recall}
             for expected, text in PAIRS]
    versions = {name: importlib.metadata.version(name) for name in ("rouge_score", "nltk")}
    print(json.dumps({"note": "written by tools/record_rouge.py", "versions": versions})[:-1]
          + ', "pairs": [\n' + ",\n".join(json.dumps(case) for case in cases) + "\n]}")


if __name__ == "__main__":
    main()
