"""The model card: what a released model is, what it promises, and what its publisher adds."""

from __future__ import annotations

from typing import Any

from dpforest.inspect.view import View

__all__ = ["card"]


def card(
    model: Any,
    *,
    purpose: str | None = None,
    data: str | None = None,
    contact: str | None = None,
    notes: str | None = None,
    test: object = None,
    format: str = "markdown",
) -> str:
    """A page for anyone who answers for a released model, or uses it.

    Parameters
    ----------
    model : estimator or released model
        Fitted, or read by ``dpforest.load``.
    purpose, data, contact, notes : str, optional
        What the model is for, which records it was fitted on, who answers for it, and what else is to be said.  Plain
        text: marks of Markdown or HTML are escaped.  What is left out is named as missing.  Write nothing about
        single records: what you write is public.
    test : Evaluation, optional
        What :func:`dpforest.evaluation.evaluate` found: its measures and its price are printed as they are.
    format : {"markdown", "html"}

    Returns
    -------
    str
        What the guarantee says, in plain words; what each query was charged, of a fitted estimator (a file does not
        hold it, which the card says); the schema; the size.  No exact count, no seed, nothing of the records.

    Raises
    ------
    TypeError, ValueError
        It is no model of this library; an unknown format; what is added is no text; a test without a guarantee.

    Guarantee
    ---------
    Nothing is paid: the model and its ledger alone are read (:prf:ref:`thm-post-processing`).
    """
    added = {"purpose": purpose, "data": data, "contact": contact, "notes": notes, "test": test, "format": format}
    return View(model).model.card(**added)
