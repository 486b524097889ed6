#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pairs runs of the same samples under different methods, one run folder each.

    paired.py RUN RUN...

Every later run is compared with the first one at every length, over the documents (perplexity), or the
samples or texts (needles, RULER) that both have. Prints Markdown: the value of each run, how much the
first one is worse (perplexity in percent, scores in points; below 0 it is better) with its standard
error, and the bound that it exceeds with a probability of 2.5 %. Only results.json and journal.jsonl
are read.
"""
import collections
import json
import math
import pathlib
import sys

# The 97.5 % quantile of Student's t for 1, 2, ... degrees of freedom; beyond, the normal one.
QUANTILE = [12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
            2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
            2.052, 2.048, 2.045, 2.042]


def quantile(freedom):
    return QUANTILE[freedom - 1] if freedom <= len(QUANTILE) else 1.96 + 2.4 / freedom
