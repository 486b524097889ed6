# SPDX-License-Identifier: Apache-2.0
"""Five theories: what is assumed, what follows and from what.

A line reads 'name / mirror name | hypotheses | conclusion | hints | in words | extra terms'. Lines
that begin with ! are axioms, with * what every reader knows; '<' before a hint: right to left. Words in braces are replaced by the
vocabulary of a document. Everything else is derived by logic.py, line by line.
"""

from .logic import Theory

ORDER = """
*le_refl | | le x x
*le_trans | le x y ; le y z | le x z
*le_antisymm | le x y ; le y x | eq x y
"""

# Two operations that mirror each other when the order is turned upside down.
LATTICE = Theory(
    "lattice",
    (),
    {
        "le": ("le", (1, 0)),
        "meet": ("join", None),
        "join": ("meet", None),
        "cl": ("kr", None),
        "kr": ("cl", None),
        "closed": ("open", None),
        "open": ("closed", None),
        "up": ("dn", None),
        "dn": ("up", None),
    },
    {
        "meet": "join",
        "join": "meet",
        "cl": "kr",
        "kr": "cl",
        "closed": "open",
        "open": "closed",
        "up": "dn",
        "dn": "up",
        "below": "above",
        "above": "below",
        "smallest": "largest",
        "largest": "smallest",
        "closure": "core",
        "core": "closure",
        "larger": "smaller",
        "smaller": "larger",
    },
    ORDER
    + """
*le_of_eq / ge_of_eq | eq x y | le x y
*ge_of_eq / le_of_eq | eq x y | le y x
!meet_le_left / le_join_left | | le (meet x y) x | | a {meet} lies {below} its first term
!meet_le_right / le_join_right | | le (meet x y) y | | a {meet} lies {below} its second term
!le_meet / join_le | le z x ; le z y | le z (meet x y) | | whatever lies {below} two elements lies {below} their {meet}
!le_cl / kr_le | | le x (cl x) | | an element lies {below} its {closure}
!cl_mono / kr_mono | le x y | le (cl x) (cl y) | | taking the {closure} keeps the order
!cl_cl_le / le_kr_kr | | le (cl (cl x)) (cl x) | | a second {closure} adds nothing
!closed_iff / open_iff | | iff (closed x) (eq (cl x) x) | | an element is {closed} when it is its own {closure}
!up_le_iff / up_le_iff | | iff (le (up x) y) (le x (dn y)) | | the two maps are tied to each other
section The {meet} of two elements
meet_le_of_left / le_join_of_left | le x z | le (meet x y) z | le_trans meet_le_left | a {meet} lies {below} everything its first term lies {below}
meet_le_of_right / le_join_of_right | le y z | le (meet x y) z | le_trans meet_le_right | a {meet} lies {below} everything its second term lies {below}
le_left_of_le_meet / left_le_of_join_le | le z (meet x y) | le z x | le_trans meet_le_left | what lies {below} a {meet} lies {below} its first term
le_right_of_le_meet / right_le_of_join_le | le z (meet x y) | le z y | le_trans meet_le_right | what lies {below} a {meet} lies {below} its second term
meet_idem | | eq (meet x x) x | le_antisymm le_refl le_meet meet_le_left | the {meet} of an element with itself is that element
meet_comm | | eq (meet x y) (meet y x) | le_antisymm le_meet meet_le_left meet_le_right | the order of the terms of a {meet} does not matter
meet_mono | le x z ; le y w | le (meet x y) (meet z w) | le_trans meet_le_left meet_le_right le_meet | the {meet} is monotone in both terms
meet_mono_left | le x y | le (meet x z) (meet y z) | meet_mono le_refl | the {meet} is monotone in its first term
meet_mono_right | le y z | le (meet x y) (meet x z) | meet_mono le_refl | the {meet} is monotone in its second term
meet_assoc | | eq (meet (meet x y) z) (meet x (meet y z)) | le_antisymm le_trans le_meet meet_le_left meet_le_right | brackets may be moved in a {meet} of three elements
meet_left_comm | | eq (meet x (meet y z)) (meet y (meet x z)) | le_antisymm le_trans le_meet meet_le_left meet_le_right | the two outer terms of a nested {meet} may be exchanged
meet_right_comm | | eq (meet (meet x y) z) (meet (meet x z) y) | le_antisymm le_trans le_meet meet_le_left meet_le_right | the two last terms of a nested {meet} may be exchanged
meet_meet_self | | eq (meet x (meet x y)) (meet x y) | le_antisymm le_refl le_meet meet_le_left meet_le_right | repeating a term of a {meet} changes nothing
meet_distrib_meet | | eq (meet x (meet y z)) (meet (meet x y) (meet x z)) | le_antisymm le_trans le_meet meet_le_left meet_le_right | the {meet} distributes over itself
meet_eq_left / join_eq_left | le x y | eq (meet x y) x | le_antisymm le_refl le_meet meet_le_left | if one element lies {below} another, the {meet} is the first of them
meet_eq_right / join_eq_right | le y x | eq (meet x y) y | le_antisymm le_refl le_meet meet_le_right | if the second term lies {below} the first, the {meet} is the second
le_of_meet_eq / le_of_join_eq | eq (meet x y) x | le x y | le_trans ge_of_eq meet_le_right | the order can be read off from the {meet}
meet_le_join / meet_le_join | | le (meet x y) (join x y) | le_trans meet_le_left le_join_left | the {meet} lies below the {join}
meet_absorb | | eq (meet x (join x y)) x | le_antisymm le_refl le_meet meet_le_left le_join_left | the {meet} absorbs the {join}
meet_join_le / le_join_meet | | le (join (meet x y) (meet x z)) (meet x (join y z)) | le_trans join_le le_meet meet_le_left meet_le_right le_join_left le_join_right | one half of the distributive law always holds
modular_le / modular_ge | le x z | le (join x (meet y z)) (meet (join x y) z) | le_trans join_le le_meet meet_le_left meet_le_right le_join_left le_join_right | one half of the modular law always holds
meet_le_meet_join / join_meet_le_join | | le (meet x y) (meet x (join y z)) | meet_mono_right le_join_left | replacing one term of a {meet} by a {join} can only make it {larger}
eq_of_meet_eq_join / eq_of_join_eq_meet | eq (meet x y) (join x y) | eq x y | le_antisymm le_trans meet_le_left meet_le_right le_join_left le_join_right le_of_eq ge_of_eq | two elements whose {meet} and {join} agree are equal
section {Closure}s
cl_idem | | eq (cl (cl x)) (cl x) | le_antisymm cl_cl_le le_cl | the {closure} is idempotent
le_cl_of_le / kr_le_of_le | le x y | le x (cl y) | le_trans le_cl | passing to the {closure} on the far side is free
cl_le_cl / kr_le_kr | le x (cl y) | le (cl x) (cl y) | le_trans cl_mono cl_cl_le | what lies {below} a {closure} has its {closure} {below} it | cl (cl y)
cl_le_iff / le_kr_iff | | iff (le (cl x) (cl y)) (le x (cl y)) | cl_le_cl le_trans le_cl | to compare two {closure}s it is enough to look at one element
cl_meet_le / le_kr_join | | le (cl (meet x y)) (meet (cl x) (cl y)) | le_meet cl_mono meet_le_left meet_le_right | the {closure} of a {meet} lies {below} the {meet} of the {closure}s
join_cl_le / kr_meet_le | | le (join (cl x) (cl y)) (cl (join x y)) | join_le cl_mono le_join_left le_join_right | the {join} of two {closure}s lies {below} the {closure} of the {join}
cl_join_cl_left / kr_meet_kr_left | | eq (cl (join (cl x) y)) (cl (join x y)) | le_antisymm le_trans cl_le_cl cl_mono join_le le_join_left le_join_right le_cl | the first term of a {join} may be replaced by its {closure}
cl_join_cl / kr_meet_kr | | eq (cl (join (cl x) (cl y))) (cl (join x y)) | le_antisymm le_trans cl_le_cl cl_mono join_le join_cl_le le_join_left le_join_right le_cl | both terms of a {join} may be replaced by their {closure}s
cl_meet_cl / kr_join_kr |  | eq (cl (meet (cl x) (cl y))) (meet (cl x) (cl y)) | le_antisymm le_trans le_cl cl_meet_le meet_mono cl_cl_le | the {meet} of two {closure}s is its own {closure} | meet (cl (cl x)) (cl (cl y)) ; cl (cl x) ; cl (cl y)
cl_eq_of_between / kr_eq_of_between | le x y ; le y (cl x) | eq (cl y) (cl x) | le_antisymm cl_mono cl_le_cl | an element between another one and its {closure} has the same {closure}
section What is {closed}
closed_cl / open_kr | | closed (cl x) | closed_iff cl_idem | every {closure} is {closed} | cl (cl x)
cl_eq_of_closed / kr_eq_of_open | closed x | eq (cl x) x | closed_iff | a {closed} element is its own {closure}
closed_of_cl_le / open_of_le_kr | le (cl x) x | closed x | closed_iff le_antisymm le_cl | an element is {closed} as soon as its {closure} lies {below} it
cl_le_of_closed / le_kr_of_open | le x y ; closed y | le (cl x) y | le_trans cl_mono le_of_eq cl_eq_of_closed | the {closure} is the {smallest} {closed} element on its side | cl y
closed_meet / open_join | closed x ; closed y | closed (meet x y) | closed_of_cl_le cl_le_of_closed le_meet meet_le_left meet_le_right | the {meet} of two {closed} elements is {closed} | cl (meet x y)
closed_meet_cl / open_join_kr | | closed (meet (cl x) (cl y)) | closed_meet closed_cl | the {meet} of two {closure}s is {closed}
kr_le_cl / kr_le_cl | | le (kr x) (cl x) | le_trans kr_le le_cl | the {core} lies below the {closure}
cl_kr_le_cl / kr_le_kr_cl | | le (cl (kr x)) (cl x) | cl_mono kr_le | the {closure} of a {core} lies {below} the {closure}
kr_cl_kr_cl / cl_kr_cl_kr | | eq (kr (cl (kr (cl x)))) (kr (cl x)) | le_antisymm le_trans kr_mono cl_mono cl_cl_le le_kr_kr kr_le le_cl | taking {closure} and {core} in turn stops after two rounds | cl (cl x) ; kr (kr (cl x))
section The tied maps
up_mono / dn_mono | le x y | le (up x) (up y) | up_le_iff le_trans le_dn_up | the {up} keeps the order | dn (up y)
le_dn_up / up_dn_le | | le x (dn (up x)) | up_le_iff le_refl | going there and back moves an element to one side
up_dn_up / dn_up_dn | | eq (up (dn (up x))) (up x) | le_antisymm up_mono le_dn_up up_dn_le | three passes are as good as one
dn_up_idem / up_dn_idem | | eq (dn (up (dn (up x)))) (dn (up x)) | le_antisymm le_dn_up dn_mono up_dn_le up_mono | going there and back is idempotent
le_dn_of_up_le / up_le_of_le_dn | le (up x) y | le x (dn y) | up_le_iff | one half of the tie
up_join / dn_meet | | eq (up (join x y)) (join (up x) (up y)) | le_antisymm up_le_iff up_mono join_le le_join_left le_join_right | the {up} carries a {join} to a {join} | dn (join (up x) (up y))
up_meet_le / le_dn_join | | le (up (meet x y)) (meet (up x) (up y)) | le_meet up_mono meet_le_left meet_le_right | the {up} carries a {meet} {below} a {meet}
dn_up_mono / up_dn_mono | le x y | le (dn (up x)) (dn (up y)) | up_mono dn_mono | going there and back keeps the order
dn_up_le_iff / le_up_dn_iff | | iff (le (dn (up x)) (dn y)) (le x (dn y)) | le_trans le_dn_up dn_mono up_le_iff | a comparison may be pulled back along the tie
up_eq_of_le_dn / dn_eq_of_up_le | le x (dn y) ; le y (up x) | eq (up x) y | le_antisymm up_le_iff | the value of the {up} is pinned down by two comparisons
up_join_dn / dn_meet_up | | eq (up (join (dn (up x)) y)) (up (join x y)) | le_antisymm up_le_iff le_trans up_mono dn_mono join_le le_dn_up le_join_left le_join_right | a term of a {join} may be replaced by its image there and back | dn (up (join x y)) ; dn (up x) ; join x y
""",
)

# Implication and its mirror image, difference.
IMPLICATION = Theory(
    "implication",
    ("top", "bot"),
    {
        "le": ("le", (1, 0)),
        "meet": ("join", None),
        "join": ("meet", None),
        "top": ("bot", None),
        "bot": ("top", None),
        "imp": ("diff", (1, 0)),
        "diff": ("imp", (1, 0)),
        "neg": ("conot", None),
        "conot": ("neg", None),
    },
    {
        "meet": "join",
        "join": "meet",
        "top": "bot",
        "bot": "top",
        "imp": "diff",
        "diff": "imp",
        "neg": "conot",
        "conot": "neg",
        "below": "above",
        "above": "below",
        "smallest": "largest",
        "largest": "smallest",
        "smaller": "larger",
        "larger": "smaller",
    },
    ORDER
    + """
*le_of_eq / ge_of_eq | eq x y | le x y
*ge_of_eq / le_of_eq | eq x y | le y x
!meet_le_left / le_join_left | | le (meet x y) x | | a {meet} lies {below} its first term
!meet_le_right / le_join_right | | le (meet x y) y | | a {meet} lies {below} its second term
!le_meet / join_le | le z x ; le z y | le z (meet x y) | | whatever lies {below} two elements lies {below} their {meet}
!le_top / bot_le | | le x top | | the {largest} element lies {above} everything
!le_imp_iff / diff_le_iff | | iff (le x (imp y z)) (le (meet x y) z) | | the defining exchange for the {imp}
!neg_def / conot_def | | eq (neg x) (imp x bot) | | the {neg} is a special {imp}
section Working with the {meet}
meet_comm_le / le_join_comm | | le (meet x y) (meet y x) | le_meet meet_le_left meet_le_right | the terms of a {meet} may be exchanged
meet_mono | le x z ; le y w | le (meet x y) (meet z w) | le_trans meet_le_left meet_le_right le_meet | the {meet} is monotone in both terms
meet_mono_left | le x y | le (meet x z) (meet y z) | meet_mono le_refl | the {meet} is monotone in its first term
meet_mono_right | le y z | le (meet x y) (meet x z) | meet_mono le_refl | the {meet} is monotone in its second term
meet_assoc_le / le_join_assoc | | le (meet (meet x y) z) (meet x (meet y z)) | le_trans le_meet meet_le_left meet_le_right | brackets may be moved to the right in a {meet}
le_meet_assoc / join_assoc_le | | le (meet x (meet y z)) (meet (meet x y) z) | le_trans le_meet meet_le_left meet_le_right | brackets may be moved to the left in a {meet}
meet_top / join_bot | | eq (meet x top) x | le_antisymm le_meet le_refl le_top meet_le_left | the {largest} element is neutral for the {meet}
meet_bot / join_top | | eq (meet x bot) bot | le_antisymm bot_le meet_le_right | the {smallest} element swallows every {meet}
section The {imp}
imp_meet_le / le_join_diff | | le (meet (imp x y) x) y | le_imp_iff le_refl | the {imp} followed by its premise gives its conclusion
meet_imp_le / le_diff_join |  | le (meet x (imp x y)) y | le_trans meet_comm_le imp_meet_le | the premise together with the {imp} gives the conclusion | meet (imp x y) x
le_imp / diff_le |  | le y (imp x y) | le_imp_iff meet_le_left | every element lies {below} the {imp} that ends in it | meet y x
imp_mono_right / diff_mono_left | le y z | le (imp x y) (imp x z) | le_imp_iff le_trans imp_meet_le | the {imp} is monotone in its conclusion | meet (imp x y) x
imp_anti_left / diff_anti_right | le x y | le (imp y z) (imp x z) | le_imp_iff le_trans meet_mono_right imp_meet_le | the {imp} is antitone in its premise | meet (imp y z) x ; meet (imp y z) y
imp_self / diff_self | | eq (imp x x) top | le_antisymm le_top le_imp_iff meet_le_right | the {imp} of an element with itself is trivial | meet top x
imp_eq_top / diff_eq_bot | le x y | eq (imp x y) top | le_antisymm le_top le_imp_iff le_trans meet_le_right | comparable elements have a trivial {imp} | meet top x
le_of_imp_eq_top / le_of_diff_eq_bot | eq (imp x y) top | le x y | le_trans ge_of_eq le_imp_iff le_meet le_refl le_top | a trivial {imp} means that the elements are comparable | meet top x
top_imp / diff_bot | | eq (imp top x) x | le_antisymm le_imp le_trans le_meet le_refl le_top imp_meet_le | an {imp} with a trivial premise is its conclusion | meet (imp top x) top
imp_top / bot_diff | | eq (imp x top) top | le_antisymm le_top le_imp | an {imp} with a trivial conclusion is trivial
bot_imp / diff_top | | eq (imp bot x) top | imp_eq_top bot_le le_antisymm le_top | everything follows from the {smallest} element
imp_meet_self / diff_join_self | | eq (meet x (imp x y)) (meet x y) | le_antisymm le_meet meet_le_left meet_imp_le meet_mono_right le_imp | inside a {meet} with its premise the {imp} may be replaced by its conclusion
meet_imp_cancel / join_diff_cancel | | eq (meet (imp x y) y) y | le_antisymm le_meet meet_le_right le_imp le_refl | the conclusion absorbs the {imp}
imp_curry / diff_curry | | le (imp (meet x y) z) (imp x (imp y z)) | le_imp_iff le_trans imp_meet_le meet_assoc_le | two premises may be taken one after the other | meet (meet (imp (meet x y) z) x) y ; meet (imp (meet x y) z) (meet x y) ; meet (imp (meet x y) z) x
imp_uncurry / diff_uncurry | | le (imp x (imp y z)) (imp (meet x y) z) | le_imp_iff le_trans le_meet_assoc meet_mono_left imp_meet_le | two premises may be taken together | meet (meet (imp x (imp y z)) x) y ; meet (imp x (imp y z)) (meet x y) ; meet (imp y z) y
imp_imp_eq / diff_diff_eq | | eq (imp x (imp y z)) (imp (meet x y) z) | le_antisymm imp_curry imp_uncurry | nested {imp}s are one {imp} from a {meet}
imp_left_comm / diff_right_comm | | le (imp x (imp y z)) (imp y (imp x z)) | le_trans imp_uncurry imp_anti_left meet_comm_le imp_curry | the premises of a nested {imp} may be exchanged | imp (meet x y) z ; imp (meet y x) z
imp_meet / join_diff | | eq (imp x (meet y z)) (meet (imp x y) (imp x z)) | le_antisymm le_meet imp_mono_right meet_le_left meet_le_right le_imp_iff le_trans meet_mono_left imp_meet_le | the {imp} respects a {meet} in its conclusion | meet (meet (imp x y) (imp x z)) x ; meet (imp x y) x ; meet (imp x z) x
join_imp / diff_meet | | eq (imp (join x y) z) (meet (imp x z) (imp y z)) | le_antisymm le_meet imp_anti_left le_join_left le_join_right le_imp_iff le_trans join_le meet_comm_le meet_mono_right meet_imp_le meet_le_left meet_le_right | a {join} of premises becomes a {meet} | meet (meet (imp x z) (imp y z)) (join x y) ; meet (join x y) (meet (imp x z) (imp y z)) ; imp (meet (imp x z) (imp y z)) z ; meet x (meet (imp x z) (imp y z)) ; meet y (meet (imp x z) (imp y z)) ; meet x (imp x z) ; meet y (imp y z)
imp_trans / diff_trans | | le (meet (imp x y) (imp y z)) (imp x z) | le_imp_iff le_trans le_meet meet_le_left meet_le_right meet_mono_left imp_meet_le meet_imp_le | {imp}s can be composed | meet (meet (imp x y) (imp y z)) x ; meet (imp x y) x ; meet y (imp y z)
imp_imp_self / diff_diff_self | | le x (imp (imp x y) y) | le_imp_iff meet_imp_le | every element lies {below} its double {imp} | meet x (imp x y)
imp_imp_imp / diff_diff_diff | | eq (imp (imp (imp x y) y) y) (imp x y) | le_antisymm imp_anti_left imp_imp_self | a threefold {imp} is a single one
meet_le_meet_imp / join_diff_le_join | | le (meet y z) (meet (imp x y) z) | meet_mono_left le_imp | weakening by a premise is monotone
section The {neg}
neg_le_imp / diff_le_conot | | le (neg x) (imp x y) | le_trans le_of_eq neg_def imp_mono_right bot_le | the {neg} of an element implies everything | imp x bot
meet_neg / join_conot | | eq (meet x (neg x)) bot | le_antisymm bot_le le_trans meet_mono_right le_of_eq neg_def meet_imp_le | an element and its {neg} have a trivial {meet} | meet x (imp x bot)
le_neg_of_meet / conot_le_of_join | le (meet x y) bot | le x (neg y) | le_imp_iff le_trans ge_of_eq neg_def | an element with trivial {meet} lies {below} the {neg} | imp y bot
meet_le_of_le_neg / le_join_of_conot_le | le x (neg y) | le (meet x y) bot | le_imp_iff le_trans le_of_eq neg_def | what lies {below} a {neg} has a trivial {meet} | imp y bot
neg_anti / conot_anti | le x y | le (neg y) (neg x) | le_trans le_of_eq ge_of_eq neg_def imp_anti_left | the {neg} turns the order around | imp x bot ; imp y bot
le_neg_neg / conot_conot_le | | le x (neg (neg x)) | le_neg_of_meet le_of_eq meet_neg | an element lies {below} its double {neg} | meet x (neg x) ; bot
neg_neg_neg / conot_conot_conot | | eq (neg (neg (neg x))) (neg x) | le_antisymm neg_anti le_neg_neg | a threefold {neg} is a single one
neg_neg_mono / conot_conot_mono | le x y | le (neg (neg x)) (neg (neg y)) | neg_anti | the double {neg} keeps the order | neg x ; neg y
le_neg_comm / conot_le_comm | le x (neg y) | le y (neg x) | le_trans le_neg_neg neg_anti | two elements exclude each other in a symmetric way | neg (neg y)
neg_join / conot_meet | | eq (neg (join x y)) (meet (neg x) (neg y)) | le_antisymm le_meet neg_anti le_join_left le_join_right le_neg_comm join_le meet_le_left meet_le_right | the {neg} of a {join} is the {meet} of the {neg}s | neg (meet (neg x) (neg y))
neg_top / conot_bot | | eq (neg top) bot | le_antisymm bot_le le_trans le_meet le_refl le_top meet_le_of_le_neg | the {neg} of the {largest} element is the {smallest} | meet (neg top) top
neg_bot / conot_top | | eq (neg bot) top | le_antisymm le_top le_neg_of_meet meet_le_right | the {neg} of the {smallest} element is the {largest} | meet top bot
join_neg_le / conot_meet_le | | le (join (neg x) y) (imp x y) | join_le neg_le_imp le_imp | the {neg} of the premise and the conclusion both give the {imp}
imp_neg_comm / conot_diff_comm | | le (imp x (neg y)) (neg (meet x y)) | le_neg_of_meet le_trans le_meet_assoc meet_mono_left imp_meet_le meet_le_of_le_neg le_refl | an {imp} into a {neg} excludes the {meet} | meet (imp x (neg y)) (meet x y) ; meet (meet (imp x (neg y)) x) y ; meet (neg y) y ; bot
""",
)

# Composition, residuals, iteration, converse: mirrored left to right.
RELATION = Theory(
    "relation",
    ("one",),
    {
        "comp": ("comp", (1, 0)),
        "lres": ("rres", (1, 0)),
        "rres": ("lres", (1, 0)),
    },
    {
        "lres": "rres",
        "rres": "lres",
        "left": "right",
        "right": "left",
        "first": "second",
        "second": "first",
        "before": "after",
        "after": "before",
    },
    """
*le_refl | | le a a
*le_trans | le a b ; le b c | le a c
*le_antisymm | le a b ; le b a | eq a b
*le_of_eq | eq a b | le a b
*ge_of_eq | eq a b | le b a
!comp_assoc | | eq (comp (comp a b) c) (comp a (comp b c)) | | brackets may be moved in a {comp}
!one_comp / comp_one | | eq (comp one a) a | | the {one} is neutral on the {left}
!comp_mono | le a b ; le c d | le (comp a c) (comp b d) | | {comp} is monotone
!le_join_left / le_join_left | | le a (join a b) | | a {join} lies above its first term
!le_join_right / le_join_right | | le b (join a b) | | a {join} lies above its second term
!join_le | le a c ; le b c | le (join a b) c | | a {join} lies below every common bound
!le_lres_iff / le_rres_iff | | iff (le b (lres a c)) (le (comp a b) c) | | the {lres} solves an inequality on the {right}
!one_le_star | | le one (star a) | | the {star} allows no step at all
!comp_star_le / star_comp_le | | le (comp a (star a)) (star a) | | one more step {before} an iteration is an iteration
!star_induct / star_coinduct | le b c ; le (comp a c) c | le (comp (star a) b) c | | {star} is the least solution on the {left}
!conv_mono | le a b | le (conv a) (conv b) | | turning around keeps the order
!conv_conv | | eq (conv (conv a)) a | | turning around twice changes nothing
!conv_comp | | eq (conv (comp a b)) (comp (conv b) (conv a)) | | turning around exchanges the two parts of a {comp}
!trans_iff | | iff (trans a) (le (comp a a) a) | | definition of {trans}
section Composition on the {left} and on the {right}
comp_mono_left / comp_mono_right | le a b | le (comp a c) (comp b c) | comp_mono le_refl | {comp} is monotone in the {left} part
join_idem | | eq (join a a) a | le_antisymm join_le le_refl le_join_left | the {join} of an element with itself
join_comm | | eq (join a b) (join b a) | le_antisymm join_le le_join_left le_join_right | the terms of a {join} may be exchanged
join_mono | le a b ; le c d | le (join a c) (join b d) | join_le le_trans le_join_left le_join_right | the {join} is monotone
join_comp_le / comp_join_ge | | le (join (comp a c) (comp b c)) (comp (join a b) c) | join_le comp_mono_left le_join_left le_join_right | a common {right} part may be taken out
comp_join_le / join_comp_ge | | le (comp a (join b c)) (join (comp a b) (comp a c)) | le_lres_iff join_le le_join_left le_join_right | a {join} in the {right} part may be multiplied out | lres a (join (comp a b) (comp a c))
comp_join / join_comp | | eq (comp a (join b c)) (join (comp a b) (comp a c)) | le_antisymm comp_join_le comp_join_ge | {comp} distributes over the {join} in its {right} part
comp_le_of_le_one / le_comp_of_one_le | le a one | le (comp a b) b | le_trans comp_mono_left le_of_eq one_comp | a part of the {one} shrinks what comes {after} it | comp one b
le_comp_of_ge_one / comp_ge_of_ge_one | le one a | le b (comp a b) | le_trans comp_mono_left ge_of_eq one_comp | a part that contains the {one} enlarges what comes {after} it | comp one b
comp_comp_le / comp_comp_ge | le (comp a b) c | le (comp a (comp b d)) (comp c d) | le_trans ge_of_eq comp_assoc comp_mono_left le_of_eq | an inequality may be used {before} something else | comp (comp a b) d
section The {lres}
comp_lres_le / rres_comp_le | | le (comp a (lres a c)) c | le_lres_iff le_refl | the {lres} does solve the inequality
le_lres_comp / le_rres_comp | | le b (lres a (comp a b)) | le_lres_iff le_refl | what was composed can be taken off again
lres_mono / rres_mono | le b c | le (lres a b) (lres a c) | le_lres_iff le_trans comp_lres_le | the {lres} is monotone in its upper part | comp a (lres a b)
lres_anti / rres_anti | le a b | le (lres b c) (lres a c) | le_lres_iff le_trans comp_mono_left comp_lres_le | the {lres} is antitone in its lower part | comp a (lres b c) ; comp b (lres b c)
one_lres / rres_one | | eq (lres one c) c | le_antisymm le_trans ge_of_eq le_of_eq one_comp comp_lres_le le_lres_iff | nothing is taken off by the {one} | comp one (lres one c) ; comp one c
one_le_lres / one_le_rres | | le one (lres a a) | le_lres_iff le_of_eq comp_one | the {lres} of a element by itself contains the {one} | comp a one
lres_comp_lres / rres_comp_rres |  | le (comp (lres a b) (lres b c)) (lres a c) | le_lres_iff le_trans ge_of_eq comp_assoc comp_mono_left comp_lres_le le_of_eq | {lres}s can be composed | comp a (comp (lres a b) (lres b c)) ; comp (comp a (lres a b)) (lres b c) ; comp b (lres b c)
lres_lres / rres_rres | | eq (lres (comp a b) c) (lres b (lres a c)) | le_antisymm le_lres_iff le_trans le_of_eq ge_of_eq comp_assoc comp_lres_le | a {comp} is taken off one part after the other | comp (comp a b) (lres (comp a b) c) ; comp a (comp b (lres (comp a b) c)) ; comp b (lres (comp a b) c) ; comp (comp a b) (lres b (lres a c)) ; comp a (comp b (lres b (lres a c))) ; comp b (lres b (lres a c))
lres_rres_le / rres_lres_le |  | le (rres (lres a c) b) (lres a (rres c b)) | le_lres_iff le_rres_iff le_trans le_of_eq comp_assoc rres_comp_le ge_of_eq | the order in which both sides are taken off does not matter | comp a (rres (lres a c) b) ; comp (comp a (rres (lres a c) b)) b ; comp a (comp (rres (lres a c) b) b) ; comp (rres (lres a c) b) b
le_rres_lres / le_lres_rres | | le a (rres c (lres a c)) | le_rres_iff comp_lres_le | an element lies below its double residual | comp a (lres a c)
lres_rres_lres / rres_lres_rres | | eq (lres (rres c (lres a c)) c) (lres a c) | le_antisymm lres_anti le_rres_lres le_lres_rres | three residuals are as good as one
comp_lres_comp_le / comp_rres_comp_le |  | le (comp (lres a b) c) (lres a (comp b c)) | le_lres_iff le_trans ge_of_eq comp_assoc comp_mono_left comp_lres_le le_of_eq | a {lres} may absorb what comes {after} it | comp a (comp (lres a b) c) ; comp (comp a (lres a b)) c
comp_lres_self / rres_self_comp | | eq (comp a (lres a a)) a | le_antisymm comp_lres_le le_trans ge_of_eq comp_one comp_mono_right one_le_lres | composing with the {lres} of a element by itself changes nothing | comp a one
section Iteration
le_star | | le a (star a) | le_trans ge_of_eq comp_one comp_mono_right one_le_star comp_star_le | one step is an iteration | comp a one ; comp a (star a)
star_le_of / star_le_of_right | le one b ; le (comp a b) b | le (star a) b | star_induct le_trans ge_of_eq comp_one | to bound an iteration it is enough to bound one step on the {left} | comp (star a) one
star_comp_star |  | le (comp (star a) (star a)) (star a) | star_induct le_refl comp_star_le | two iterations in a row are one | comp a (star a)
star_comp_star_eq | | eq (comp (star a) (star a)) (star a) | le_antisymm star_comp_star le_trans ge_of_eq comp_one comp_mono_right one_le_star | two iterations in a row are exactly one | comp (star a) one
star_mono | le a b | le (star a) (star b) | star_le_of le_trans one_le_star comp_mono_left comp_star_le | more steps allow more iterations | comp a (star b) ; comp b (star b) ; one
star_star | | eq (star (star a)) (star a) | le_antisymm star_le_of one_le_star star_comp_star le_star | iterating an iteration gives nothing new | comp (star a) (star a) ; one
star_one | | eq (star one) one | le_antisymm star_le_of le_refl le_of_eq one_comp one_le_star | iterating the {one} gives the {one} | comp one one
star_le_star_join / star_le_star_join | | le (star a) (star (join a b)) | star_mono le_join_left | a part may be iterated alone
join_star_le | | le (join (star a) (star b)) (star (join a b)) | join_le star_mono le_join_left le_join_right | iterations of the parts are iterations of the {join}
star_unfold / star_unfold_right | | le (join one (comp a (star a))) (star a) | join_le one_le_star comp_star_le | an iteration is nothing or a step and an iteration
star_le_unfold / star_le_unfold_right | | le (star a) (join one (comp a (star a))) | star_le_of le_join_left le_trans comp_mono_right join_le one_le_star comp_star_le le_join_right | every iteration begins with nothing or with a step on the {left} | comp a (join one (comp a (star a)))
star_eq_unfold / star_eq_unfold_right | | eq (star a) (join one (comp a (star a))) | le_antisymm star_unfold star_le_unfold | the {star} solves its own equation
star_simulate / star_cosimulate | le (comp a b) (comp b c) | le (comp (star a) b) (comp b (star c)) | star_induct le_trans ge_of_eq le_of_eq comp_one comp_mono_right one_le_star comp_comp_le comp_assoc comp_star_le | if one step can be followed, every iteration can be followed | comp b one ; comp b (star c) ; comp a (comp b (star c)) ; comp (comp b c) (star c) ; comp b (comp c (star c))
star_slide_le / star_slide_ge |  | le (comp (star (comp a b)) a) (comp a (star (comp b a))) | star_simulate le_of_eq comp_assoc ge_of_eq | a step may be slid through an iteration | comp (comp a b) a ; comp a (comp b a)
star_slide | | eq (comp (star (comp a b)) a) (comp a (star (comp b a))) | le_antisymm star_slide_le star_slide_ge | sliding works in both directions
comp_star_le_of_le / star_comp_le_of_le | le (comp b a) b | le (comp b (star a)) b | star_coinduct le_refl | what absorbs a step absorbs an iteration
star_lres / star_rres | | eq (star (lres a a)) (lres a a) | le_antisymm star_le_of one_le_lres lres_comp_lres le_star | the {lres} of a element by itself is its own {star} | comp (lres a a) (lres a a) ; one
section Turning around
conv_le / conv_le | le (conv a) b | le a (conv b) | le_trans ge_of_eq conv_conv conv_mono | an inequality may be turned around | conv (conv a)
le_conv / le_conv | le a (conv b) | le (conv a) b | le_trans le_of_eq conv_conv conv_mono | an inequality may be turned back | conv (conv b)
conv_one |  | eq (conv one) one | le_antisymm le_trans le_of_eq ge_of_eq comp_one comp_mono_right conv_conv conv_comp conv_mono conv_le | the {one} is the same in both directions | comp (conv one) one ; comp (conv one) (conv (conv one)) ; conv (comp (conv one) one) ; conv (conv one)
conv_join | | eq (conv (join a b)) (join (conv a) (conv b)) | le_antisymm join_le conv_mono le_join_left le_join_right le_conv conv_le | turning around distributes over the {join} | conv (join (conv a) (conv b)) ; conv (conv a) ; conv (conv b)
conv_star_le | | le (star (conv a)) (conv (star a)) | star_le_of le_trans ge_of_eq le_of_eq conv_one conv_mono one_le_star conv_comp star_comp_le | turning around an iteration, first half | conv one ; comp (conv a) (conv (star a)) ; conv (comp (star a) a) ; one
conv_star | | eq (conv (star a)) (star (conv a)) | le_antisymm conv_star_le le_conv le_trans star_mono ge_of_eq conv_conv conv_le | turning around commutes with the {star} | star (conv (conv a)) ; conv (star (conv a)) ; star a ; conv (conv a)
conv_le_conv_iff / conv_le_conv_iff | | iff (le (conv a) (conv b)) (le a b) | conv_mono le_trans ge_of_eq le_of_eq conv_conv | comparisons survive turning around | conv (conv a) ; conv (conv b)
conv_lres_le / conv_rres_le | | le (conv (lres a c)) (rres (conv c) (conv a)) | le_rres_iff le_trans ge_of_eq conv_comp conv_mono comp_lres_le | turning around exchanges the two residuals | comp (conv (lres a c)) (conv a) ; conv (comp a (lres a c)) ; conv c
section Elements that are {trans}
trans_star | | trans (star a) | trans_iff star_comp_star | every iteration is {trans} | comp (star a) (star a)
trans_one | | trans one | trans_iff le_of_eq one_comp | the {one} is {trans} | comp one one
trans_lres / trans_rres | | trans (lres a a) | trans_iff lres_comp_lres | the {lres} of a element by itself is {trans} | comp (lres a a) (lres a a)
trans_conv | trans a | trans (conv a) | trans_iff le_trans ge_of_eq conv_comp conv_mono | what is {trans} stays so when turned around | comp (conv a) (conv a) ; conv (comp a a) ; comp a a
star_le_of_trans | trans a ; le one a | le (star a) a | trans_iff star_le_of | a {trans} element that contains the {one} contains its iterations | comp a a ; one
star_eq_of_trans | trans a ; le one a | eq (star a) a | le_antisymm star_le_of_trans le_star | a {trans} element that contains the {one} is its own {star}
comp_star_le_of_trans / star_comp_le_of_trans | trans a | le (comp a (star a)) a | comp_star_le_of_le trans_iff | a {trans} element absorbs its own iterations | comp a a
""",
)

# Products with inverses: conjugates and commutators, mirrored left to right.
GROUP = Theory(
    "group",
    ("one",),
    {
        "mul": ("mul", (1, 0)),
        "conj": ("rconj", None),
        "rconj": ("conj", None),
        "comm": ("rcomm", None),
        "rcomm": ("comm", None),
        "ldiv": ("rdiv", (1, 0)),
        "rdiv": ("ldiv", (1, 0)),
    },
    {
        "conj": "rconj",
        "rconj": "conj",
        "comm": "rcomm",
        "rcomm": "comm",
        "left": "right",
        "right": "left",
        "ldiv": "rdiv",
        "rdiv": "ldiv",
        "before": "after",
        "after": "before",
    },
    """
!mul_assoc | | eq (mul (mul a b) c) (mul a (mul b c)) | | brackets may be moved
!one_mul / mul_one | | eq (mul one a) a | | the {one} is neutral on the {left}
!inv_mul / mul_inv | | eq (mul (inv a) a) one | | an {inv} undoes its element on the {left}
!conj_def / rconj_def | | eq (conj a b) (mul (mul a b) (inv a)) | | definition of the {conj}
!comm_def / rcomm_def | | eq (comm a b) (mul (mul a b) (mul (inv a) (inv b))) | | definition of the {comm}
!ldiv_def / rdiv_def | | eq (ldiv a b) (mul (inv a) b) | | definition of the {ldiv}
!map_mul / map_mul | | eq (map (mul a b)) (mul (map a) (map b)) | | a {map} respects products
section Cancelling on the {left}
inv_mul_cancel_left / mul_inv_cancel_right | | eq (mul (inv a) (mul a b)) b | mul_assoc inv_mul one_mul | an {inv} cancels its element inside a product
mul_inv_cancel_left / inv_mul_cancel_right | | eq (mul a (mul (inv a) b)) b | mul_assoc mul_inv one_mul | an element cancels its {inv} inside a product
mul_left_cancel / mul_right_cancel | eq (mul a b) (mul a c) | eq b c | inv_mul_cancel_left | equal products with the same {left} part have the same rest | mul (inv a) (mul a b)
mul_left_congr / mul_right_congr | eq b c | eq (mul a b) (mul a c) | mul_assoc | equal elements may be multiplied on the {left}
inv_eq_of_mul / inv_eq_of_mul_right | eq (mul a b) one | eq (inv a) b | inv_mul_cancel_left mul_one | an element that solves the equation is the {inv} | mul (inv a) (mul a b)
eq_inv_mul_of / eq_mul_inv_of | eq (mul a b) c | eq b (mul (inv a) c) | inv_mul_cancel_left | a factor may be moved to the other side | mul (inv a) (mul a b)
eq_one_of_mul_eq / eq_one_of_mul_eq_right | eq (mul a b) a | eq b one | inv_mul_cancel_left inv_mul | an element that changes nothing on the {right} is the {one} | mul (inv a) (mul a b)
inv_one | | eq (inv one) one | inv_mul mul_one | the {one} is its own {inv} | mul (inv one) one
inv_inv | | eq (inv (inv a)) a | inv_mul_cancel_left inv_mul mul_one | the {inv} of the {inv} is the element itself | mul (inv (inv a)) (mul (inv a) a)
mul_inv_rev | | eq (inv (mul a b)) (mul (inv b) (inv a)) | inv_eq_of_mul mul_assoc mul_inv mul_inv_cancel_left | the {inv} of a product is the product of the {inv}s in the other order
inv_inj / inv_inj | eq (inv a) (inv b) | eq a b | inv_inv | elements with the same {inv} are equal | inv (inv a) ; inv (inv b)
mul_mul_inv_rev / inv_rev_mul_mul | | eq (inv (mul a (mul b c))) (mul (inv c) (mul (inv b) (inv a))) | mul_inv_rev mul_assoc | the {inv} of three factors
section The {ldiv}
mul_ldiv / rdiv_mul | | eq (mul a (ldiv a b)) b | ldiv_def mul_inv_cancel_left | the {ldiv} solves an equation on the {right}
ldiv_mul / mul_rdiv | | eq (ldiv a (mul a b)) b | ldiv_def inv_mul_cancel_left | dividing on the {left} undoes multiplying on the {left}
ldiv_self / rdiv_self | | eq (ldiv a a) one | ldiv_def inv_mul | dividing an element by itself
one_ldiv / rdiv_one | | eq (ldiv one a) a | ldiv_def inv_one one_mul | dividing by the {one} changes nothing
ldiv_one / one_rdiv | | eq (ldiv a one) (inv a) | ldiv_def mul_one | the {ldiv} of the {one} is the {inv}
inv_ldiv / inv_rdiv | | eq (inv (ldiv a b)) (ldiv b a) | ldiv_def mul_inv_rev inv_inv | the {inv} exchanges the parts of a {ldiv}
ldiv_mul_ldiv / rdiv_mul_rdiv | | eq (mul (ldiv a b) (ldiv b c)) (ldiv a c) | ldiv_def mul_assoc mul_inv_cancel_left | {ldiv}s can be chained
mul_ldiv_mul / mul_rdiv_mul | | eq (ldiv (mul a b) (mul a c)) (ldiv b c) | ldiv_def mul_inv_rev mul_assoc inv_mul_cancel_left | a common {left} factor cancels in a {ldiv}
ldiv_ldiv / rdiv_rdiv | | eq (ldiv (mul a b) c) (ldiv b (ldiv a c)) | ldiv_def mul_inv_rev mul_assoc | dividing by a product is dividing twice
ldiv_mul_assoc / mul_rdiv_assoc | | eq (mul (ldiv a b) c) (ldiv a (mul b c)) | ldiv_def mul_assoc | the {ldiv} may absorb what comes {after} it
eq_of_ldiv_eq_one / eq_of_rdiv_eq_one | eq (ldiv a b) one | eq b a | mul_ldiv mul_one | elements with trivial {ldiv} are equal | mul a (ldiv a b)
section The {conj}
conj_one / rconj_one | | eq (conj a one) one | conj_def mul_one mul_inv | the {one} is fixed by every {conj}
one_conj / one_rconj | | eq (conj one a) a | conj_def inv_one one_mul mul_one | the {conj} by the {one} changes nothing
conj_self / rconj_self | | eq (conj a a) a | conj_def mul_assoc mul_inv mul_one | an element is its own {conj} by itself
conj_mul / rconj_mul | | eq (mul (conj a b) (conj a c)) (conj a (mul b c)) | conj_def mul_assoc inv_mul_cancel_left | the {conj} respects products
conj_conj / rconj_rconj | | eq (conj a (conj b c)) (conj (mul a b) c) | conj_def mul_assoc mul_inv_rev | taking the {conj} twice
conj_inv / rconj_inv | | eq (conj a (inv b)) (inv (conj a b)) | conj_def mul_assoc mul_inv_rev inv_inv | the {conj} respects {inv}s
conj_inv_cancel / rconj_inv_cancel | | eq (conj a (conj (inv a) b)) b | conj_conj mul_inv one_conj | the {conj} by the {inv} undoes the {conj}
inv_conj_cancel / inv_rconj_cancel | | eq (conj (inv a) (conj a b)) b | conj_conj inv_mul one_conj | the {conj} undoes the {conj} by the {inv}
mul_eq_conj_mul / mul_eq_mul_rconj | | eq (mul (conj a b) a) (mul a b) | conj_def mul_assoc inv_mul mul_one | an element may be moved past another one at the price of a {conj}
conj_injective / rconj_injective | eq (conj a b) (conj a c) | eq b c | inv_conj_cancel | equal {conj}s come from equal elements | conj (inv a) (conj a b)
conj_of_commute / rconj_of_commute | eq (mul a b) (mul b a) | eq (conj a b) b | conj_def mul_assoc mul_inv mul_one | the {conj} of a commuting element is that element | mul (mul b a) (inv a)
commute_of_conj / commute_of_rconj | eq (conj a b) b | eq (mul a b) (mul b a) | mul_eq_conj_mul | an element that is fixed by a {conj} commutes | mul (conj a b) a
conj_ldiv / rconj_rdiv | | eq (ldiv (conj a b) (conj a c)) (conj a (ldiv b c)) | ldiv_def conj_inv conj_mul | the {conj} respects {ldiv}s | mul (inv (conj a b)) (conj a c) ; mul (conj a (inv b)) (conj a c) ; conj a (mul (inv b) c)
section The {comm}
comm_self / rcomm_self | | eq (comm a a) one | comm_def mul_assoc mul_inv_cancel_left mul_inv | the {comm} of an element with itself is trivial
comm_one / rcomm_one | | eq (comm a one) one | comm_def inv_one mul_one mul_inv | the {comm} with the {one} is trivial
one_comm / one_rcomm | | eq (comm one a) one | comm_def inv_one one_mul mul_inv | the {comm} of the {one} is trivial
comm_mul_mul / mul_mul_rcomm | | eq (mul (comm a b) (mul b a)) (mul a b) | comm_def mul_assoc inv_mul_cancel_left inv_mul mul_one | the {comm} measures how far two elements are from commuting
inv_comm / inv_rcomm | | eq (inv (comm a b)) (comm b a) | comm_def mul_inv_rev inv_inv mul_assoc | the {inv} of a {comm} is the {comm} in the other order
comm_of_commute / rcomm_of_commute | eq (mul a b) (mul b a) | eq (comm a b) one | comm_def mul_assoc mul_inv_cancel_left mul_inv | commuting elements have a trivial {comm} | mul (mul b a) (mul (inv a) (inv b))
commute_of_comm / commute_of_rcomm | eq (comm a b) one | eq (mul a b) (mul b a) | comm_mul_mul one_mul | elements with a trivial {comm} commute | mul (comm a b) (mul b a)
comm_eq_conj_mul / rcomm_eq_mul_rconj | | eq (comm a b) (mul (conj a b) (inv b)) | comm_def conj_def mul_assoc | a {comm} is a {conj} times an {inv}
comm_eq_mul_conj / rcomm_eq_rconj_mul | | eq (comm a b) (mul a (conj b (inv a))) | comm_def conj_def mul_assoc | a {comm} is an element times a {conj}
conj_eq_comm_mul / rconj_eq_mul_rcomm | | eq (conj a b) (mul (comm a b) b) | comm_def conj_def mul_assoc inv_mul mul_one | a {conj} is a {comm} times the element
conj_comm / rconj_rcomm | | eq (comm (conj a b) (conj a c)) (conj a (comm b c)) | comm_def conj_mul conj_inv | the {conj} respects {comm}s | mul (mul (conj a b) (conj a c)) (mul (inv (conj a b)) (inv (conj a c))) ; mul (mul (conj a b) (conj a c)) (mul (conj a (inv b)) (conj a (inv c))) ; mul (conj a (mul b c)) (conj a (mul (inv b) (inv c)))
mul_comm_left / mul_rcomm_right | | eq (comm (mul a b) c) (mul (conj a (comm b c)) (comm a c)) | comm_def conj_def mul_inv_rev mul_assoc inv_mul_cancel_left | the {comm} of a product in its first part | mul a (mul b (mul c (mul (inv b) (mul (inv a) (inv c)))))
mul_comm_right / mul_rcomm_left | | eq (comm a (mul b c)) (mul (comm a b) (conj b (comm a c))) | comm_def conj_def mul_inv_rev mul_assoc inv_mul_cancel_left | the {comm} of a product in its second part | mul a (mul b (mul c (mul (inv a) (mul (inv c) (inv b)))))
section The {map}
map_one / map_one | | eq (map one) one | eq_one_of_mul_eq <map_mul one_mul | a {map} sends the {one} to the {one} | map one
map_inv / map_inv | | eq (inv (map a)) (map (inv a)) | inv_eq_of_mul <map_mul map_one mul_inv | a {map} respects {inv}s
map_conj / map_rconj | | eq (map (conj a b)) (conj (map a) (map b)) | conj_def <map_mul map_inv | a {map} respects the {conj} | mul (mul (map a) (map b)) (map (inv a))
map_comm / map_rcomm | | eq (map (comm a b)) (comm (map a) (map b)) | comm_def <map_mul map_inv | a {map} respects the {comm} | mul (mul (map a) (map b)) (mul (map (inv a)) (map (inv b)))
map_ldiv / map_rdiv | | eq (map (ldiv a b)) (ldiv (map a) (map b)) | ldiv_def <map_mul map_inv | a {map} respects the {ldiv}
map_comm_eq_one / map_rcomm_eq_one | eq (map a) one | eq (map (comm a b)) one | map_comm one_comm | what a {map} sends to the {one} has trivial {comm}s | comm (map a) (map b) ; comm one (map b)
map_conj_eq_one / map_rconj_eq_one | eq (map b) one | eq (map (conj a b)) one | map_conj conj_one | what a {map} sends to the {one} is closed under the {conj} | conj (map a) (map b) ; conj (map a) one
map_eq_of_ldiv / map_eq_of_rdiv | eq (map (ldiv a b)) one | eq (map b) (map a) | map_ldiv mul_ldiv mul_one | elements whose {ldiv} is sent to the {one} have the same image | mul (map a) (ldiv (map a) (map b)) ; mul (map a) (map (ldiv a b))
""",
)

# A distance that depends on the direction, mirrored by reading it backwards.
DISTANCE = Theory(
    "distance",
    ("zero",),
    {
        "d": ("d", (1, 0)),
        "ball": ("cob", None),
        "cob": ("ball", None),
        "pre": ("pre", (1, 0)),
        "far": ("cofar", None),
        "cofar": ("far", None),
    },
    {
        "ball": "cob",
        "cob": "ball",
        "triangle": "cotriangle",
        "cotriangle": "triangle",
        "left": "right",
        "right": "left",
        "from": "to",
        "to": "from",
        "leaving": "reaching",
        "reaching": "leaving",
        "forward": "backward",
        "backward": "forward",
        "out": "in",
        "in": "out",
        "far": "cofar",
        "cofar": "far",
    },
    """
*le_refl | | le r r
*le_trans | le r s ; le s t | le r t
*le_antisymm | le r s ; le s r | eq r s
*le_of_eq | eq r s | le r s
*ge_of_eq | eq r s | le s r
*add_le_add | le r s ; le t u | le (add r t) (add s u)
*add_lt_add | lt r s ; lt t u | lt (add r t) (add s u)
*add_comm | | eq (add r s) (add s r)
*add_assoc | | eq (add (add r s) t) (add r (add s t))
*add_add_comm | | eq (add (add r s) (add t u)) (add (add r t) (add s u))
*zero_add | | eq (add zero r) r
*add_zero | | eq (add r zero) r
*le_of_lt | lt r s | le r s
*lt_of_le_of_lt | le r s ; lt s t | lt r t
*lt_of_lt_of_le | lt r s ; le s t | lt r t
*le_add_right / le_add_right | le zero s | le r (add r s)
*le_add_left / le_add_left | le zero s | le r (add s r)
!d_nonneg / d_nonneg | | le zero (d x y) | | no distance is negative
!d_self / d_self | | eq (d x x) zero | | a point has distance zero from itself
!d_triangle / d_cotriangle | | le (d x z) (add (d x y) (d y z)) | | a detour is never shorter
!mem_ball_iff / mem_cob_iff | | iff (mem y (ball x r)) (lt (d x y) r) | | the {ball} consists of the points less than the radius away, measured {from} the centre
!mem_far_iff / mem_cofar_iff | | iff (mem y (far x r)) (le (d x y) r) | | the {far} is the {ball} with its rim
!pre_iff / pre_iff | | iff (pre x y) (eq (d x y) zero) | | one point {pre} another when the way there costs nothing
!sym_def / sym_def | | eq (sym x y) (add (d x y) (d y x)) | | the {sym} adds both directions
!map_short / map_short | | le (d (map x) (map y)) (d x y) | | a {map} never lengthens a way
section Detours
d_cotriangle / d_triangle | | le (d z x) (add (d y x) (d z y)) | le_trans d_triangle le_of_eq add_comm | the detour inequality read backwards | add (d z y) (d y x)
d_four / d_cofour | | le (d x w) (add (d x y) (add (d y z) (d z w))) | le_trans d_triangle add_le_add le_refl | a detour over two points is never shorter | add (d x y) (d y w) ; add (d y z) (d z w)
d_le_of_right_zero / d_le_of_left_zero | eq (d y z) zero | le (d x z) (d x y) | le_trans d_triangle add_le_add le_refl le_of_eq add_zero | what can be reached for nothing from a point is at most as far as that point | add (d x y) (d y z) ; add (d x y) zero
d_le_of_left_zero / d_le_of_right_zero | eq (d x y) zero | le (d x z) (d y z) | le_trans d_triangle add_le_add le_refl le_of_eq zero_add | a point from which another one is reached for nothing is at most as far from the rest | add (d x y) (d y z) ; add zero (d y z)
d_le_add_of_le / d_le_add_of_le_back | le (d x y) r ; le (d y z) s | le (d x z) (add r s) | le_trans d_triangle add_le_add | bounds for two legs give a bound for the way | add (d x y) (d y z)
d_lt_add_of_lt / d_lt_add_of_lt_back | lt (d x y) r ; lt (d y z) s | lt (d x z) (add r s) | lt_of_le_of_lt d_triangle add_lt_add | strict bounds for two legs give a strict bound for the way | add (d x y) (d y z)
zero_le_d_add / zero_le_add_d | | le zero (add (d x y) (d y z)) | le_trans d_nonneg d_triangle | the length of a detour is not negative | d x z
d_eq_of_zero_zero / d_eq_of_zero_zero | eq (d x y) zero ; eq (d y x) zero | eq (d x z) (d y z) | le_antisymm d_le_of_left_zero | points that are indistinguishable have the same distances
section {Ball}s
mem_ball_self / mem_cob_self | lt zero r | mem x (ball x r) | mem_ball_iff lt_of_le_of_lt le_of_eq d_self | the centre lies in every {ball} of positive radius | d x x ; zero
mem_ball_mono / mem_cob_mono | mem y (ball x r) ; le r s | mem y (ball x s) | mem_ball_iff lt_of_lt_of_le | a larger radius gives a larger {ball} | d x y
mem_ball_trans / mem_cob_trans | mem y (ball x r) ; mem z (ball y s) | mem z (ball x (add r s)) | mem_ball_iff d_lt_add_of_lt | a {ball} around a point of a {ball} lies in a {ball} | d x y ; d y z ; d x z
mem_ball_iff_mem_cob / mem_cob_iff_mem_ball | | iff (mem y (ball x r)) (mem x (cob y r)) | mem_ball_iff mem_cob_iff | a point lies in the {ball} of a centre exactly when the centre lies in the {cob} of the point | d x y
mem_ball_of_zero / mem_cob_of_zero | mem y (ball x r) ; eq (d y z) zero | mem z (ball x r) | mem_ball_iff lt_of_le_of_lt d_le_of_right_zero | {ball}s contain what can be reached for nothing | d x y ; d x z
mem_ball_centre / mem_cob_centre | eq (d x y) zero ; mem z (ball y r) | mem z (ball x r) | mem_ball_iff lt_of_le_of_lt d_le_of_left_zero | the centre of a {ball} may be moved back for nothing | d x z ; d y z
mem_far_self / mem_cofar_self | le zero r | mem x (far x r) | mem_far_iff le_trans le_of_eq d_self | the centre lies in every {far} | d x x ; zero
mem_far_mono / mem_cofar_mono | mem y (far x r) ; le r s | mem y (far x s) | mem_far_iff le_trans | a larger radius gives a larger {far} | d x y
mem_far_trans / mem_cofar_trans | mem y (far x r) ; mem z (far y s) | mem z (far x (add r s)) | mem_far_iff d_le_add_of_le | {far}s can be composed | d x y ; d y z ; d x z
mem_far_of_ball / mem_cofar_of_cob | mem y (ball x r) ; le r s | mem y (far x s) | mem_far_iff mem_ball_iff le_of_lt le_trans | a {ball} lies in the {far} | d x y
mem_ball_of_far / mem_cob_of_cofar | mem y (far x r) ; lt r s | mem y (ball x s) | mem_ball_iff mem_far_iff lt_of_le_of_lt | a {far} lies in every {ball} of larger radius | d x y
mem_far_zero / mem_cofar_zero | eq (d x y) zero | mem y (far x zero) | mem_far_iff le_of_eq | the {far} of radius zero is what can be reached for nothing | d x y
section For nothing
pre_refl / pre_refl | | pre x x | pre_iff d_self | every point {pre} itself | d x x ; zero
pre_trans / pre_trans | pre x y ; pre y z | pre x z | pre_iff le_antisymm le_trans d_le_of_left_zero le_of_eq d_nonneg | reaching for nothing can be repeated | d x y ; d y z ; d x z ; zero
d_le_of_pre / d_le_of_pre_right | pre x y | le (d x z) (d y z) | pre_iff d_le_of_left_zero | distances shrink along free ways, {leaving} side | d x y ; zero
mem_ball_of_pre / mem_cob_of_pre | mem y (ball x r) ; pre y z | mem z (ball x r) | pre_iff mem_ball_of_zero | {ball}s are closed under free ways | d y z ; zero
mem_far_of_pre / mem_cofar_of_pre | mem y (far x r) ; pre y z | mem z (far x r) | pre_iff mem_far_iff le_trans d_le_of_right_zero | {far}s are closed under free ways | d y z ; zero ; d x y ; d x z
mem_ball_of_pre_centre / mem_cob_of_pre_centre | pre x y ; mem z (ball y r) | mem z (ball x r) | pre_iff mem_ball_centre | the centre of a {ball} may be moved along a free way | d x y ; zero
d_eq_of_pre_pre / d_eq_of_pre_pre | pre x y ; pre y x | eq (d x z) (d y z) | pre_iff d_eq_of_zero_zero | points with free ways in both directions have equal distances | d x y ; d y x ; zero
section The {sym}
sym_self / sym_self | | eq (sym x x) zero | le_antisymm le_trans le_of_eq ge_of_eq sym_def add_le_add d_self add_zero | the {sym} of a point with itself is zero | add (d x x) (d x x) ; d x x ; zero ; add zero zero
sym_comm / sym_comm | | eq (sym x y) (sym y x) | le_antisymm le_trans le_of_eq ge_of_eq sym_def add_comm | the {sym} does not depend on the direction | add (d x y) (d y x) ; add (d y x) (d x y)
d_le_sym / d_le_sym_back |  | le (d x y) (sym x y) | le_trans le_add_right ge_of_eq sym_def d_nonneg le_add_left | a distance is at most the {sym} | add (d x y) (d y x) ; zero ; add (d y x) (d x y)
sym_triangle / sym_triangle | | le (sym x z) (add (sym x y) (sym y z)) | le_trans le_of_eq ge_of_eq sym_def add_le_add d_triangle d_cotriangle add_add_comm | the {sym} satisfies the detour inequality | add (d x z) (d z x) ; add (add (d x y) (d y z)) (add (d y x) (d z y)) ; add (add (d x y) (d y x)) (add (d y z) (d z y)) ; add (d x y) (d y x) ; add (d y z) (d z y)
sym_nonneg / sym_nonneg | | le zero (sym x y) | le_trans d_nonneg d_le_sym | the {sym} is not negative | d x y
mem_ball_of_sym / mem_cob_of_sym | lt (sym x y) r | mem y (ball x r) | mem_ball_iff lt_of_le_of_lt d_le_sym d_le_sym_back | nearness for the {sym} is nearness in each direction | d x y ; d y x
sym_le_of_pre / sym_le_of_pre_back | pre x y | le (sym x y) (d y x) | le_trans le_of_eq sym_def pre_iff add_le_add le_refl zero_add add_zero | along a free way only the way back counts | add (d x y) (d y x) ; d x y ; zero ; add zero (d y x) ; add (d x y) zero ; add (d y x) (d x y) ; add zero (d x y) ; d y x ; add (d y x) zero
section The {map}
map_pre / map_pre | pre x y | pre (map x) (map y) | pre_iff le_antisymm le_trans map_short le_of_eq d_nonneg | a {map} sends free ways to free ways | d (map x) (map y) ; d x y ; zero
mem_ball_map / mem_cob_map | mem y (ball x r) | mem (map y) (ball (map x) r) | mem_ball_iff lt_of_le_of_lt map_short | a {map} sends {ball}s into {ball}s | d (map x) (map y) ; d x y
mem_far_map / mem_cofar_map | mem y (far x r) | mem (map y) (far (map x) r) | mem_far_iff le_trans map_short | a {map} sends {far}s into {far}s | d (map x) (map y) ; d x y
map_map_short / map_map_short | | le (d (map (map x)) (map (map y))) (d x y) | le_trans map_short | a {map} applied twice never lengthens a way | d (map x) (map y)
sym_map_le / sym_map_le | | le (sym (map x) (map y)) (sym x y) | le_trans le_of_eq ge_of_eq sym_def add_le_add map_short | a {map} never lengthens the {sym} | add (d (map x) (map y)) (d (map y) (map x)) ; add (d x y) (d y x)
d_map_le_of_le / d_map_le_of_le_back | le (d x y) r | le (d (map x) (map y)) r | le_trans map_short | a bound survives a {map}
d_map_triangle / d_map_cotriangle | | le (d (map x) (map z)) (add (d x y) (d y z)) | le_trans map_short d_triangle | the image of a detour is never shorter | d x z
""",
)
