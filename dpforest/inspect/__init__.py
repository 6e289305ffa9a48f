"""Looking into a released model, fitted or loaded: as text, as pictures, record by record, and on a card.

All of it is computed from what is released, and costs no privacy (:prf:ref:`thm-post-processing`).  What a model
shows is noisy: a split, a vote or a curve may be the noise's own.
"""

from dpforest.inspect.card import card
from dpforest.inspect.drawing import plot_effect, plot_importances, plot_tree
from dpforest.inspect.effects import Effect, effects
from dpforest.inspect.explanation import Explanation, explain
from dpforest.inspect.influence import importances, partial_dependence
from dpforest.inspect.text import export_text
from dpforest.inspect.verification import NotVerifiedError, Verified, verify

__all__ = [
    "Effect",
    "Explanation",
    "NotVerifiedError",
    "Verified",
    "card",
    "effects",
    "explain",
    "export_text",
    "importances",
    "partial_dependence",
    "plot_effect",
    "plot_importances",
    "plot_tree",
    "verify",
]
