# SPDX-License-Identifier: Apache-2.0
"""Longer context for RoPE language models, without training.

plan(), ladder(), load(), inspect() and export() do what the verbs of the command do; rotate() and
turn() apply plans to arrays; patch() and unpatch() to a model of transformers; serve() runs a model
for clients of OpenAI's API; results() reads runs.
Everything is computed by the C++ library of the same installation.
"""
from ._command import Server, bundled_model, export, serve
from ._library import Error, library
from ._plans import Geometry, Ladder, Plan, Rung, inspect, ladder, load, plan
from ._results import results
from ._tensors import rotate, turn
from ._transformers import patch, unpatch

__version__: str = library.mrrope_version().decode()

__all__ = ["Error", "Geometry", "Ladder", "Plan", "Rung", "Server", "bundled_model", "export",
           "inspect", "ladder", "load", "patch", "plan", "results", "rotate", "serve", "turn", "unpatch"]
