# SPDX-License-Identifier: Apache-2.0
"""Parts of tools/make_texts.py: a small prover, the theories and three renderers."""
